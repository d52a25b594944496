//! The rules of rooms. No HTTP here and no SQL: a function takes a caller it can trust, asks the
//! store, decides, and gives a reply or an error of the document's table.
//!
//! Each folder is one subject; the files beside them are what all subjects use.

pub mod a2a;
pub mod change;
pub mod credentials;
pub mod delivery;
pub mod joining;
pub mod members;
pub mod messages;
pub mod reputation;
pub mod rooms;
pub mod search;
pub mod turns;

pub mod access;
pub mod audit;
pub mod checks;
pub mod export;
pub mod health;
pub mod idempotency;
pub mod import;
pub mod inbox;
pub mod limits;
pub mod operators;
pub mod people;
pub mod spending;
pub mod usage;
pub mod visitors;
pub mod wake;
pub mod webhooks;
pub mod wire;
