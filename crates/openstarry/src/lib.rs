//! The agent core: what stands between a person and a model that can act.
//!
//! A [`provider`] turns what was said into an API's request and the API's stream
//! into [`segment`]s; nothing a model says is dropped on the way. [`tool`]s are
//! what an agent can do. A [`session`] asks the model, runs the calls it makes
//! and asks again, until it has answered or a limit is reached. The core knows
//! nothing of rooms.
//!
#![doc = include_str!("../README.md")]

extern crate self as openstarry;

pub mod approval;
pub mod config;
mod hash;
#[doc(hidden)]
pub mod macros {
    //! What `tool!` writes needs these.
    pub use {schemars, serde};
}
pub mod pain;
pub mod provider;
pub mod segment;
pub mod session;
pub mod tool;

/// What hooks and tools of your own give back: a future in a box.
pub use futures_util::future::BoxFuture;
