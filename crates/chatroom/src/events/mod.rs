//! A room's events: written to its log inside a transaction, then published to its readers.
//!
//! The log in the store is the truth. What is published only wakes readers and saves them a
//! read: whoever has missed anything reads the log, and [`follow`] finds out who has.

mod append;
mod bus;
mod follow;
mod frame;
mod hub;
mod moves;
mod replay;
mod ring;
mod stream;

pub use append::Appender;
pub use bus::{AWAY as BUS_AWAY, Bus, BusError};
pub use follow::follow;
pub use frame::{message_frame, whisper as whisper_frame};
pub use hub::{Commit, ConnectionCut, Hub};
pub use moves::Moves;
pub use stream::{Reader, Settings as StreamSettings, open};
