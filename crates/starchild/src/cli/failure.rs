//! Why a command did not do what was asked: the words, what to do next, and the exit code.

use super::byoa::yaml::EditError;
use crate::{
    backend::{BackendError, config::ConfigError},
    daemon::{DaemonError, credentials::key::KeyError, process::LockError},
    home::{AgentIdError, FileError, NoHome},
};
use client::ClientError;
use std::{fmt, io, process::ExitCode};

/// A command that failed.
#[derive(Debug)]
pub struct Failure {
    message: String,
    /// Whether the same may work later.
    transient: bool,
}

impl Failure {
    /// What the caller can mend.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            transient: false,
        }
    }

    /// What may pass on a retry.
    pub fn transient(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            transient: true,
        }
    }

    /// The same, with what to do next.
    pub fn with_hint(self, hint: impl fmt::Display) -> Self {
        Self {
            message: format!("{}\n{hint}", self.message),
            ..self
        }
    }

    /// Whether the same may work later.
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    /// 1 for what the caller can mend, 2 for what may pass.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.transient { 2 } else { 1 })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match &error {
            _ if !error.is_transient() => Self::permanent(message),
            ClientError::Transport(_) | ClientError::Silent(_) => Self::transient(message)
                .with_hint(
                    "Is the server running, and is its address right? --server names another.",
                ),
            _ => Self::transient(message),
        }
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Client(error) => error.into(),
            KeyError::File(error) => error.into(),
            error @ KeyError::NoIdentity(_) => Self::permanent(error.to_string()),
        }
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Lock(error @ LockError::Running(_)) => Self::permanent(error.to_string())
                .with_hint("starchild restart stops it first, starchild stop ends it."),
            error => Self::permanent(error.to_string()),
        }
    }
}

macro_rules! mendable {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::permanent(error.to_string())
            }
        })+
    };
}

mendable!(
    NoHome,
    FileError,
    AgentIdError,
    ConfigError,
    BackendError,
    EditError,
    io::Error
);
