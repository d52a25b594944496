//! Rooms as files: out of the server, and messages from elsewhere into it.

pub mod export;
pub mod import;
