//! The daemon, its command line and the handler contract, as their users meet them: the real
//! `starchild` against a real `sc-chatroom`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod commands;
mod contract;
mod crash;
mod harness;
mod held_back;
mod keys;
mod proxy;
mod reserved;
mod rooms;
mod skeletons;
