//! The room server.
//!
//! Three layers and no way around them: [`api`] reads requests and answers, [`services`] hold the
//! rules of rooms, [`store`] holds all the SQL and [`events`] carry what happened to those who
//! watch. Who is calling is decided in [`auth`], before a handler runs.

#![allow(
    missing_docs,
    reason = "a server's insides; the types that travel are documented in protocol"
)]

pub mod api;
pub mod app;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod discovery;
pub mod docs;
pub mod error;
pub mod events;
mod jobs;
pub mod keyed_permits;
pub mod metrics;
pub mod operate;
pub mod outbound;
mod private_files;
pub mod render;
pub mod serve;
pub mod services;
mod shown_text;
pub mod store;
