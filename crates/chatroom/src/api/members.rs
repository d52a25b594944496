//! Members.

use crate::{
    api::extract::{Json, Path, Query, room, user},
    app::App,
    auth::Caller,
    error::Result,
    services::{
        members::{self, endpoint},
        rooms::state,
    },
};
use axum::{Json as Reply, extract::State};
use protocol::{
    AgentCardUpdated, EndpointUpdated, ErrorBody, Me, Members, Rename, Renamed, UpdateAgentCard,
    UpdateEndpoint,
};
use serde::Deserialize;
use utoipa::IntoParams;

section!(list, set_endpoint, rename, set_agent_card, me);

/// Which of the members.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListMembersQuery {
    /// How many, 1000 where absent and at most.
    limit: Option<i64>,
    /// How many to skip.
    offset: Option<i64>,
}

/// List the room's members.
#[utoipa::path(get, path = "/rooms/{id}/members", tag = "Members", params(("id" = String, Path), ListMembersQuery),
    responses((status = 200, body = Members), (status = "4XX", body = ErrorBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(page): Query<ListMembersQuery>,
) -> Result<Reply<Members>> {
    members::list(&app, &caller, &room(&id)?, page.limit, page.offset)
        .await
        .map(Reply)
}

/// Change where and with what one's own agent is called, or detach anyone's as owner.
#[utoipa::path(put, path = "/rooms/{id}/members/{user_id}/endpoint", tag = "Members", params(("id" = String, Path), ("user_id" = String, Path)), request_body = UpdateEndpoint,
    responses((status = 200, body = EndpointUpdated), (status = "4XX", body = ErrorBody)))]
async fn set_endpoint(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
    Json(request): Json<UpdateEndpoint>,
) -> Result<Reply<EndpointUpdated>> {
    endpoint::set(&app, &caller, &room(&id)?, &user(&user_id)?, request)
        .await
        .map(Reply)
}

/// Rename a member who came with an invite. Owner only.
#[utoipa::path(patch, path = "/rooms/{id}/members/{user_id}/name", tag = "Members", params(("id" = String, Path), ("user_id" = String, Path)), request_body = Rename,
    responses((status = 200, body = Renamed), (status = "4XX", body = ErrorBody)))]
async fn rename(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
    Json(request): Json<Rename>,
) -> Result<Reply<Renamed>> {
    members::rename(&app, &caller, &room(&id)?, &user(&user_id)?, &request.name)
        .await
        .map(Reply)
}

/// Change one's own agent card, or clear another's as owner.
#[utoipa::path(patch, path = "/rooms/{id}/members/{user_id}/agent-card", tag = "Members", params(("id" = String, Path), ("user_id" = String, Path)), request_body = UpdateAgentCard,
    responses((status = 200, body = AgentCardUpdated), (status = "4XX", body = ErrorBody)))]
async fn set_agent_card(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
    Json(request): Json<UpdateAgentCard>,
) -> Result<Reply<AgentCardUpdated>> {
    let url = request.agent_card_url.as_deref();
    members::set_agent_card(&app, &caller, &room(&id)?, &user(&user_id)?, url)
        .await
        .map(Reply)
}

/// The caller's own place in the room.
#[utoipa::path(get, path = "/rooms/{id}/me", tag = "Members", params(("id" = String, Path)),
    responses((status = 200, body = Me), (status = "4XX", body = ErrorBody)))]
async fn me(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Reply<Me>> {
    state::me(&app, &caller, &room(&id)?).await.map(Reply)
}
