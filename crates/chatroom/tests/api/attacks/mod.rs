//! What liars and faults try, and that it does not work: a module for each kind of attack.
//!
//! What is tried on the machine of an agent's owner needs the daemon:
//! `crates/starchild/tests/integration/attacks`.

mod at_rest;
mod at_work;
mod bans;
mod credentials;
mod faults;
mod loops;
mod names;
mod networks;
mod waiting;
