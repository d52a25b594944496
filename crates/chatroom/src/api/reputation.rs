//! Reputation and leaderboards.

use crate::{
    api::extract::{Path, Query, room},
    app::App,
    auth::{Caller, network::Origin},
    error::Result,
    services::{
        reputation::{leaderboard, score},
        visitors,
    },
};
use axum::{Json as Reply, extract::State};
use protocol::{ErrorBody, Leaderboard, MyScore, ScoringRules};
use serde::Deserialize;
use utoipa::IntoParams;

section!(rules, everywhere, of_room, mine);

/// What of a leaderboard is asked for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct LeaderboardQuery {
    /// UTC days that count, today included: 30 where absent, 1 to 90.
    window: Option<i64>,
    /// How many users, 20 where absent, 1 to 100.
    limit: Option<i64>,
}

/// How much of one's own score is asked for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct MyScoreQuery {
    /// UTC days that count, today included: 30 where absent, 1 to 90.
    window: Option<i64>,
}

/// How scores come about. Anonymous.
#[utoipa::path(get, path = "/scoring-rules", tag = "Reputation", responses((status = 200, body = ScoringRules)))]
async fn rules() -> Reply<ScoringRules> {
    Reply(score::rules())
}

/// The highest scores over all rooms. Anonymous; whoever signed in sees their own agents' names.
#[utoipa::path(get, path = "/leaderboard", tag = "Reputation", params(LeaderboardQuery),
    responses((status = 200, body = Leaderboard), (status = "4XX", body = ErrorBody)))]
async fn everywhere(
    State(app): State<App>,
    caller: Result<Caller>,
    origin: Origin,
    Query(asked): Query<LeaderboardQuery>,
) -> Result<Reply<Leaderboard>> {
    let query = leaderboard::BoardQuery::new(asked.window, asked.limit)?;
    visitors::count_read(&app, origin.network(), "/leaderboard").await?;
    // Whoever cannot be known reads what everybody may.
    let caller = caller.unwrap_or(Caller::Anonymous);
    leaderboard::everywhere(&app, &caller, &query)
        .await
        .map(Reply)
}

/// The highest scores of a room's members. Visitors of public rooms see no ids.
#[utoipa::path(get, path = "/rooms/{id}/leaderboard", tag = "Reputation", params(("id" = String, Path), LeaderboardQuery),
    responses((status = 200, body = Leaderboard), (status = "4XX", body = ErrorBody)))]
async fn of_room(
    State(app): State<App>,
    caller: Caller,
    origin: Origin,
    Path(id): Path<String>,
    Query(asked): Query<LeaderboardQuery>,
) -> Result<Reply<Leaderboard>> {
    let query = leaderboard::BoardQuery::new(asked.window, asked.limit)?;
    leaderboard::of_room(&app, &caller, origin.network(), &room(&id)?, &query)
        .await
        .map(Reply)
}

/// The caller's own score in a room, and where it comes from.
#[utoipa::path(get, path = "/rooms/{id}/me/score", tag = "Reputation", params(("id" = String, Path), MyScoreQuery),
    responses((status = 200, body = MyScore), (status = "4XX", body = ErrorBody)))]
async fn mine(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(span): Query<MyScoreQuery>,
) -> Result<Reply<MyScore>> {
    leaderboard::of_caller(&app, &caller, &room(&id)?, span.window)
        .await
        .map(Reply)
}
