//! Messages and reactions.

use crate::{
    api::{
        extract::{Json, Path, Query, Render, Seq, SeqBound, room},
        idempotency::{self, IdempotencyKey},
    },
    app::App,
    auth::{Caller, Credential, network::Origin},
    error::{Error, Result},
    services::{
        checks::{self, Content},
        messages::{self, Query as Wanted, posting::rules::Post, threads},
    },
};
use axum::{Json as Reply, extract::State, http::StatusCode};
use protocol::{
    EditMessage, ErrorBody, MessageDeleted, MessageEdited, Messages, PostMessage, Posted, React,
    ReactionAdded, ReactionRemoved, Thread,
};
use serde::Deserialize;
use utoipa::IntoParams;

section!(post, list, thread, edit, delete, react, unreact);

/// Far deeper than any room allows.
pub const DEEPEST: i64 = 1_000_000;

/// Post a message. The same `Idempotency-Key` again gives the same answer and no second message.
#[utoipa::path(post, path = "/rooms/{id}/messages", tag = "Messages",
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = PostMessage,
    responses((status = 201, body = Posted), (status = "4XX", body = ErrorBody)))]
async fn post(
    State(app): State<App>,
    credential: Credential,
    origin: Origin,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(request): Json<PostMessage>,
) -> Result<(StatusCode, Reply<Posted>)> {
    let depth = request.reply_chain_depth.unwrap_or(0);
    let depth = checks::in_range("reply_chain_depth", depth, 0..=DEEPEST)?;
    let reply_to = request.reply_to_seq.map(Seq::try_from).transpose();
    let reply_to =
        reply_to.map_err(|why| Error::bad_request(format!("reply_to_seq does not fit: {why}")))?;
    let client_key = match key.key {
        Some(key) => Some(key),
        None => request
            .client_msg_id
            .as_deref()
            .map(idempotency::parse)
            .transpose()?,
    };
    let post = Post {
        room: room(&id)?,
        credential,
        ip: origin.network(),
        content: Content::new(request.content)?,
        reply_to_seq: reply_to.map(|seq| seq.0),
        depth,
        client_key,
        mentions: Vec::new(),
        usage: request.usage.map(checks::usage).transpose()?,
        ambiguous: Vec::new(),
    };
    Ok((StatusCode::CREATED, Reply(app.poster.post(post).await?)))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Messages after this seq, oldest first.
    #[param(value_type = Option<i64>, minimum = 0)]
    since: Option<SeqBound>,
    /// The newest messages before this seq, oldest first.
    #[param(value_type = Option<i64>, minimum = 0)]
    before: Option<SeqBound>,
    /// As many messages before this seq as after it, itself among them, oldest first.
    #[param(value_type = Option<i64>, minimum = 0)]
    around: Option<SeqBound>,
    /// How many, 50 where absent; 200 at most, 50 for visitors.
    limit: Option<i64>,
    /// `me`: only messages that mention the caller.
    mentions: Option<String>,
    /// Only messages of this sender. Without effect for visitors.
    sender_user_id: Option<String>,
    /// Each message that was answered also has `answers`: how many there are, and how many of others
    /// are after this seq, or after the caller's position in a thread that they have opened.
    #[param(value_type = Option<i64>, minimum = 0)]
    answers: Option<SeqBound>,
    /// `html`: each message also has `content_html`, rendered and safe to show in a page.
    #[param(inline)]
    render: Option<Render>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Shape {
    /// `html`: each message also has `content_html`.
    #[param(inline)]
    render: Option<Render>,
}

/// Read messages. Anonymous in public rooms.
#[utoipa::path(get, path = "/rooms/{id}/messages", tag = "Messages", params(("id" = String, Path), Filter),
    responses((status = 200, body = Messages), (status = "4XX", body = ErrorBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    origin: Origin,
    Path(id): Path<String>,
    Query(filter): Query<Filter>,
) -> Result<Reply<Messages>> {
    let mentions_me = match filter.mentions.as_deref() {
        None => false,
        Some("me") => true,
        Some(_) => return Err(Error::bad_request("mentions takes the value me")),
    };
    let wanted = Wanted {
        since: filter.since.map(|seq| seq.0),
        before: filter.before.map(|seq| seq.0),
        around: filter.around.map(|seq| seq.0),
        limit: filter.limit,
        mentions_me,
        sender: filter.sender_user_id,
        answers_after: filter.answers.map(|seq| seq.0),
        html: filter.render.is_some(),
    };
    messages::list(&app, &caller, origin.network(), &room(&id)?, wanted)
        .await
        .map(Reply)
}

/// Read the chain of replies that leads to a message.
#[utoipa::path(get, path = "/rooms/{id}/messages/{seq}/thread", tag = "Messages", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64), Shape),
    responses((status = 200, body = Thread), (status = "4XX", body = ErrorBody)))]
async fn thread(
    State(app): State<App>,
    caller: Caller,
    origin: Origin,
    Path((id, Seq(seq))): Path<(String, Seq)>,
    Query(shape): Query<Shape>,
) -> Result<Reply<Thread>> {
    let html = shape.render.is_some();
    threads::read(&app, &caller, origin.network(), &room(&id)?, seq, html)
        .await
        .map(Reply)
}

/// Edit one's own message, within five minutes.
#[utoipa::path(patch, path = "/rooms/{id}/messages/{seq}", tag = "Messages", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64)), request_body = EditMessage,
    responses((status = 200, body = MessageEdited), (status = "4XX", body = ErrorBody)))]
async fn edit(
    State(app): State<App>,
    caller: Caller,
    Path((id, Seq(seq))): Path<(String, Seq)>,
    Json(request): Json<EditMessage>,
) -> Result<Reply<MessageEdited>> {
    messages::edit(&app, &caller, &room(&id)?, seq, request.content)
        .await
        .map(Reply)
}

/// Delete one's own message, within five minutes. Its place stays taken.
#[utoipa::path(delete, path = "/rooms/{id}/messages/{seq}", tag = "Messages", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64)),
    responses((status = 200, body = MessageDeleted), (status = "4XX", body = ErrorBody)))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path((id, Seq(seq))): Path<(String, Seq)>,
) -> Result<Reply<MessageDeleted>> {
    messages::delete(&app, &caller, &room(&id)?, seq)
        .await
        .map(Reply)
}

/// React to a message. Twice is as good as once.
#[utoipa::path(post, path = "/rooms/{id}/messages/{seq}/reactions", tag = "Messages", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64)), request_body = React,
    responses((status = 200, body = ReactionAdded), (status = "4XX", body = ErrorBody)))]
async fn react(
    State(app): State<App>,
    caller: Caller,
    Path((id, Seq(seq))): Path<(String, Seq)>,
    Json(request): Json<React>,
) -> Result<Reply<ReactionAdded>> {
    messages::react(&app, &caller, &room(&id)?, seq, &request.emoji)
        .await
        .map(Reply)
}

/// Take one's own reaction back. Twice is as good as once.
#[utoipa::path(delete, path = "/rooms/{id}/messages/{seq}/reactions/{emoji}", tag = "Messages", params(("id" = String, Path), ("seq" = i64, Path, minimum = 0, maximum = 9007199254740991_i64), ("emoji" = String, Path)),
    responses((status = 200, body = ReactionRemoved), (status = "4XX", body = ErrorBody)))]
async fn unreact(
    State(app): State<App>,
    caller: Caller,
    Path((id, Seq(seq), emoji)): Path<(String, Seq, String)>,
) -> Result<Reply<ReactionRemoved>> {
    messages::unreact(&app, &caller, &room(&id)?, seq, &emoji)
        .await
        .map(Reply)
}
