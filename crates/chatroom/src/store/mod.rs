//! All the SQL. One function for each query, named for what it answers.
//!
//! The rules of rooms are not here: a function in this folder reads or writes, and decides
//! nothing. Each file holds the queries of one table, as methods of a connection, so that any
//! of them can run inside a transaction.

#[macro_use]
mod row_struct;

pub mod a2a;
pub mod accounts;
mod argument;
pub mod audit;
pub mod bans;
pub mod cli_keys;
pub mod consents;
pub mod db;
pub mod deliveries;
pub mod group;
pub mod health;
pub mod identities;
pub mod inbox;
pub mod invites;
pub mod keys;
pub mod leaderboard;
pub mod limits;
pub mod log;
pub mod members;
pub mod messages;
pub mod migrate;
pub mod newest;
pub mod oauth;
pub mod pins;
#[cfg(test)]
mod plans;
mod postgres_tx;
pub mod posting;
pub mod reading;
pub mod rechecks;
pub mod replies;
pub mod reputation;
pub mod revocation;
pub mod rooms;
pub mod search;
pub mod sessions;
pub mod skeletons;
pub mod spending;
pub mod stats;
pub mod threads;
pub mod turns;
pub mod wake;
pub mod webhooks;
pub mod welcome;

pub use db::{Conn, Db, DbError, Tx};
pub use row_struct::Json;

/// The result of a query.
pub type DbResult<T> = Result<T, DbError>;
