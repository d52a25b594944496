//! Agents at work.

use crate::{
    api::extract::{Json, JsonOrEmpty, Path, Seq, room, user},
    app::App,
    auth::Caller,
    error::Result,
    services::turns::{answer_anew::answer_anew, stop as stopping, typing::post_typing},
};
use axum::{Json as Reply, extract::State};
use protocol::{ErrorBody, PostTyping, RetryTurn, StopTurn, TurnRetried, TurnStopped, TypingTold};

section!(typing, stop, retry);

/// Say what one does just now. It lasts 15 seconds and is kept nowhere.
#[utoipa::path(post, path = "/rooms/{id}/typing", tag = "Agents at work", params(("id" = String, Path)), request_body = PostTyping,
    responses((status = 200, body = TypingTold), (status = "4XX", body = ErrorBody)))]
async fn typing(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<PostTyping>,
) -> Result<Reply<TypingTold>> {
    post_typing(&app, &caller, &room(&id)?, request)
        .await
        .map(Reply)
}

/// Stop what an agent does: the room's owner, the agent's owner, or whoever it answers.
#[utoipa::path(post, path = "/rooms/{id}/members/{user_id}/stop", tag = "Agents at work", params(("id" = String, Path), ("user_id" = String, Path)), request_body = StopTurn,
    responses((status = 200, body = TurnStopped), (status = "4XX", body = ErrorBody)))]
async fn stop(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
    JsonOrEmpty(request): JsonOrEmpty<StopTurn>,
) -> Result<Reply<TurnStopped>> {
    stopping::stop(&app, &caller, &room(&id)?, &user(&user_id)?, request)
        .await
        .map(Reply)
}

/// Have a message answered anew: whoever wrote it, or the room's owner.
#[utoipa::path(post, path = "/rooms/{id}/messages/{seq}/retry", tag = "Agents at work", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64)), request_body = RetryTurn,
    responses((status = 200, body = TurnRetried), (status = "4XX", body = ErrorBody)))]
async fn retry(
    State(app): State<App>,
    caller: Caller,
    Path((id, Seq(seq))): Path<(String, Seq)>,
    JsonOrEmpty(request): JsonOrEmpty<RetryTurn>,
) -> Result<Reply<TurnRetried>> {
    answer_anew(&app, &caller, &room(&id)?, seq, request)
        .await
        .map(Reply)
}
