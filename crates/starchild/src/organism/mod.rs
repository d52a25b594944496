//! `starchild organism`.

use clap::Subcommand;
use std::process::ExitCode;

/// What can be done.
#[derive(Subcommand)]
pub enum Command {}

/// Runs one command.
pub async fn run(command: Command) -> ExitCode {
    match command {}
}
