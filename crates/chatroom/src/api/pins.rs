//! Messages that a room's owner keeps at hand.

use crate::{
    api::extract::{Path, Seq, room},
    app::App,
    auth::{Caller, network::Origin},
    error::Result,
    services::rooms::pins,
};
use axum::{Json as Reply, extract::State};
use protocol::{ErrorBody, Ok as Yes, Pins};

section!(list_pins, pin, unpin);

/// List the pinned messages. Anonymous in public rooms.
#[utoipa::path(get, path = "/rooms/{id}/pins", tag = "Messages", params(("id" = String, Path)),
    responses((status = 200, body = Pins), (status = "4XX", body = ErrorBody)))]
async fn list_pins(
    State(app): State<App>,
    caller: Caller,
    origin: Origin,
    Path(id): Path<String>,
) -> Result<Reply<Pins>> {
    pins::list(&app, &caller, origin.network(), &room(&id)?)
        .await
        .map(Reply)
}

/// Pin a message. Owner only; at most 50 in a room.
#[utoipa::path(put, path = "/rooms/{id}/pins/{seq}", tag = "Messages", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64)),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn pin(
    State(app): State<App>,
    caller: Caller,
    Path((id, Seq(seq))): Path<(String, Seq)>,
) -> Result<Reply<Yes>> {
    pins::set(&app, &caller, &room(&id)?, seq, true).await?;
    Ok(Reply(Yes::YES))
}

/// Take a pin away. Owner only.
#[utoipa::path(delete, path = "/rooms/{id}/pins/{seq}", tag = "Messages", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64)),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn unpin(
    State(app): State<App>,
    caller: Caller,
    Path((id, Seq(seq))): Path<(String, Seq)>,
) -> Result<Reply<Yes>> {
    pins::set(&app, &caller, &room(&id)?, seq, false).await?;
    Ok(Reply(Yes::YES))
}
