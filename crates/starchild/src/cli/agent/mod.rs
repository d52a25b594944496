//! `starchild agent`: an openstarry agent in the terminal.

mod acp;
mod ask;
mod follow;
mod form;
mod gate;
mod init;
mod lines;
mod markdown;
pub mod models;
mod prompts;
mod questions;
mod run;
mod screen;
mod sessions;
mod state;
mod status;

use crate::cli::show;
use crate::telemetry;
use clap::{Args, Subcommand};
use openstarry::approval::Gate;
use openstarry::config::{AgentConfig, AgentDependencies, Built};
use openstarry::segment::ContentSegment;
use openstarry::session::{FileAudit, Session};
use state::StateFolder;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tracing_subscriber::layer::Identity;

/// What can be done.
#[derive(Subcommand)]
pub enum Command {
    /// Talk with an agent.
    Run(Common),
    /// Ask an agent one question. The answer alone goes to standard output.
    Ask(ask::AskArgs),
    /// List the sessions of this folder's agent.
    Sessions(sessions::SessionsArgs),
    /// Offer the agent to editors, over the Agent Client Protocol.
    Acp(acp::AcpArgs),
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
    /// A picture to go with the question, or with the first of a conversation.
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
}

/// Runs one command.
pub async fn run(command: Command) -> ExitCode {
    // What an agent has to say it says itself; its spans are for a collector.
    if let Err(error) = telemetry::begin(Identity::new()) {
        show::failure(&error);
        return ExitCode::FAILURE;
    }
    let done = match command {
        Command::Run(args) => run::run(args).await,
        Command::Ask(args) => ask::ask(args).await,
        Command::Sessions(args) => sessions::list(&args),
        Command::Acp(args) => acp::serve(args).await,
        Command::Init(args) => init::init(args).await,
        Command::Models(args) => models::models(args).await,
    };
    done.unwrap_or_else(|error| {
        if is_broken_pipe(error.as_ref()) {
            return ExitCode::from(BROKEN_PIPE);
        }
        show::failure(&error);
        ExitCode::FAILURE
    })
}

/// What a shell makes of a program that nobody reads any more.
const BROKEN_PIPE: u8 = 141;

/// Whether the reader of our output left, as `head` does. That is no failure
/// to talk about.
fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

type Failure = Box<dyn std::error::Error>;

/// An agent with a session in it.
struct AgentSession {
    built: Built,
    session: Session,
    state_folder: StateFolder,
    /// How much was said before.
    turns: usize,
    /// Whether calls wait for a yes.
    waits: bool,
}

/// The folder that an agent's file is in: its sessions belong to it.
fn project_of(config: &Path) -> &Path {
    let folder = config.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

impl Common {
    /// Reads the file, makes the agent and opens the session. Warnings go to
    /// standard error.
    async fn open_session(&self, gate: Arc<dyn Gate>) -> Result<AgentSession, Failure> {
        let config =
            AgentConfig::load(&self.config).map_err(|error| match self.config.exists() {
                true => error.to_string(),
                false => format!("{error} (starchild agent init writes one)"),
            })?;
        let state_folder = StateFolder::open(&config.name, project_of(&self.config))?;
        let dependencies = AgentDependencies {
            gate,
            audit: Arc::new(FileAudit::new(&state_folder.audit())),
            folder: Some(state_folder.path().into()),
            ..AgentDependencies::default()
        };
        let built = config.build(dependencies).await?;
        for warning in &built.warnings {
            show::failure(warning);
        }
        let sessions = state_folder.sessions()?;
        let (state, file) = match self.resume.as_deref() {
            None => sessions.create(&uuid::Uuid::new_v4().to_string())?,
            Some(id) => sessions.resume(Some(id).filter(|id| !id.is_empty()))?,
        };
        let turns = state.history.turns.len();
        let waits = state.waits();
        let session = built.agent.session(state, Some(file));
        Ok(AgentSession {
            built,
            session,
            state_folder,
            turns,
            waits,
        })
    }

    /// The pictures.
    fn images(&self) -> Result<Vec<ContentSegment>, Failure> {
        let images = self.image.iter().map(|path| {
            let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
            let file = std::fs::File::open(path).map_err(|error| failed(&error))?;
            let mut bytes = Vec::new();
            file.take(MAX_IMAGE + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| failed(&error))?;
            if bytes.len() as u64 > MAX_IMAGE {
                return Err(failed(&format!("over {MAX_IMAGE} bytes")).into());
            }
            let image = ContentSegment::picture(&bytes);
            let kinds = "want a picture: PNG, JPEG, GIF or WebP";
            Ok(image.ok_or_else(|| failed(&kinds))?)
        });
        images.collect()
    }

    /// The command line that goes on with a session, from any folder.
    fn resume_line(&self, session: &str) -> String {
        let config = self.config.canonicalize();
        let config = config.unwrap_or_else(|_| self.config.clone());
        let config = config.to_string_lossy();
        let config = shell_words::quote(&config);
        format!("starchild agent run --config {config} --resume={session}")
    }
}

const MAX_IMAGE: u64 = 20 << 20;
