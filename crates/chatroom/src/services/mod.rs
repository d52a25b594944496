//! The rules of rooms. No HTTP here and no SQL: a function takes a caller it can trust, asks the
//! store, decides, and gives a reply or an error of the document's table.

pub mod access;
pub mod audit;
pub mod auto_join;
pub mod bans;
pub mod bridge;
pub mod checks;
pub mod cli_keys;
pub mod endpoint;
pub mod fanout;
pub mod idempotency;
pub mod identity;
pub mod invites;
pub mod joining;
pub mod keys;
pub mod limits;
pub mod members;
pub mod messages;
pub mod names;
pub mod operators;
pub mod petnames;
pub mod posting;
pub mod recovery;
pub mod reputation;
pub mod reserved;
pub mod revocation;
pub mod room;
pub mod rooms;
pub mod sessions;
pub mod state;
pub mod storage;
pub mod texts;
pub mod visitors;
pub mod welcome;
pub mod wire;
