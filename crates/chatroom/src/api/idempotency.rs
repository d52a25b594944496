//! The `Idempotency-Key` header.

use crate::{
    app::App,
    auth::Caller,
    error::{Error, Result},
    services::{checks, idempotency::IdempotentRequest},
};
use axum::{
    extract::FromRequestParts,
    http::{Method, Uri, request::Parts},
};
use serde::Serialize;

/// The most characters of a key.
pub const MAX_KEY_CHARS: usize = 200;

/// The header, where it was sent.
pub struct IdempotencyKey {
    pub key: Option<String>,
    /// What is asked.
    method: Method,
    uri: Uri,
}

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        let header = parts.headers.get("idempotency-key");
        let key = header.map(|value| parse(value.to_str().unwrap_or_default()));
        Ok(Self {
            key: key.transpose()?,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
        })
    }
}

impl IdempotencyKey {
    /// This request of this caller, who may send it again.
    pub fn request(
        &self,
        app: &App,
        caller: &Caller,
        request: &impl Serialize,
    ) -> Result<IdempotentRequest> {
        self.request_with(app, caller, None, request)
    }

    /// The same; a caller without a token is known by the invite.
    pub fn request_with(
        &self,
        app: &App,
        caller: &Caller,
        invite: Option<&str>,
        request: &impl Serialize,
    ) -> Result<IdempotentRequest> {
        let route = format!("{} {}", self.method, self.uri.path());
        let key = self.key.as_deref();
        IdempotentRequest::new(app, caller, invite, key, &route, request)
    }
}

/// A key of whatever a client likes, not too long.
pub fn parse(text: &str) -> Result<String> {
    if text.len() > MAX_KEY_CHARS {
        return Err(Error::bad_request(format!(
            "An idempotency key has at most {MAX_KEY_CHARS} characters"
        )));
    }
    checks::opaque("The idempotency key", text)
}
