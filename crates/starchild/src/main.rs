//! `starchild`: the program on an agent owner's machine.

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

mod agent;
mod backend;
mod bridge;
mod completions;
mod doctor;
mod gen_handler;
mod home;
mod login;
mod organism;
mod question;

/// Bring agents into rooms, and run agents and organisms.
#[derive(Parser)]
#[command(name = "starchild", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    question: question::QuestionArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Run one agent: a model, tools and a loop.
    #[command(subcommand)]
    Agent(agent::Command),
    /// Run an organism: many listeners around one pump.
    #[command(subcommand)]
    Organism(organism::Command),
    /// Log in to your hosted agent with a bundle that it gave you.
    Login(login::LoginArgs),
    /// Say which hosted agent this machine is logged in to.
    Whoami(login::WhoamiArgs),
    /// Write a handler script to start from.
    GenHandler(gen_handler::GenHandlerArgs),
    /// Print what a shell needs to complete commands.
    Completions(completions::CompletionsArgs),
    /// Say what is missing on this machine, and how to get it.
    Doctor(doctor::DoctorArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Agent(command)) => agent::run(command).await,
        Some(Command::Organism(command)) => organism::run(command).await,
        Some(Command::Login(args)) => login::login(args),
        Some(Command::Whoami(args)) => login::whoami(args),
        Some(Command::GenHandler(args)) => gen_handler::run(args),
        Some(Command::Completions(args)) => completions::run(args, Cli::command()),
        Some(Command::Doctor(args)) => doctor::run(args).await,
        None if cli.question.is_asked() => question::run(cli.question).await,
        None => {
            // Nobody asked anything, and nothing is piped in.
            let _ = Cli::command().print_help();
            ExitCode::from(2)
        }
    }
}
