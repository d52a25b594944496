//! Requests that the host refuses: a code, and words that say what to change.

use axum::{
    Json,
    body::{Body, Bytes},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::{fmt::Display, time::Duration};

/// How long a body may take to come.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// Why a request was refused.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    error: &'static str,
    message: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            error,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The request cannot be understood.
    pub fn bad_request(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", why)
    }

    /// There is no bearer.
    pub fn missing_bearer() -> Self {
        let why = "send a key of this host as Authorization: Bearer sk_…";
        Self::new(StatusCode::UNAUTHORIZED, "missing_bearer", why)
    }

    /// No key of ours, or one that has ended.
    pub fn key_invalid() -> Self {
        let why = "this host does not know the key, or it has ended; have its owner make a new one";
        Self::new(StatusCode::UNAUTHORIZED, "key_invalid", why)
    }

    /// A key for something else.
    pub fn scope_insufficient() -> Self {
        let why = "the key is for another thread";
        Self::new(StatusCode::FORBIDDEN, "key_scope_insufficient", why)
    }

    /// Not from there.
    pub fn forbidden(why: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", why)
    }

    /// There is no such thing.
    pub fn not_found(why: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", why)
    }

    /// There are too many of them.
    pub fn too_many(why: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "too_many_keys", why)
    }

    /// Too many calls.
    pub fn rate_limited(after: Duration) -> Self {
        let seconds = after.as_secs() + 1;
        let why = format!("the key was used too often; try again in {seconds} s");
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", why);
        Self {
            retry_after: Some(Duration::from_secs(seconds)),
            ..refusal
        }
    }

    /// Too much is going on.
    pub fn busy() -> Self {
        let why = "the agent has its hands full; try again in a moment";
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", why);
        Self {
            retry_after: Some(Duration::from_secs(5)),
            ..refusal
        }
    }

    /// In words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Something on this machine failed. The caller need not know what.
    pub fn internal(error: &dyn Display) -> Self {
        tracing::error!(%error, "a request failed");
        let why = "the host failed; its log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", why)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let told = Json(json!({ "error": self.error, "message": self.message }));
        let mut response = (self.status, told).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, after.as_secs().into());
        }
        // What is left of a body that was not read must not be taken for the next request.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Reads a JSON object of at most so many bytes, in time.
pub async fn read_json<T: DeserializeOwned>(body: Body, most: usize) -> Result<T, Refusal> {
    let bytes = read_bytes(body, most).await?;
    serde_json::from_slice(&bytes).map_err(|error| Refusal::bad_request(error.to_string()))
}

/// Reads a body of at most so many bytes, in time.
pub async fn read_bytes(body: Body, most: usize) -> Result<Bytes, Refusal> {
    let read = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, most)).await;
    match read {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let why = format!("the body is over {most} bytes, or broke off");
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            Err(Refusal::new(status, "payload_too_large", why))
        }
        Err(_) => {
            let why = "the body did not come in time";
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", why))
        }
    }
}
