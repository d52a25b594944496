//! The CLI bridge and its short codes.

use crate::{
    api::extract::{Json, Path, Query, read_body},
    app::App,
    auth::{self, Caller, network::Origin},
    error::{Error, Result},
    services::{credentials::cli_keys, delivery::bridge},
};
use axum::{
    Json as Reply,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use protocol::{CliKeyCreated, CliKeys, CreateCliKey, ErrorBody, Ok as Yes};
use serde::Deserialize;
use std::{io, time::Duration};
use utoipa::IntoParams;

/// The largest body that is passed on.
const MAX_BODY: usize = 256 * 1024;

section!(pass_on, create, list, revoke);

/// Ask one's own agent, with a short code. The answer comes as the agent sends it.
#[utoipa::path(post, path = "/agent/chat/stream", tag = "CLI bridge", request_body = serde_json::Value,
    params(("X-Starchild-Container" = Option<String>, Header, description = "Which agent, where the bearer is no short code")),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "4XX", body = ErrorBody)))]
async fn pass_on(State(app): State<App>, origin: Origin, request: Request) -> Result<Response> {
    let headers = request.headers().clone();
    let bearer = auth::bearer(&headers)?.ok_or_else(Error::missing_bearer)?;
    let body = read_body(&app, request, MAX_BODY).await?;
    let container = container(&headers)?;
    let answer = bridge::pass_on(&app, bearer, container, origin.network(), body).await?;
    let idle = Duration::from_secs(app.config.bridge.idle_seconds);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    if let Some(kind) = answer.headers().get(header::CONTENT_TYPE) {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, kind.clone());
    }
    let head = [
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that buffer would hold the answer back.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    *response.body_mut() = Body::from_stream(chunks(answer, idle));
    Ok((head, response).into_response())
}

/// The answer's bytes as they come; one that breaks off or pauses too long breaks off here too.
fn chunks(
    answer: reqwest::Response,
    idle: Duration,
) -> impl futures_util::Stream<Item = io::Result<bytes::Bytes>> + Send {
    stream::unfold(Some(answer), move |answer| async move {
        let mut answer = answer?;
        match tokio::time::timeout(idle, answer.chunk()).await {
            Ok(Ok(Some(bytes))) => Some((Ok(bytes), Some(answer))),
            Ok(Ok(None)) => None,
            Ok(Err(_)) | Err(_) => Some((Err(io::Error::other("the agent broke off")), None)),
        }
    })
    .fuse()
}

fn container(headers: &HeaderMap) -> Result<Option<&str>> {
    headers
        .get("x-starchild-container")
        .map(|value| {
            value
                .to_str()
                .map_err(|_| Error::bad_request("X-Starchild-Container must be printable ASCII"))
        })
        .transpose()
}

/// Make a short code for a command line.
#[utoipa::path(post, path = "/cli-keys", tag = "CLI bridge", request_body = CreateCliKey,
    responses((status = 201, body = CliKeyCreated), (status = "4XX", body = ErrorBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Json(request): Json<CreateCliKey>,
) -> Result<(StatusCode, Reply<CliKeyCreated>)> {
    let created = cli_keys::create(&app, &caller, request).await?;
    Ok((StatusCode::CREATED, Reply(created)))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListCliKeysQuery {
    /// Whether to list revoked codes too.
    #[serde(default)]
    include_revoked: bool,
}

/// List one's own short codes.
#[utoipa::path(get, path = "/cli-keys", tag = "CLI bridge", params(ListCliKeysQuery),
    responses((status = 200, body = CliKeys), (status = "4XX", body = ErrorBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(which): Query<ListCliKeysQuery>,
) -> Result<Reply<CliKeys>> {
    cli_keys::list(&app, &caller, which.include_revoked)
        .await
        .map(Reply)
}

/// Revoke one of one's own short codes. The bearer behind it stays as it is.
#[utoipa::path(delete, path = "/cli-keys/{code}", tag = "CLI bridge", params(("code" = String, Path)),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path(code): Path<String>,
) -> Result<Reply<Yes>> {
    cli_keys::revoke(&app, &caller, &code).await?;
    Ok(Reply(Yes::YES))
}
