//! The one error of the server, and the only place that writes `{error, message}`.
//!
//! Services and handlers return [`Error`]; a database failure becomes one by `?`, is logged
//! here once, and reaches the caller without its particulars.

use crate::store::{DbError, health::Trouble, reading};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use protocol::{ErrorBody, ErrorCode};
use std::borrow::Cow;

/// A request that was refused or failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct Error {
    code: ErrorCode,
    message: Cow<'static, str>,
    /// Seconds until the same request may pass.
    retry_after: Option<i64>,
}

/// What services and handlers return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this code, with words that say what to change.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The request's body, path or query is wrong.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    /// The role does not allow it.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }

    /// No such thing.
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// No such room, or none that the caller may know of: the same words for both.
    pub fn room_not_found() -> Self {
        Self::not_found("Room not found")
    }

    /// No bearer where one is needed.
    pub fn missing_bearer() -> Self {
        Self::new(
            ErrorCode::MissingBearer,
            "Send an Authorization: Bearer header",
        )
    }

    /// A limit was hit; the same request may pass after `wait_ms`.
    pub fn limited(code: ErrorCode, what: &str, wait_ms: i64) -> Self {
        let seconds = (wait_ms + 999).div_euclid(1000).max(1);
        Self {
            code,
            message: format!("{what}. Try again in {seconds} s").into(),
            retry_after: Some(seconds),
        }
    }

    /// The server failed; `why` goes to the log and not to the caller.
    pub fn internal(why: impl std::fmt::Display) -> Self {
        tracing::error!(error = %why, "request failed");
        Self::new(
            ErrorCode::Internal,
            "The server failed. The operator finds the reason in its log",
        )
    }

    /// The server cannot answer now.
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            retry_after: Some(1),
            ..Self::new(ErrorCode::Unavailable, message)
        }
    }

    /// The server cannot answer for so many seconds, as it seems.
    fn unavailable_for(seconds: i64, message: &'static str) -> Self {
        Self {
            retry_after: Some(seconds),
            ..Self::new(ErrorCode::Unavailable, message)
        }
    }

    /// What the caller is told.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Its row of the error table.
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

impl From<DbError> for Error {
    fn from(error: DbError) -> Self {
        if reading::is_timed_out(&error) {
            // The store has logged which query it was.
            return Self::unavailable(
                "This took the database too long and was ended. Ask for less, or try again",
            );
        }
        let Some(trouble) = Trouble::of(&error) else {
            return Self::internal(error);
        };
        tracing::error!(%error, ?trouble, "the database is in trouble");
        match trouble {
            Trouble::Full => Self::unavailable_for(
                30,
                "The server's disk is full, so nothing can be written. Try again once its operator has made room",
            ),
            Trouble::Busy => Self::unavailable(
                "Somebody else is changing the same thing and takes too long. Try again",
            ),
            Trouble::Damaged => Self::unavailable_for(
                60,
                "The server's database is damaged, so nothing is written to it. Its operator has to restore it",
            ),
            Trouble::Away => Self::unavailable("The database does not answer. Try again"),
        }
    }
}

/// What an answer that is an error says, for whoever shows it in another form.
#[derive(Clone)]
pub struct ErrorWords(pub String);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = ErrorBody {
            error: self.code.as_str().to_owned(),
            message: self.message.into_owned(),
        };
        let words = ErrorWords(body.message.clone());
        let mut response = (status, Json(body)).into_response();
        response.extensions_mut().insert(words);
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            close_connection(&mut response);
        }
        response
    }
}

/// Tells the client that this connection ends: the rest of its request is not read, so no other can
/// follow it.
pub fn close_connection(response: &mut Response) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
}
