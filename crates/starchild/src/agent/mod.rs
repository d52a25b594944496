//! `starchild agent`: an openstarry agent in the terminal.

mod ask;
mod gate;
mod init;
mod models;
mod place;
mod run;
mod screen;

use crate::cli::show;
use clap::{Args, Subcommand};
use openstarry::config::{AgentConfig, Built, Surroundings};
use openstarry::session::{FileAudit, Gate, Session};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// What can be done.
#[derive(Subcommand)]
pub enum Command {
    /// Talk with an agent.
    Run(Common),
    /// Ask an agent one question. The answer alone goes to standard output.
    Ask(ask::AskArgs),
    /// Write a commented agent.yaml.
    Init(init::InitArgs),
    /// Ask the server which models there are.
    Models(models::ModelsArgs),
}

/// What `run` and `ask` share.
#[derive(Args)]
pub struct Common {
    /// The agent's file.
    #[arg(long, short, default_value = "agent.yaml")]
    config: PathBuf,
    /// Go on with a session: the latest one, or the one with this id.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    resume: Option<String>,
}

/// Runs one command.
pub async fn run(command: Command) -> ExitCode {
    let done = match command {
        Command::Run(args) => run::run(args).await,
        Command::Ask(args) => ask::ask(args).await,
        Command::Init(args) => init::init(args).await,
        Command::Models(args) => models::models(args).await,
    };
    done.unwrap_or_else(|error| {
        show::failure(&error);
        ExitCode::FAILURE
    })
}

type Failure = Box<dyn std::error::Error>;

/// An agent with a session in it.
struct Ready {
    built: Built,
    session: Session,
    place: place::Place,
    /// How much was said before.
    turns: usize,
}

impl Common {
    /// Reads the file, makes the agent and opens the session. Warnings go to
    /// standard error.
    async fn ready(&self, gate: Arc<dyn Gate>) -> Result<Ready, Failure> {
        let config =
            AgentConfig::load(&self.config).map_err(|error| match self.config.exists() {
                true => error.to_string(),
                false => format!("{error} (starchild agent init writes one)"),
            })?;
        let place = place::Place::of(&config.name)?;
        let around = Surroundings {
            gate,
            audit: Arc::new(FileAudit::new(&place.audit())),
            ..Surroundings::default()
        };
        let built = config.build(around).await?;
        for warning in &built.warnings {
            show::failure(warning);
        }
        let sessions = place.sessions()?;
        let (state, file) = match self.resume.as_deref() {
            None => sessions.create(&uuid::Uuid::new_v4().to_string())?,
            Some(id) => sessions.resume(Some(id).filter(|id| !id.is_empty()))?,
        };
        let turns = state.history.turns.len();
        let session = built.agent.session(state, Some(file));
        Ok(Ready {
            built,
            session,
            place,
            turns,
        })
    }
}
