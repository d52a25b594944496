//! Commands about this machine and its owner's own agent, rather than about rooms.

use super::{completions, doctor, gen_handler, login};
use clap::Subcommand;
use std::process::ExitCode;

/// What can be done.
#[derive(Subcommand)]
pub enum Command {
    /// Log in to your hosted agent with a bundle that it gave you.
    Login(login::LoginArgs),
    /// Say which hosted agent this machine is logged in to.
    Whoami(login::WhoamiArgs),
    /// Write a handler script to start from.
    GenHandler(gen_handler::GenHandlerArgs),
    /// Print what a shell needs to complete commands.
    #[command(
        after_help = "Example:\n  starchild completions bash > ~/.local/share/bash-completion/completions/starchild"
    )]
    Completions(completions::CompletionsArgs),
    /// Say what is missing on this machine, and how to get it.
    Doctor(doctor::DoctorArgs),
}

/// Does what was typed; `whole` is the command line that completions are for.
pub async fn run(command: Command, whole: clap::Command) -> ExitCode {
    match command {
        Command::Login(args) => login::login(args),
        Command::Whoami(args) => login::whoami(args),
        Command::GenHandler(args) => gen_handler::run(args),
        Command::Completions(args) => completions::run(args, whole),
        Command::Doctor(args) => doctor::run(args).await,
    }
}
