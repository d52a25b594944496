//! Invites and joining.

use crate::{
    api::{
        extract::{Json, JsonOrEmpty, Path, Query, room, user},
        idempotency::IdempotencyKey,
    },
    app::App,
    auth::{Caller, MaybeCaller, network::Origin},
    error::Result,
    services::{
        credentials::identity,
        joining::{self, invites, recovery},
        members::{self, bans},
        visitors,
    },
};
use axum::{Json as Reply, extract::State, http::StatusCode, http::header, response::IntoResponse};
use protocol::{
    AutoInvite, BanMember, CreateInvite, ErrorBody, InviteCreated, InviteSummary, Invites, Join,
    Joined, Ok as Yes, TokenReissued,
};
use serde::Deserialize;
use utoipa::IntoParams;

section!(
    create_invite,
    list_invites,
    revoke_invite,
    auto_invite,
    short_code,
    invite_summary,
    qr_code,
    join,
    leave,
    reissue,
    recover
);

/// Issue an invite. Owner only. The same `Idempotency-Key` again gives the same invite.
#[utoipa::path(post, path = "/rooms/{id}/invites", tag = "Joining", params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = CreateInvite,
    responses((status = 201, body = InviteCreated), (status = "4XX", body = ErrorBody)))]
async fn create_invite(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    key: IdempotencyKey,
    JsonOrEmpty(request): JsonOrEmpty<CreateInvite>,
) -> Result<(StatusCode, Reply<InviteCreated>)> {
    let idempotent = key.request(&app, &caller, &request)?;
    let created = invites::create(&app, &caller, &room(&id)?, request, &idempotent).await?;
    Ok((StatusCode::CREATED, Reply(created)))
}

/// List the invites that somebody could still join with. Owner only.
#[utoipa::path(get, path = "/rooms/{id}/invites", tag = "Joining", params(("id" = String, Path)),
    responses((status = 200, body = Invites), (status = "4XX", body = ErrorBody)))]
async fn list_invites(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<Invites>> {
    invites::list(&app, &caller, &room(&id)?).await.map(Reply)
}

/// Revoke an invite at once. Owner only.
#[utoipa::path(delete, path = "/rooms/{id}/invites/{code_jti}", tag = "Joining", params(("id" = String, Path), ("code_jti" = String, Path)),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn revoke_invite(
    State(app): State<App>,
    caller: Caller,
    Path((id, jti)): Path<(String, String)>,
) -> Result<Reply<Yes>> {
    invites::revoke(&app, &caller, &room(&id)?, &jti).await?;
    Ok(Reply(Yes::YES))
}

/// Get an invite into a public room for one's own agent. Anonymous.
#[utoipa::path(post, path = "/rooms/{id}/auto-invite", tag = "Joining", params(("id" = String, Path)),
    responses((status = 201, body = AutoInvite), (status = "4XX", body = ErrorBody)))]
async fn auto_invite(
    State(app): State<App>,
    origin: Origin,
    Path(id): Path<String>,
) -> Result<(StatusCode, Reply<AutoInvite>)> {
    let created = invites::create_for_visitor(&app, &room(&id)?, origin.network()).await?;
    Ok((StatusCode::CREATED, Reply(created)))
}

/// The invite behind a short code, as plain text. Anonymous.
#[utoipa::path(get, path = "/i/{short_code}", tag = "Joining", params(("short_code" = String, Path)),
    responses((status = 200, body = String, content_type = "text/plain"), (status = "4XX", body = ErrorBody)))]
async fn short_code(
    State(app): State<App>,
    origin: Origin,
    Path(code): Path<String>,
) -> Result<impl IntoResponse> {
    limit_guessing(&app, origin).await?;
    let code = invites::by_short_code(&app, &code).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], code))
}

/// Short codes are short: nobody may try many of them.
async fn limit_guessing(app: &App, origin: Origin) -> Result<()> {
    visitors::count_read(app, origin.network(), "/i").await
}

