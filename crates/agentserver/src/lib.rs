//! stub

extern crate self as agentserver;

mod core;
pub mod envelope;
pub mod handler;
mod listener;
mod organism;
pub mod payload;
mod pump;
pub mod system;
pub mod trace;
mod usage;
pub mod xml;

pub use agentserver_derive::Payload;
pub use crate::core::{CoreLimits, ThreadId};
pub use handler::{HandlerError, HandlerMetadata, HandlerResponse, Reply, Result};
pub use listener::Listener;
pub use organism::{Gateway, Organism, OrganismError};
pub use payload::Payload;
pub use pump::{Conversation, Delivered, Pump, SendError, Settings};

/// What the derive needs; not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use serde;
}
