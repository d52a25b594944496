//! The live stream.

use crate::{
    api::extract::{Path, Query, Render, room},
    app::App,
    auth::{Caller, StreamCaller, network::Origin},
    error::{Error, Result},
    events::{self, ConnectionCut, Form, Reader, StreamSettings},
    keyed_permits::KeyedPermit,
    services::members,
};
use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use protocol::{Cursor, ErrorBody, ErrorCode, UserId};
use serde::Deserialize;
use std::{convert::Infallible, time::Duration};
use utoipa::IntoParams;

section!(stream);

/// When to look again whether a stream has closed.
const FULL_WAIT_MS: i64 = 10_000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct StreamQuery {
    /// A cursor to resume from: a message's seq, or the `id:` of any event.
    since: Option<String>,
    /// 1 to see how agents' answers grow, as `agent_delta`, how far one has read elsewhere, as `read`, and
    /// that something happened in one's other rooms, as `inbox`.
    deltas: Option<String>,
    /// A room key, for clients that cannot send headers.
    #[serde(rename = "token")]
    _token: Option<String>,
    /// `html`: each message also has `content_html`.
    #[param(inline)]
    render: Option<Render>,
}

/// Follow the room as it happens, as server-sent events.
#[utoipa::path(get, path = "/rooms/{id}/stream", tag = "Messages",
    params(("id" = String, Path), ("Last-Event-ID" = Option<String>, Header), StreamQuery),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "4XX", body = ErrorBody)))]
async fn stream(
    State(app): State<App>,
    StreamCaller(caller): StreamCaller,
    origin: Origin,
    cut: Option<Extension<ConnectionCut>>,
    Path(id): Path<String>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let id = room(&id)?;
    let entry = members::own_access(&app, &caller, &id).await?;
    let cursor = cursor(&headers, query.since.as_deref())?;
    let stream_permits = stream_permits(&app, &caller, &entry.member.user_id, origin)?;
    let reader = Reader {
        is_oneself: entry.is_oneself(),
        expires_at: entry.key.as_ref().map(|key| key.expires_at),
        right: entry.into_read_right(&caller),
        ip: origin.ip,
        denylist: app.denylist.clone(),
    };
    let settings = StreamSettings {
        heartbeat: Duration::from_secs(app.config.stream.heartbeat_seconds.max(1)),
        replay_limit: app.config.stream.replay_limit,
        deltas: matches!(query.deltas.as_deref(), Some("1" | "true")),
        form: match query.render {
            None => Form::Plain,
            Some(Render::Html) => Form::WithMessages,
        },
    };
    let cut = cut.map(|cut| cut.0).unwrap_or_default();
    let at_work = app.live.at_work();
    let frames = events::open(&app.hub, at_work, &app.db, reader, cursor, settings, cut).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that buffer would hold events back.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let frames = frames.inspect(move |_| {
        // Held for as long as the stream is open.
        let _ = &stream_permits;
    });
    let body = match query.render {
        None => Body::from_stream(frames.map(|frames| Ok::<_, Infallible>(frames.into_bytes()))),
        Some(Render::Html) => Body::from_stream(frames.then(move |frames| {
            let app = app.clone();
            async move { Ok::<_, Infallible>(app.renderer.frames(frames).await) }
        })),
    };
    Ok((headers, body).into_response())
}

/// Permits for the stream, among those that the key and the address may have open.
fn stream_permits(
    app: &App,
    caller: &Caller,
    user: &UserId,
    origin: Origin,
) -> Result<[KeyedPermit<String>; 2]> {
    let limits = &app.config.limits;
    let key = match caller {
        Caller::RoomKey(key) => format!("key {}", key.jti),
        _ => format!("user {user}"),
    };
    let address = format!("address {}", origin.network());
    let enter = |whose, most, words| {
        let permit = app.open_streams.try_acquire(whose, most);
        permit.ok_or_else(|| Error::limited(ErrorCode::RateLimited, words, FULL_WAIT_MS))
    };
    Ok([
        enter(
            key,
            limits.streams_per_key,
            "Too many streams are open with this key; close one",
        )?,
        enter(
            address,
            limits.streams_per_address,
            "Too many streams are open from your address; close one",
        )?,
    ])
}

/// Where to resume from. A client that reconnects sends the newest cursor it knows in the header,
/// while the query is still the one it began with.
fn cursor(headers: &HeaderMap, since: Option<&str>) -> Result<Option<Cursor>> {
    let header = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    header
        .filter(|text| !text.is_empty())
        .or(since)
        .map(|text| {
            text.parse()
                .map_err(|why: protocol::BadId| Error::bad_request(why.0))
        })
        .transpose()
}
