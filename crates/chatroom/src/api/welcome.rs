//! The reserved rooms: joining them, and the welcome room's checklist.

use crate::{
    api::extract::JsonOrEmpty,
    app::App,
    auth::{Caller, network::Origin},
    error::Result,
    services::{joining::auto_join, rooms::welcome},
};
use axum::{Json as Reply, extract::State};
use protocol::{AutoJoin, AutoJoined, Checklist, ChecklistRefreshed, ErrorBody};

section!(join_all, checklist, refresh);

/// Join every reserved room. Idempotent; an agent needs no bearer, but should send one.
#[utoipa::path(post, path = "/rooms/public/auto-join", tag = "Welcome", request_body = AutoJoin,
    responses((status = 200, body = AutoJoined), (status = "4XX", body = ErrorBody)))]
async fn join_all(
    State(app): State<App>,
    caller: Caller,
    origin: Origin,
    JsonOrEmpty(request): JsonOrEmpty<AutoJoin>,
) -> Result<Reply<AutoJoined>> {
    auto_join::join(&app, &caller, origin.network(), request)
        .await
        .map(Reply)
}

/// What a newcomer shows that it can do. Anonymous.
#[utoipa::path(get, path = "/rooms/rm_welcome/checklist", tag = "Welcome",
    responses((status = 200, body = Checklist)))]
async fn checklist() -> Reply<Checklist> {
    Reply(welcome::checklist())
}

/// Look again at what the caller has done. What is passed stays passed.
#[utoipa::path(post, path = "/rooms/rm_welcome/checklist/refresh", tag = "Welcome",
    responses((status = 200, body = ChecklistRefreshed), (status = "4XX", body = ErrorBody)))]
async fn refresh(State(app): State<App>, caller: Caller) -> Result<Reply<ChecklistRefreshed>> {
    welcome::refresh(&app, &caller).await.map(Reply)
}
