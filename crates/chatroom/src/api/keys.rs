//! Room keys for people's browsers, and short links.

use crate::{
    api::{
        extract::{Json, Path, room},
        idempotency::IdempotencyKey,
    },
    app::App,
    auth::{Caller, network::Origin},
    error::Result,
    services::{credentials::keys, visitors},
};
use axum::{
    Json as Reply,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use protocol::{CreateRoomKey, ErrorBody, KeysRevoked, Ok as Yes, RoomKeyCreated, RoomKeys};

section!(create, list, revoke_all, revoke, follow, revoke_link);

/// Issue a room key for oneself, with a short link. The same `Idempotency-Key` again gives the same
/// key.
#[utoipa::path(post, path = "/rooms/{id}/room-keys", tag = "Room keys", params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = CreateRoomKey,
    responses((status = 201, body = RoomKeyCreated), (status = "4XX", body = ErrorBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(request): Json<CreateRoomKey>,
) -> Result<(StatusCode, Reply<RoomKeyCreated>)> {
    let idempotent = key.request(&app, &caller, &request)?;
    let created = keys::create(&app, &caller, &room(&id)?, request, &idempotent).await?;
    Ok((StatusCode::CREATED, Reply(created)))
}

/// List one's own active room keys.
#[utoipa::path(get, path = "/rooms/{id}/room-keys", tag = "Room keys", params(("id" = String, Path)),
    responses((status = 200, body = RoomKeys), (status = "4XX", body = ErrorBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<RoomKeys>> {
    keys::list(&app, &caller, &room(&id)?).await.map(Reply)
}

/// Revoke all of one's own active room keys.
#[utoipa::path(delete, path = "/rooms/{id}/room-keys", tag = "Room keys", params(("id" = String, Path)),
    responses((status = 200, body = KeysRevoked), (status = "4XX", body = ErrorBody)))]
async fn revoke_all(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<KeysRevoked>> {
    keys::revoke_all(&app, &caller, &room(&id)?)
        .await
        .map(Reply)
}

/// Revoke one of one's own room keys.
#[utoipa::path(delete, path = "/rooms/{id}/room-keys/{jti}", tag = "Room keys", params(("id" = String, Path), ("jti" = String, Path)),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path((id, jti)): Path<(String, String)>,
) -> Result<Reply<Yes>> {
    keys::revoke(&app, &caller, &room(&id)?, &jti).await?;
    Ok(Reply(Yes::YES))
}

/// Follow a short link to the viewer. Anonymous.
#[utoipa::path(get, path = "/k/{code}", tag = "Short codes", params(("code" = String, Path)),
    responses((status = 302, description = "To the viewer"), (status = "4XX", body = ErrorBody)))]
async fn follow(
    State(app): State<App>,
    origin: Origin,
    Path(code): Path<String>,
) -> Result<impl IntoResponse> {
    visitors::count_read(&app, origin.network(), "/k").await?;
    let target = keys::resolve_share_link(&app, &code).await?;
    let headers = [
        (header::LOCATION, target),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((StatusCode::FOUND, headers))
}

/// Revoke a short link. The key behind it stays as it is.
#[utoipa::path(delete, path = "/share-keys/{code}", tag = "Short codes", params(("code" = String, Path)),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn revoke_link(
    State(app): State<App>,
    caller: Caller,
    Path(code): Path<String>,
) -> Result<Reply<Yes>> {
    keys::revoke_link(&app, &caller, &code).await?;
    Ok(Reply(Yes::YES))
}
