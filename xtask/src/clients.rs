//! The tests in which programs that others made read the API's description and use the real server
//! by it.

use crate::{environment::clients, run::command, single_job::run_single_job};
use std::{path::Path, process::Command};

/// Only these tests; the arguments choose some by name.
pub fn test(args: &[String]) -> Result<(), String> {
    run_single_job(clients, |folder| Ok(tests(folder)), args)
}

/// What starts those programs.
pub fn tests(clients: &Path) -> Command {
    let mut tests = command(clients.join("bin/python"));
    tests
        .arg("crates/chatroom/tests/clients/run.py")
        .env("SC_TEST_CLIENTS", clients);
    tests
}
