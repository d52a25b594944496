//! Finding one's way in: the agent card, the skills, the program for agents' owners.

use super::{
    conditional::{etag, is_held},
    extract::Path,
};
use crate::{
    app::App,
    auth::secrets::sha256_hex,
    discovery::{
        card,
        programs::{Platform, Program},
        skills::{self, Index},
    },
    error::{Error, Result},
};
use axum::{
    Json as Reply,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use protocol::ErrorBody;
use tokio_util::io::ReaderStream;

/// What is read of a program's file at once.
const PIECE: usize = 64 * 1024;

section!(agent_card, skill_index, skill, program);

/// What the server is and how an agent joins a room, as an A2A agent card.
#[utoipa::path(get, path = "/.well-known/agent-card.json", tag = "Discovery",
    responses((status = 200, body = Object), (status = 304, description = "Not changed")))]
async fn agent_card(State(app): State<App>, headers: HeaderMap) -> Response {
    let card = card::describe(&app.public_url).to_string();
    let head = [
        (header::ETAG, etag(&sha256_hex(card.as_bytes()))),
        (header::CACHE_CONTROL, "public, max-age=300".to_owned()),
        (header::CONTENT_TYPE, "application/json".to_owned()),
    ];
    match is_held(&headers, &head[0].1) {
        true => (StatusCode::NOT_MODIFIED, head).into_response(),
        false => (head, card).into_response(),
    }
}

/// The skills that there are.
#[utoipa::path(get, path = "/skills/index.json", tag = "Discovery", responses((status = 200, body = Index)))]
async fn skill_index(State(app): State<App>) -> Reply<Index> {
    Reply(skills::index(&app.public_url))
}

/// A skill, as `{name}.tar.gz`: one folder with a SKILL.md and its tools.
#[utoipa::path(get, path = "/skills/{archive}", tag = "Discovery", params(("archive" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/gzip"),
              (status = 304, description = "Not changed"), (status = "4XX", body = ErrorBody)))]
async fn skill(Path(archive): Path<String>, headers: HeaderMap) -> Result<Response> {
    let name = archive.strip_suffix(".tar.gz");
    let skill = name
        .and_then(skills::find)
        .ok_or_else(|| Error::not_found("No such skill; /skills/index.json lists them all"))?;
    let head = [
        (header::ETAG, etag(&skill.sha256)),
        (header::CACHE_CONTROL, "public, max-age=300".to_owned()),
        (header::CONTENT_TYPE, "application/gzip".to_owned()),
    ];
    Ok(match is_held(&headers, &head[0].1) {
        true => (StatusCode::NOT_MODIFIED, head).into_response(),
        false => (head, skill.archive.clone()).into_response(),
    })
}

/// The `starchild` program for a platform, or its SHA-256 where `.sha256` is appended.
#[utoipa::path(get, path = "/starchild-{platform}", tag = "Discovery", params(("platform" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
              (status = 304, description = "Not changed"), (status = "4XX", body = ErrorBody)))]
async fn program(
    State(app): State<App>,
    Path(wanted): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let (name, digest_only) = match wanted.strip_suffix(".sha256") {
        Some(name) => (name, true),
        None => (wanted.as_str(), false),
    };
    let platform = Platform::named(name).ok_or_else(unknown_platform)?;
    let program = open(&app, platform).await?;
    if digest_only {
        let line = format!("{}  starchild-{}\n", program.sha256, platform.name());
        return Ok(([(header::CACHE_CONTROL, "no-cache")], line).into_response());
    }
    let head = [
        (header::ETAG, etag(&program.sha256)),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
    ];
    if is_held(&headers, &head[0].1) {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    let content = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, program.length.to_string()),
    ];
    let file = tokio::fs::File::from_std(program.file);
    let pieces = ReaderStream::with_capacity(file, PIECE);
    Ok((head, content, Body::from_stream(pieces)).into_response())
}

async fn open(app: &App, platform: Platform) -> Result<Program> {
    let programs = app.programs.clone();
    let opened = tokio::task::spawn_blocking(move || programs.open(platform)).await;
    let opened = opened.map_err(Error::internal)?.map_err(Error::internal)?;
    opened.ok_or_else(|| {
        Error::not_found(format!(
            "This server has no starchild for {name}. Its operator can add it: put the program, \
             named starchild-{name}, beside sc-chatroom or into the folder that assets.folder names",
            name = platform.name()
        ))
    })
}

fn unknown_platform() -> Error {
    let names = Platform::ALL.map(Platform::name).join(", ");
    Error::not_found(format!("No such platform; there are {names}"))
}
