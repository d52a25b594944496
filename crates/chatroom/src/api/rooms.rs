//! Rooms.

use crate::{
    api::{
        conditional::IfMatch,
        extract::{Json, Path, Query, Seq, room},
        idempotency::IdempotencyKey,
    },
    app::App,
    auth::{Caller, network::Origin},
    error::{Error, Result},
    services::{
        audit, checks,
        rooms::{
            self, state,
            texts::{self, Text},
        },
        visitors,
    },
};
use axum::{Json as Reply, extract::State, http::StatusCode};
use protocol::{
    AuditLog, CreateRoom, ErrorBody, MyRooms, Ok as Yes, PublicRooms, PublicSummary, Room,
    RoomCreated, RoomState, RoomText, TextHistory, UpdateRoom, UpdateText,
};
use serde::Deserialize;
use utoipa::IntoParams;

section!(
    create,
    mine,
    public,
    public_summary,
    get,
    update,
    read_rules,
    write_rules,
    rules_history,
    read_data,
    write_data,
    data_history,
    read_state,
    read_audit
);

/// A page of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// How many, 50 where absent, 100 at most.
    limit: Option<i64>,
    /// How many to skip.
    offset: Option<i64>,
}

impl PageQuery {
    /// What was asked for, within bounds.
    pub fn bounds(&self) -> Result<(i64, i64)> {
        let limit = self.limit.unwrap_or(50);
        if limit < 1 {
            return Err(Error::bad_request("limit must be at least 1"));
        }
        let offset = checks::offset(self.offset)?;
        Ok((limit.min(100), offset))
    }
}

/// Make a room. The caller becomes its owner. The same `Idempotency-Key` again gives the same room.
#[utoipa::path(post, path = "/rooms", tag = "Rooms", params(("Idempotency-Key" = Option<String>, Header)), request_body = CreateRoom,
    responses((status = 201, body = RoomCreated), (status = "4XX", body = ErrorBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    Json(request): Json<CreateRoom>,
) -> Result<(StatusCode, Reply<RoomCreated>)> {
    let idempotent = key.request(&app, &caller, &request)?;
    let created = rooms::create(&app, &caller, request, &idempotent).await?;
    Ok((StatusCode::CREATED, Reply(created)))
}

/// List the rooms that the caller is a member of.
#[utoipa::path(get, path = "/rooms", tag = "Rooms",
    responses((status = 200, body = MyRooms), (status = "4XX", body = ErrorBody)))]
async fn mine(State(app): State<App>, caller: Caller) -> Result<Reply<MyRooms>> {
    rooms::mine(&app, &caller).await.map(Reply)
}

/// List the public rooms that are not archived. Anonymous.
#[utoipa::path(get, path = "/rooms/public", tag = "Rooms", params(PageQuery),
    responses((status = 200, body = PublicRooms), (status = "4XX", body = ErrorBody)))]
async fn public(
    State(app): State<App>,
    origin: Origin,
    Query(page): Query<PageQuery>,
) -> Result<Reply<PublicRooms>> {
    let (limit, offset) = page.bounds()?;
    visitors::count_read(&app, origin.network(), "/rooms/public").await?;
    rooms::public(&app, limit, offset).await.map(Reply)
}

/// What a visitor may see of a public room. Anonymous; never a user id.
#[utoipa::path(get, path = "/rooms/{id}/public-summary", tag = "Rooms", params(("id" = String, Path)),
    responses((status = 200, body = PublicSummary), (status = "4XX", body = ErrorBody)))]
async fn public_summary(
    State(app): State<App>,
    origin: Origin,
    Path(id): Path<String>,
) -> Result<Reply<PublicSummary>> {
    rooms::public_summary(&app, origin.network(), &room(&id)?)
        .await
        .map(Reply)
}

/// Read a room.
#[utoipa::path(get, path = "/rooms/{id}", tag = "Rooms", params(("id" = String, Path)),
    responses((status = 200, body = Room), (status = "4XX", body = ErrorBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<Room>> {
    rooms::get(&app, &caller, &room(&id)?).await.map(Reply)
}

/// Change a room's name, visibility, chain depth, or whether it is archived. Owner only.
#[utoipa::path(patch, path = "/rooms/{id}", tag = "Rooms", params(("id" = String, Path)), request_body = UpdateRoom,
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<UpdateRoom>,
) -> Result<Reply<Yes>> {
    rooms::update(&app, &caller, &room(&id)?, request).await?;
    Ok(Reply(Yes::YES))
}

/// Read the room's rules.
#[utoipa::path(get, path = "/rooms/{id}/rules", tag = "Rooms", params(("id" = String, Path)),
    responses((status = 200, body = RoomText), (status = "4XX", body = ErrorBody)))]
