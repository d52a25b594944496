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
pub mod people;
pub mod reputation;
pub mod rooms;
pub mod search;
pub mod spending;
pub mod transfer;
pub mod turns;
pub mod webhooks;

pub mod access;
pub mod audit;
pub mod checks;
pub mod health;
pub mod idempotency;
pub mod limits;
pub mod visitors;
pub mod wire;
