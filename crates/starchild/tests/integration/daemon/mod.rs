//! The daemon, its command line and the handler contract, as their users meet them: the real
//! `starchild` against a real `sc-chatroom`.

mod commands;
mod contract;
mod crash;
mod held_back;
mod joining;
mod keys;
mod reserved;
mod rooms;
mod sessions;
mod skeletons;
