//! The command line: what can be typed, and what comes of it. One file or folder for each command;
//! nothing outside imports this module.

mod agent;
mod byoa;
mod completions;
mod confirm;
mod daemon;
mod doctor;
mod failure;
mod gen_handler;
mod login;
mod organism;
mod personal;
mod question;
mod room;
mod sessions;
mod show;

use crate::home::Home;
use crate::telemetry;
use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use question::QuestionArgs;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
An agent of yours in a room, in three steps:
  starchild byoa add --prefix curious_otter --backend handler --handler-path ./handler.sh
  starchild room join i_x9j2k7vp
  starchild run

Your own hosted agent, once you are logged in to it:
  starchild \"what is on my calendar?\"

Exit codes: 0 done, 1 something for you to mend, 2 something that may pass: try again.
Everything is kept in ~/.starchild, or where STARCHILD_HOME says.";

/// Bring agents into rooms, and run agents and organisms.
#[derive(Parser)]
#[command(
    name = "starchild",
    version,
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    question: QuestionArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Make, list, change and remove agents of this machine.
    #[command(subcommand)]
    Byoa(byoa::Command),
    /// Print the id that an agent with this prefix has on this machine.
    Id {
        /// 8 to 20 characters of a-z 0-9 . _
        #[arg(long)]
        prefix: String,
    },
    /// Bring an agent into rooms and out again.
    #[command(subcommand)]
    Room(room::Command),
    /// List what acts for an agent on a server, and end it.
    #[command(subcommand)]
    Sessions(sessions::Command),
    /// Start an agent's daemon: it follows the agent's rooms and has its backend answer.
    Run(daemon::RunArgs),
    /// End an agent's daemon, after the message in hand.
    Stop(daemon::StopArgs),
    /// End an agent's daemon and start it anew.
    Restart(daemon::StopArgs),
    /// Say which daemons run.
    #[command(
        after_help = "In a pipe: id, running or stopped, process, number of rooms, log; with tabs between."
    )]
    Status {
        #[command(flatten)]
        of: room::Of,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what an agent's daemon has to say.
    Logs(daemon::LogsArgs),
    #[command(flatten)]
    Personal(personal::Command),
    /// Run one agent: a model, tools and a loop.
    #[command(subcommand)]
    Agent(agent::Command),
    /// Run an organism: many listeners around one pump.
    #[command(subcommand)]
    Organism(organism::Command),
}

/// Does what was typed.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    if cli.command.is_none() && !cli.question.is_asked() {
        let _ = Cli::command().print_help();
        return ExitCode::from(1);
    }
    let mut runtime = match cli.command {
        Some(Command::Agent(_) | Command::Organism(_)) => {
            tokio::runtime::Builder::new_multi_thread()
        }
        // One thread is plenty for rooms, and the smallest.
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = match runtime.enable_all().max_blocking_threads(64).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            show::failure(&error);
            return ExitCode::from(2);
        }
    };
    runtime.block_on(async {
        let code = run(cli).await;
        telemetry::finish().await;
        code
    })
}

async fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        None => return question::run(cli.question).await,
        Some(Command::Agent(command)) => return agent::run(command).await,
        Some(Command::Organism(command)) => return organism::run(command).await,
        Some(Command::Personal(command)) => return personal::run(command, Cli::command()).await,
        Some(command) => do_command(command).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            show::failure(&failure);
            failure.exit_code()
        }
    }
}

async fn do_command(command: Command) -> Result<(), Failure> {
    let home = Home::find()?;
    match command {
        Command::Byoa(command) => byoa::run(&home, command).await,
        Command::Id { prefix } => byoa::id(&home, &prefix),
        Command::Room(command) => room::run(&home, command).await,
        Command::Sessions(command) => sessions::run(&home, command).await,
        Command::Run(args) => daemon::run(&home, args).await,
        Command::Stop(args) => daemon::stop(&home, args).await,
        Command::Restart(args) => daemon::restart(&home, args).await,
        Command::Status { of, json } => daemon::status(&home, &of, json),
        Command::Logs(args) => daemon::logs(&home, args).await,
        Command::Personal(_) | Command::Agent(_) | Command::Organism(_) => Ok(()),
    }
}
