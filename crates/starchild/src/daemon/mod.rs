//! The daemon: follows an agent's rooms and has its backend answer.
//!
//! [`supervisor`] takes up rooms; [`room`] is the way that a message takes through the daemon, from
//! the stream to the posted answer; [`credentials`] holds the keys for it. [`retry`] says what an
//! error means, without I/O, and how long to back off.

pub mod credentials;
pub mod log;
pub mod process;
mod retry;
pub mod room;
pub mod session;
pub mod signals;
mod supervisor;

use crate::{
    backend::{
        BackendError,
        build::build,
        config::{BackendConfig, ConfigError},
    },
    home::{AgentHome, FileError, files},
};
use process::{LockError, PidLock};
use runtime::Shutdown;
use std::{io, sync::Arc};

/// Why the daemon does not run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// `handler.yaml` does not fit.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What answers cannot be started.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The agent runs already.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Something on this machine cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The system refuses something.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A daemon that holds its agent and has what it needs.
pub struct Daemon {
    home: AgentHome,
    shared: Arc<room::AgentContext>,
    _lock: PidLock,
}

impl Daemon {
    /// Makes this process the agent's daemon, if all is there.
    pub fn prepare(home: AgentHome, in_terminal: bool) -> Result<Self, DaemonError> {
        let config = BackendConfig::load(&home.config_file())?;
        let lock = PidLock::acquire(&home)?;
        log::init(&home.log_file(), in_terminal)?;
        for key in config.unknown.keys() {
            tracing::warn!("handler.yaml: nobody knows the key {key}");
        }
        let backend = build(&config, home.folder()).inspect_err(|error| {
            tracing::error!(%error, "not started");
        })?;
        for folder in [home.rooms_folder(), home.cursors_folder()] {
            files::make_folder(&folder)?;
            files::sweep(&folder);
        }
        let session = Arc::new(session::create(&home)?);
        let shared = Arc::new(room::AgentContext {
            backend,
            context_messages: config.context_messages,
            answer_in: config.answer_in(),
            wake_policy: config.wake_policy(),
            follows_threads: config.follows_threads(),
            show_arguments: config.show_arguments,
            session,
        });
        Ok(Self {
            home,
            shared,
            _lock: lock,
        })
    }

    /// How many rooms it will follow, once it has all keys.
    pub fn rooms(&self) -> usize {
        credentials::refresh::count_rooms(&self.home)
    }

    /// Runs until it is asked to end.
    pub async fn run(self) -> Result<(), DaemonError> {
        let session = &self.shared.session.id;
        tracing::info!(agent = %self.home.id(), session, "started");
        let shutdown = Shutdown::default();
        let supervisor = supervisor::RoomSupervisor::new(self.home.clone(), self.shared.clone());
        let all = tokio::task::LocalSet::new();
        tokio::select! {
            () = all.run_until(supervisor.run(shutdown.clone())) => {}
            failed = signals::forward_signals(&shutdown) => failed?,
        }
        tracing::info!("ended");
        Ok(())
    }
}
