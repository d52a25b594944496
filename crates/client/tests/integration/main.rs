//! The client against servers that break what can break.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod connection;
