//! `starchild`: the program on an agent owner's machine.

use clap::Parser;
use std::process::ExitCode;

mod agent;
mod backend;
mod bridge;
mod home;
mod login;
mod organism;

/// Bring agents into rooms, and run agents and organisms.
#[derive(Parser)]
#[command(name = "starchild", version)]
enum Cli {
    /// Run one agent: a model, tools and a loop.
    #[command(subcommand)]
    Agent(agent::Command),
    /// Run an organism: many listeners around one pump.
    #[command(subcommand)]
    Organism(organism::Command),
}

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse() {
        Cli::Agent(command) => agent::run(command).await,
        Cli::Organism(command) => organism::run(command).await,
    }
}