async fn read_rules(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<RoomText>> {
    texts::read(&app, &caller, &room(&id)?, Text::Rules)
        .await
        .map(Reply)
}

/// Read the rules that there were, newest first, those that hold now included.
#[utoipa::path(get, path = "/rooms/{id}/rules/history", tag = "Rooms", params(("id" = String, Path)),
    responses((status = 200, body = TextHistory), (status = "4XX", body = ErrorBody)))]
async fn rules_history(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<TextHistory>> {
    texts::history(&app, &caller, &room(&id)?, Text::Rules)
        .await
        .map(Reply)
}

/// Replace the room's rules. Owner only; at most 16 KB. With `If-Match` and the version that was seen, a
/// change that came between is not overwritten: 412.
#[utoipa::path(patch, path = "/rooms/{id}/rules", tag = "Rooms", params(("id" = String, Path), ("If-Match" = Option<String>, Header)), request_body = UpdateText,
    responses((status = 200, body = RoomText), (status = "4XX", body = ErrorBody)))]
async fn write_rules(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    seen: IfMatch,
    Json(request): Json<UpdateText>,
) -> Result<Reply<RoomText>> {
    let (room, content) = (room(&id)?, request.content);
    texts::write(&app, &caller, &room, Text::Rules, content, seen.0)
        .await
        .map(Reply)
}

/// Read the room's data: the owner's reference text.
#[utoipa::path(get, path = "/rooms/{id}/data", tag = "Rooms", params(("id" = String, Path)),
    responses((status = 200, body = RoomText), (status = "4XX", body = ErrorBody)))]
async fn read_data(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<RoomText>> {
    texts::read(&app, &caller, &room(&id)?, Text::Data)
        .await
        .map(Reply)
}

/// Read the data that there was, newest first, that which holds now included.
#[utoipa::path(get, path = "/rooms/{id}/data/history", tag = "Rooms", params(("id" = String, Path)),
    responses((status = 200, body = TextHistory), (status = "4XX", body = ErrorBody)))]
async fn data_history(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<TextHistory>> {
    texts::history(&app, &caller, &room(&id)?, Text::Data)
        .await
        .map(Reply)
}

/// Replace the room's data. Owner only; at most 16 KB. With `If-Match` as for the rules.
#[utoipa::path(patch, path = "/rooms/{id}/data", tag = "Rooms", params(("id" = String, Path), ("If-Match" = Option<String>, Header)), request_body = UpdateText,
    responses((status = 200, body = RoomText), (status = "4XX", body = ErrorBody)))]
async fn write_data(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    seen: IfMatch,
    Json(request): Json<UpdateText>,
) -> Result<Reply<RoomText>> {
    let (room, content) = (room(&id)?, request.content);
    texts::write(&app, &caller, &room, Text::Data, content, seen.0)
        .await
        .map(Reply)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Recent {
    /// How many messages, 20 where absent, 100 at most.
    recent: Option<i64>,
    /// Another name for `recent`.
    recent_limit: Option<i64>,
}

/// One look at a room: its members and its newest messages.
#[utoipa::path(get, path = "/rooms/{id}/state", tag = "Rooms", params(("id" = String, Path), Recent),
    responses((status = 200, body = RoomState), (status = "4XX", body = ErrorBody)))]
async fn read_state(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<Recent>,
) -> Result<Reply<RoomState>> {
    let recent = query.recent.or(query.recent_limit).unwrap_or(20);
    if recent < 0 {
        return Err(Error::bad_request("recent must not be negative"));
    }
    state::state(&app, &caller, &room(&id)?, recent.min(100))
        .await
        .map(Reply)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ReadAuditQuery {
    /// Lines after this one.
    #[param(value_type = Option<i64>, minimum = 0, maximum = 9007199254740991_i64)]
    since: Option<Seq>,
    /// How many, 50 where absent, 200 at most.
    limit: Option<i64>,
}

/// Read the room's audit log. Owner only.
#[utoipa::path(get, path = "/rooms/{id}/audit", tag = "Rooms", params(("id" = String, Path), ReadAuditQuery),
    responses((status = 200, body = AuditLog), (status = "4XX", body = ErrorBody)))]
async fn read_audit(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<ReadAuditQuery>,
) -> Result<Reply<AuditLog>> {
    let (id, limit) = (room(&id)?, query.limit.unwrap_or(50));
    if limit < 1 {
        return Err(Error::bad_request("limit must be at least 1"));
    }
    let since = query.since.map_or(0, |line| line.0);
    audit::read(&app, &caller, &id, since, limit.min(200))
        .await
        .map(Reply)
}
