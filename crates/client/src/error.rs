//! Everything that can go wrong with a call.

use crate::sse::SseError;
use protocol::ErrorCode;
use std::{error::Error, time::Duration};

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server understood and said no.
    #[error("{message} ({status} {code})")]
    Api {
        /// The HTTP status.
        status: u16,
        /// The word in the body's `error` field.
        code: String,
        /// What happened and what to do next, for people.
        message: String,
        /// How long to wait before the next try, where the server says so.
        retry_after: Option<Duration>,
    },
    /// Something between here and the server said no, or no room server is there.
    #[error("status {0} without an error body: not an answer of a room server")]
    NoErrorBody(u16),
    /// The server was not reached, or the connection broke.
    #[error("no answer from the server: {}", innermost(.0))]
    Transport(#[source] reqwest::Error),
    /// Nothing came for longer than a live stream may be silent.
    #[error("the stream was silent for {0:?}")]
    Silent(Duration),
    /// What came is not what the protocol says.
    #[error("not an answer of a room server: {0}")]
    Protocol(String),
    /// The stream's bytes are no event stream, or one that is out of bounds.
    #[error("the event stream is broken: {0}")]
    Sse(#[from] SseError),
    /// The address or the token cannot be used.
    #[error("{0}")]
    Config(String),
}

impl ClientError {
    /// The row of the error table, where the server gave one that is known.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Api { code, .. } => code.parse().ok(),
            _ => None,
        }
    }

    /// The HTTP status, where the server answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Api { status, .. } | Self::NoErrorBody(status) => Some(*status),
            _ => None,
        }
    }

    /// Whether no connection to the server could be made.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Transport(error) if error.is_connect())
    }

    /// Whether the same call may succeed later without being changed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Api { status, .. } | Self::NoErrorBody(status) => {
                *status == 429 || *status >= 500
            }
            Self::Transport(_) | Self::Silent(_) => true,
            Self::Protocol(_) | Self::Sse(_) | Self::Config(_) => false,
        }
    }
}

/// The cause that says something: "connection refused" rather than "error sending request".
fn innermost(error: &reqwest::Error) -> &dyn Error {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

impl From<reqwest::Error> for ClientError {
    /// The address is left out: it may carry a token.
    fn from(error: reqwest::Error) -> Self {
        Self::Transport(error.without_url())
    }
}
