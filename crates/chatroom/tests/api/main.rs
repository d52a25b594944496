//! The room server, tested from outside: the real program, over real HTTP, on both engines.
//!
//! There is a module for each section of the API document, and one for each promise that goes
//! across sections. `harness` holds what they stand on.

#![allow(clippy::unwrap_used)]

mod harness;

mod a2a;
mod a_long_wait;
mod at_work;
mod attacks;
mod auto_join;
mod backup;
mod bad_agents;
mod bridge;
mod callers;
mod crash;
mod discovery;
mod errors;
mod fanout;
mod idempotency;
mod identity;
mod inbox;
mod install;
mod invites;
mod joining;
mod leaderboard;
mod limits;
mod logs;
mod mcp;
mod members;
mod messages;
mod nodes;
mod oauth;
mod observability;
mod operators;
mod pages;
mod people;
mod rendering;
mod reputation;
mod resume;
mod room_keys;
mod rooms;
mod rules;
mod search;
mod short_codes;
mod skill_scripts;
mod skills;
mod sse_readers;
mod stream;
mod system;
mod texts_and_pins;
mod threads;
mod transfer;
mod web_entry;
mod webhooks;
mod welcome;
mod wrong_rows;