/// What an invite leads to: the room's name, who invites, and who is there. Anonymous.
#[utoipa::path(get, path = "/i/{short_code}/summary", tag = "Joining", params(("short_code" = String, Path)),
    responses((status = 200, body = InviteSummary), (status = "4XX", body = ErrorBody)))]
async fn invite_summary(
    State(app): State<App>,
    origin: Origin,
    Path(code): Path<String>,
) -> Result<impl IntoResponse> {
    limit_guessing(&app, origin).await?;
    let summary = invites::summary(&app, &code).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Reply(summary)))
}

/// A QR code of the link with which a person joins by this invite. Anonymous.
#[utoipa::path(get, path = "/i/{short_code}/qr.svg", tag = "Joining", params(("short_code" = String, Path)),
    responses((status = 200, body = String, content_type = "image/svg+xml"), (status = "4XX", body = ErrorBody)))]
async fn qr_code(
    State(app): State<App>,
    origin: Origin,
    Path(code): Path<String>,
) -> Result<impl IntoResponse> {
    limit_guessing(&app, origin).await?;
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, invites::qr_code(&app, &code).await?))
}

/// Join a room, with an invite or as a Starchild user in a public room. The same `Idempotency-Key`
/// again gives the same answer.
#[utoipa::path(post, path = "/rooms/{id}/join", tag = "Joining", params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = Join,
    responses((status = 201, body = Joined), (status = "4XX", body = ErrorBody)))]
async fn join(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(request): Json<Join>,
) -> Result<(StatusCode, Reply<Joined>)> {
    let invite = request.invite_code.as_deref();
    let idempotent = key.request_with(&app, &caller, invite, &request)?;
    let joined = joining::join(&app, &caller, &room(&id)?, request, &idempotent).await?;
    Ok((StatusCode::CREATED, Reply(joined)))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Leaving {
    /// 1 to ban the member too. Owner only.
    ban: Option<String>,
}

/// Leave a room, or remove a member as its owner.
#[utoipa::path(delete, path = "/rooms/{id}/members/{user_id}", tag = "Joining", params(("id" = String, Path), ("user_id" = String, Path), Leaving),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn leave(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
    Query(leaving): Query<Leaving>,
) -> Result<Reply<Yes>> {
    let (room, user) = (room(&id)?, user(&user_id)?);
    match leaving.ban.as_deref() {
        Some("1" | "true") => {
            let request = BanMember {
                user_id: user.to_string(),
                reason: None,
            };
            bans::ban(&app, &caller, &room, request).await?;
        }
        _ => members::remove(&app, &caller, &room, &user).await?,
    }
    Ok(Reply(Yes::YES))
}

/// Mint a new room key with another room's key, or with the identity token.
#[utoipa::path(post, path = "/rooms/{id}/members/{user_id}/reissue-token", tag = "Joining", params(("id" = String, Path), ("user_id" = String, Path)),
    responses((status = 200, body = TokenReissued), (status = "4XX", body = ErrorBody)))]
async fn reissue(
    State(app): State<App>,
    caller: MaybeCaller,
    Path((id, user_id)): Path<(String, String)>,
) -> Result<Reply<TokenReissued>> {
    identity::reissue(&app, caller.0, &room(&id)?, &user(&user_id)?)
        .await
        .map(Reply)
}

/// Allow a member who lost every token to get new ones: an invite for that member alone. Owner only.
#[utoipa::path(post, path = "/rooms/{id}/members/{user_id}/recovery", tag = "Joining", params(("id" = String, Path), ("user_id" = String, Path)),
    responses((status = 201, body = InviteCreated), (status = "4XX", body = ErrorBody)))]
async fn recover(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
) -> Result<(StatusCode, Reply<InviteCreated>)> {
    let allowed = recovery::allow(&app, &caller, &room(&id)?, &user(&user_id)?).await?;
    Ok((StatusCode::CREATED, Reply(allowed)))
}
