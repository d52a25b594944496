//! `starchild organism`: checks, runs, replays, offers and draws an organism.

mod graph;
mod hint;
mod mcp;
mod replay;
mod run;
mod stdio;

use crate::organism::{check, kinds::guard, ui};
use crate::terminal::printable;
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// What can be done.
#[derive(Subcommand)]
pub enum Command {
    /// Say what is wrong in an organism's file, and on which line.
    Check(FileArgument),
    /// Run an organism; talk to it on standard input and output.
    Run(RunArguments),
    /// Tell again, from its journal, what an organism did.
    Replay(replay::ReplayArguments),
    /// Run a listener's command within its limits.
    #[command(hide = true)]
    Guard(guard::GuardArguments),
    /// Offer an organism to an MCP client, on standard input and output.
    Mcp(McpArguments),
    /// Draw the listeners and whom they may send what: SVG, Mermaid or DOT.
    Graph(GraphArguments),
}

/// The file that describes the organism.
#[derive(Args)]
pub struct FileArgument {
    /// The organism's file.
    #[arg(default_value = "organism.yaml")]
    file: PathBuf,
}

/// How to run.
#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    file: FileArgument,
    /// Write every hop to this file, a line each.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Keep what happens in this folder, and go on after a crash.
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Show it at work on a page of this machine, at this address or any that is free.
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:0",
        value_parser = ui::address
    )]
    ui: Option<SocketAddr>,
    /// The gateway that standard input speaks as; the first one unless said.
    #[arg(long, value_name = "NAME")]
    gateway: Option<String>,
    /// Stay after standard input has ended, until a signal.
    #[arg(long)]
    stay: bool,
    /// Print answers as whole envelopes, not as payloads.
    #[arg(long)]
    envelopes: bool,
}

/// What to offer.
#[derive(Args)]
pub struct McpArguments {
    #[command(flatten)]
    file: FileArgument,
    /// The gateway whose payloads are offered; the first one unless said.
    #[arg(long, value_name = "NAME")]
    gateway: Option<String>,
}

/// How to draw.
#[derive(Args)]
pub struct GraphArguments {
    #[command(flatten)]
    file: FileArgument,
    /// Where to write it; standard output unless said.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to write; what the file's name ends in, else SVG.
    #[arg(long, value_enum)]
    format: Option<graph::Format>,
}

/// Runs one command. What went wrong is on standard error.
pub async fn run(command: Command) -> ExitCode {
    let result = match command {
        Command::Check(FileArgument { file }) => check::run(&file),
        Command::Run(arguments) => run::run(arguments).await,
        Command::Mcp(arguments) => mcp::run(arguments).await,
        Command::Graph(arguments) => graph::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Guard(arguments) => return guard::run(arguments).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{}", printable(&message));
            ExitCode::FAILURE
        }
    }
}
