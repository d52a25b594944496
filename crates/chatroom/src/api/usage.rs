//! What answers cost, and what agents may spend.

use crate::{
    api::extract::{Json, Path, Query, room, user},
    app::App,
    auth::Caller,
    error::Result,
    services::spending::{usage, wake},
};
use axum::{Json as Reply, extract::State};
use protocol::{ErrorBody, UsageReport, WakePolicy, WakeView};
use serde::Deserialize;
use utoipa::IntoParams;

section!(of_room, of_caller, get_wake, set_wake);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Period {
    /// How many days, today included: 30 where absent, 366 at most.
    #[param(minimum = 1, maximum = 366)]
    days: Option<i64>,
}

/// What agents spent in a room, by day and agent.
#[utoipa::path(get, path = "/rooms/{id}/usage", tag = "Usage", params(("id" = String, Path), Period),
    responses((status = 200, body = UsageReport), (status = "4XX", body = ErrorBody)))]
async fn of_room(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(period): Query<Period>,
) -> Result<Reply<UsageReport>> {
    usage::of_room(&app, &caller, &room(&id)?, period.days)
        .await
        .map(Reply)
}

/// What agents spent in the caller's rooms, and the caller's own agent anywhere.
#[utoipa::path(get, path = "/usage", tag = "Usage", params(Period),
    responses((status = 200, body = UsageReport), (status = "4XX", body = ErrorBody)))]
async fn of_caller(
    State(app): State<App>,
    caller: Caller,
    Query(period): Query<Period>,
) -> Result<Reply<UsageReport>> {
    usage::of_caller(&app, &caller, period.days)
        .await
        .map(Reply)
}

/// What wakes a member, what it may spend, and what it has spent today.
#[utoipa::path(get, path = "/rooms/{id}/members/{user_id}/wake", tag = "Usage", params(("id" = String, Path), ("user_id" = String, Path)),
    responses((status = 200, body = WakeView), (status = "4XX", body = ErrorBody)))]
async fn get_wake(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
) -> Result<Reply<WakeView>> {
    wake::get(&app, &caller, &room(&id)?, &user(&user_id)?)
        .await
        .map(Reply)
}

/// Set what wakes a member and what it may spend, as the agent, its owner or the room's owner.
#[utoipa::path(put, path = "/rooms/{id}/members/{user_id}/wake", tag = "Usage", params(("id" = String, Path), ("user_id" = String, Path)), request_body = WakePolicy,
    responses((status = 200, body = WakeView), (status = "4XX", body = ErrorBody)))]
async fn set_wake(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
    Json(policy): Json<WakePolicy>,
) -> Result<Reply<WakeView>> {
    wake::set(&app, &caller, &room(&id)?, &user(&user_id)?, policy)
        .await
        .map(Reply)
}
