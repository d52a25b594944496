//! Rooms for A2A clients. A task is a message and what answers it: the room's log holds it, so it is the
//! same on every node and after every restart. Only what the log cannot tell is stored besides: that a
//! task was taken back, and where its changes are sent.

pub mod card;
pub mod names;
pub mod push;
mod state;
pub mod tasks;

pub use names::{Context, TaskName};
