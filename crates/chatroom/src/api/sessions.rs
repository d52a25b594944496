//! One's own sessions.

use crate::{
    api::extract::{Path, Query},
    app::App,
    auth::Caller,
    error::Result,
    services::credentials::sessions,
};
use axum::{Json as Reply, extract::State};
use protocol::{ErrorBody, Sessions, SessionsEnded};
use serde::Deserialize;
use utoipa::IntoParams;

section!(list, end_all, end);

/// List what acts for the caller: identity tokens, room keys, short codes. Takes a user token or an
/// identity token.
#[utoipa::path(get, path = "/auth/sessions", tag = "Identity",
    responses((status = 200, body = Sessions), (status = "4XX", body = ErrorBody)))]
async fn list(State(app): State<App>, caller: Caller) -> Result<Reply<Sessions>> {
    sessions::list(&app, &caller).await.map(Reply)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct EndSessionsQuery {
    /// `current`: all but the one that asks.
    #[param(inline)]
    keep: Option<Keep>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum Keep {
    /// The one that asks.
    Current,
}

/// End all of one's sessions at once, or all but the one that asks.
#[utoipa::path(delete, path = "/auth/sessions", tag = "Identity", params(EndSessionsQuery),
    responses((status = 200, body = SessionsEnded), (status = "4XX", body = ErrorBody)))]
async fn end_all(
    State(app): State<App>,
    caller: Caller,
    Query(which): Query<EndSessionsQuery>,
) -> Result<Reply<SessionsEnded>> {
    let keep_current = matches!(which.keep, Some(Keep::Current));
    sessions::end_all(&app, &caller, keep_current)
        .await
        .map(Reply)
}

/// End one of one's sessions, and what was derived from it.
#[utoipa::path(delete, path = "/auth/sessions/{id}", tag = "Identity", params(("id" = String, Path)),
    responses((status = 200, body = SessionsEnded), (status = "4XX", body = ErrorBody)))]
async fn end(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<SessionsEnded>> {
    sessions::end(&app, &caller, &id).await.map(Reply)
}
