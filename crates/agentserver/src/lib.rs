//! The message pump: typed listeners, an envelope that nobody can forge, peers
//! and threads.
//!
//! A listener accepts payloads, small structs that travel as XML. It is given a
//! payload and trustworthy [`HandlerMetadata`], and gives back messages or
//! nothing. Handlers are untrusted: the pump alone decides who a message is
//! from, where it may go and which thread it belongs to. It knows nothing of
//! what stands behind a listener.
//!
//! ```
//! use agentserver::{Gateway, HandlerMetadata, HandlerResponse, Listener, Organism, Payload, Pump, Result, Settings};
//!
//! #[derive(Payload)]
//! struct Add { a: i64, b: i64 }
//!
//! #[derive(Payload)]
//! struct Sum { value: i64 }
//!
//! async fn add(payload: Add, _: HandlerMetadata) -> Result {
//!     Ok(Some(HandlerResponse::respond(Sum { value: payload.a + payload.b })))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let adder = Listener::named("adder").describe("Adds two numbers.").on(add);
//! let organism = Organism::new("sums", [adder], [Gateway::named("console", ["adder"])])?;
//! let pump = Pump::start(organism, Settings::default());
//! let answer = pump.request("console", "adder", Add { a: 40, b: 2 }).await?.ok_or("no answer")?;
//! assert_eq!(answer.payload.read::<Sum>()?.value, 42);
//! # Ok(())
//! # }
//! ```

extern crate self as agentserver;

pub mod config;
mod core;
pub mod envelope;
pub mod gateway;
mod handler;
pub mod journal;
mod listener;
mod organism;
pub mod payload;
mod peer_guide;
mod pump;
pub mod system;
pub mod trace;
pub mod xml;

pub use crate::core::{Budget, CoreLimits, HopId, ListenerStats, Stats, ThreadId};
pub use agentserver_derive::Payload;
pub use handler::{HandlerError, HandlerMetadata, HandlerResponse, Reply, Result, Target};
pub use listener::Listener;
pub use organism::{Gateway, Organism, OrganismError};
pub use payload::Payload;
pub use peer_guide::Offer;
pub use pump::{AskError, Conversation, Delivered, Pump, SendError, Settings};
pub use runtime::CancellationToken;

/// What the derive needs; not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use serde;
}
