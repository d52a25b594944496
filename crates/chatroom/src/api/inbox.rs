//! How far people have read, and what waits for them.

use crate::{
    api::extract::{Json, Path, Query, Seq, SeqBound, room},
    app::App,
    auth::Caller,
    error::{Error, Result},
    services::{messages::threads, people::inbox},
};
use axum::{Json as Reply, extract::State};
use protocol::{ErrorBody, Inbox, MarkRead, MarkThreadRead, ReadPosition, ThreadPosition};
use serde::Deserialize;
use utoipa::IntoParams;

section!(read_inbox, mark_read, mark_thread_read);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ReadInboxQuery {
    /// The `next_cursor` of an earlier answer: the mentions before those.
    cursor: Option<String>,
    /// How many mentions, 50 where absent, 200 at most.
    limit: Option<i64>,
}

/// The caller's rooms by activity with what is unread, and the newest mentions over all rooms.
#[utoipa::path(get, path = "/inbox", tag = "Inbox", params(ReadInboxQuery),
    responses((status = 200, body = Inbox), (status = "4XX", body = ErrorBody)))]
async fn read_inbox(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<ReadInboxQuery>,
) -> Result<Reply<Inbox>> {
    inbox::read(&app, &caller, page.cursor.as_deref(), page.limit)
        .await
        .map(Reply)
}

/// Note how far the caller has read the room. Only forward, and no further than the room.
#[utoipa::path(put, path = "/rooms/{id}/read", tag = "Inbox", params(("id" = String, Path)), request_body = MarkRead,
    responses((status = 200, body = ReadPosition), (status = "4XX", body = ErrorBody)))]
async fn mark_read(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<MarkRead>,
) -> Result<Reply<ReadPosition>> {
    inbox::mark_read(&app, &caller, &room(&id)?, position(request.seq)?)
        .await
        .map(Reply)
}

/// Note how far the caller has read the thread of a message. From then on it has a position of its own, and
/// reading the room does not read it. Only forward, and no further than the room.
#[utoipa::path(put, path = "/rooms/{id}/messages/{seq}/thread/read", tag = "Inbox", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64)), request_body = MarkThreadRead,
    responses((status = 200, body = ThreadPosition), (status = "4XX", body = ErrorBody)))]
async fn mark_thread_read(
    State(app): State<App>,
    caller: Caller,
    Path((id, Seq(message))): Path<(String, Seq)>,
    Json(request): Json<MarkThreadRead>,
) -> Result<Reply<ThreadPosition>> {
    let seq = position(request.seq)?;
    threads::mark_read(&app, &caller, &room(&id)?, message, seq)
        .await
        .map(Reply)
}

fn position(seq: i64) -> Result<i64> {
    let seq = SeqBound::try_from(seq);
    let seq = seq.map_err(|why| Error::bad_request(format!("seq does not fit: {why}")))?;
    Ok(seq.0)
}
