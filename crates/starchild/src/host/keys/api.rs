//! `/api/keys`: making and ending keys. Without a bearer, so from this machine alone, and by no page
//! in a browser.

use super::{
    KeyStoreError, Keys, MAX_PER_MINUTE, MAX_TTL_SECONDS, NewKey, RateLimit, Scope, Wanted,
};
use crate::{
    daemon::credentials::key::now,
    host::refusal::{Refusal, read_json},
    http_server::{Peer, calls_loopback},
};
use axum::{
    Extension, Json, Router,
    body::Body,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const MAX_BODY_BYTES: usize = 16 * 1024;
const MAX_LABEL_CHARS: usize = 200;
const MAX_CAPABILITIES_BYTES: usize = 4096;
const DEFAULT_PER_MINUTE: u32 = 30;
const DEFAULT_TTL_SECONDS: i64 = 90 * 24 * 3600;
/// What a proxy adds to what it passes on.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// The routes, for callers on this machine alone.
pub fn router(keys: Arc<Keys>) -> Router {
    Router::new()
        .route("/api/keys", get(list).post(create))
        .route("/api/keys/{prefix}", delete(end))
        .route("/api/keys/{prefix}/rotate", post(rotate))
        .route("/api/keys/{prefix}/touch", post(touch))
        .layer(middleware::from_fn(from_this_machine))
        .with_state(keys)
}

/// Lets through programs on this machine. A page in a browser here says where it comes from, or
/// calls a name of its own that points here; a proxy that runs here says for whom it calls.
async fn from_this_machine(
    Extension(Peer(peer)): Extension<Peer>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let headers = request.headers();
    let refused = |why| Err(Refusal::forbidden(why));
    if !peer.ip().to_canonical().is_loopback() {
        return refused("keys are managed from the host's own machine");
    }
    if FORWARDED.iter().any(|name| headers.contains_key(*name)) {
        return refused("keys are not managed through a proxy");
    }
    if !calls_loopback(headers) {
        return refused("call it by localhost or 127.0.0.1");
    }
    if is_from_a_page(headers) {
        return refused("pages in a browser do not manage keys");
    }
    Ok(next.run(request).await)
}

fn is_from_a_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    headers.contains_key(header::ORIGIN) || site.is_some_and(|site| site != "none")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateKey {
    scope: Scope,
    ttl_seconds: Option<i64>,
    label: Option<String>,
    rate_limit: Option<RateLimit>,
    capabilities: Option<Value>,
}

impl CreateKey {
    fn checked(self) -> Result<Wanted, Refusal> {
        let wanted = Wanted {
            scope: self.scope,
            ttl_seconds: self.ttl_seconds.unwrap_or(DEFAULT_TTL_SECONDS),
            label: self.label.unwrap_or_default(),
            rate_limit: self.rate_limit.unwrap_or(RateLimit {
                per_minute: DEFAULT_PER_MINUTE,
            }),
            capabilities: self.capabilities,
        };
        if !(1..=MAX_TTL_SECONDS).contains(&wanted.ttl_seconds) {
            return Err(Refusal::bad_request(format!(
                "ttl_seconds is 1 to {MAX_TTL_SECONDS}"
            )));
        }
        if !(1..=MAX_PER_MINUTE).contains(&wanted.rate_limit.per_minute) {
            return Err(Refusal::bad_request(format!(
                "rate_limit.per_minute is 1 to {MAX_PER_MINUTE}"
            )));
        }
        let plain = |c: char| !c.is_control();
        if wanted.label.chars().count() > MAX_LABEL_CHARS || !wanted.label.chars().all(plain) {
            return Err(Refusal::bad_request(format!(
                "label is one line of at most {MAX_LABEL_CHARS} characters"
            )));
        }
        let size = |value: &Value| value.to_string().len();
        if wanted.capabilities.as_ref().map_or(0, size) > MAX_CAPABILITIES_BYTES {
            return Err(Refusal::bad_request(format!(
                "capabilities has at most {MAX_CAPABILITIES_BYTES} bytes"
            )));
        }
        Ok(wanted)
    }
}

async fn create(State(keys): State<Arc<Keys>>, body: Body) -> Result<Response, Refusal> {
    let wanted: CreateKey = read_json(body, MAX_BODY_BYTES).await?;
    let made = keys.create(wanted.checked()?, now())?;
    tracing::info!(prefix = made.key.prefix, scope = %made.key.scope, "a key is made");
    Ok(no_store(StatusCode::CREATED, &made))
}

#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    include_expired: bool,
}

async fn list(State(keys): State<Arc<Keys>>, Query(query): Query<ListQuery>) -> Response {
    let listed = keys.list(query.include_expired, now());
    no_store(StatusCode::OK, &json!({ "keys": listed }))
}

async fn end(
    State(keys): State<Arc<Keys>>,
    Path(prefix): Path<String>,
) -> Result<Response, Refusal> {
    keys.delete(&prefix, now())?;
    tracing::info!(prefix, "a key is ended");
    Ok(no_store(StatusCode::OK, &json!({ "ok": true })))
}

async fn rotate(
    State(keys): State<Arc<Keys>>,
    Path(prefix): Path<String>,
) -> Result<Response, Refusal> {
    let made: NewKey = keys.rotate(&prefix, now())?;
    tracing::info!(old = prefix, new = made.key.prefix, "a key is rotated");
    Ok(no_store(StatusCode::OK, &made))
}

async fn touch(
    State(keys): State<Arc<Keys>>,
    Path(prefix): Path<String>,
) -> Result<Response, Refusal> {
    let key = keys.touch(&prefix, now())?;
    Ok(no_store(StatusCode::OK, &json!({ "key": key })))
}

fn no_store(status: StatusCode, body: &impl serde::Serialize) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

impl From<KeyStoreError> for Refusal {
    fn from(error: KeyStoreError) -> Self {
        match error {
            KeyStoreError::Unknown(_) => Self::not_found(error.to_string()),
            KeyStoreError::TooMany => Self::too_many(error.to_string()),
            KeyStoreError::File(_) => Self::internal(&error),
        }
    }
}
