//! The installer. What is refused comes as a script too: `curl | sh` hides the status, and an
//! error in JSON would be run.

use crate::{
    api::extract::{Path, Query},
    app::App,
    auth::network::Origin,
    discovery::install::{self, InstallQuery},
    error::{Error, Result},
    services::{joining::invites, visitors},
};
use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use protocol::ErrorCode;

section!(program_alone, into_a_room);

/// A shell script that installs the `starchild` program.
#[utoipa::path(get, path = "/install/cli", tag = "Discovery",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn program_alone(State(app): State<App>) -> Response {
    script(StatusCode::OK, install::program_script(&app.public_url))
}

/// A shell script that installs `starchild` and puts an agent into the room of this invite.
/// Errors are scripts too: they print the reason and exit 1.
#[utoipa::path(get, path = "/install/{short_code}", tag = "Discovery", params(("short_code" = String, Path), InstallQuery),
    responses((status = 200, body = String, content_type = "text/plain"),
              (status = "4XX", body = String, content_type = "text/plain")))]
async fn into_a_room(
    State(app): State<App>,
    origin: Origin,
    code: Result<Path<String>>,
    query: Result<Query<InstallQuery>>,
) -> Response {
    room_script(&app, origin, code, query)
        .await
        .unwrap_or_else(refusal)
}

async fn room_script(
    app: &App,
    origin: Origin,
    code: Result<Path<String>>,
    query: Result<Query<InstallQuery>>,
) -> Result<Response> {
    visitors::count_read(app, origin.network(), "/install").await?;
    let (code, wishes) = (code?.0, query?.0.check()?);
    let refused = match invites::by_short_code(app, &code).await {
        Ok(_) => None,
        Err(error) if error.code() == ErrorCode::Gone => Some(error),
        Err(error) => return Err(error),
    };
    let why = refused.as_ref().map(Error::message);
    let text = install::room_script(&app.public_url, &code, &wishes, why);
    let status = match refused {
        None => StatusCode::OK,
        Some(_) => StatusCode::GONE,
    };
    Ok(script(status, text))
}

fn refusal(error: Error) -> Response {
    let text = install::refusal_script(error.message());
    let (mut parts, _) = error.into_response().into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let mut response = Response::from_parts(parts, Body::from(text));
    as_script(&mut response);
    response
}

fn script(status: StatusCode, text: String) -> Response {
    let mut response = (status, text).into_response();
    as_script(&mut response);
    response
}

/// As plain text, so that a browser shows what would be run.
fn as_script(response: &mut Response) {
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}
