//! Why a request was refused, in A2A's words.

use crate::{api::mcp::ApiRefusal, error::Error};
use protocol::{
    ErrorCode,
    a2a::{A2aError, ErrorKind},
};

/// What a handler here returns.
pub type Result<T, E = A2aFailure> = std::result::Result<T, E>;

/// An error of A2A, made of those of the layers below.
#[derive(Debug)]
pub struct A2aFailure(pub A2aError);

impl A2aFailure {
    /// What is told of a task to somebody who may not see it: that there is none.
    pub fn of_task(self) -> Self {
        match self.0.kind {
            ErrorKind::NotFound | ErrorKind::PermissionDenied => Self(A2aError::task_not_found()),
            _ => self,
        }
    }
}

impl From<A2aError> for A2aFailure {
    fn from(error: A2aError) -> Self {
        Self(error)
    }
}

impl From<Error> for A2aFailure {
    fn from(error: Error) -> Self {
        Self(A2aError::new(kind(error.code()), error.message()))
    }
}

impl From<ApiRefusal> for A2aFailure {
    fn from(refused: ApiRefusal) -> Self {
        let code = refused.0.split_once(": ").and_then(|(code, words)| {
            let code: ErrorCode = code.parse().ok()?;
            Some((code, words))
        });
        Self(match code {
            Some((code, words)) => A2aError::new(kind(code), words),
            None => A2aError::invalid(refused.0),
        })
    }
}

fn kind(code: ErrorCode) -> ErrorKind {
    match code.status() {
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::PermissionDenied,
        404 => ErrorKind::NotFound,
        405 => ErrorKind::MethodNotFound,
        409 | 410 | 412 => ErrorKind::Conflict,
        429 => ErrorKind::ResourceExhausted,
        503 => ErrorKind::Unavailable,
        500.. => ErrorKind::Internal,
        _ => ErrorKind::InvalidParams,
    }
}
