//! Bans: of a room's owner, and of the operator.

use crate::{
    api::extract::{Json, Path, Query, room, user},
    app::App,
    auth::Caller,
    error::{Error, Result},
    services::{members::bans, people::operators},
};
use axum::{Json as Reply, extract::State, http::StatusCode};
use protocol::{
    AdminUsers, Ban, BanMember, ErrorBody, MemberBanned, Ok as Yes, RoomBans, ServerBan,
    ServerBans, Sessions, SessionsEnded, UpdateAccount, UserId,
};
use serde::Deserialize;
use utoipa::IntoParams;

section!(
    ban_member,
    list_room_bans,
    lift_room_ban,
    admin_users,
    admin_sessions,
    admin_revoke_user,
    admin_rename_user,
    admin_remove_user,
    admin_revoke,
    admin_ban,
    admin_bans,
    admin_unban
);

/// Ban somebody from the room, and remove them where they are a member. Owner only.
#[utoipa::path(post, path = "/rooms/{id}/bans", tag = "Members", params(("id" = String, Path)), request_body = BanMember,
    responses((status = 201, body = MemberBanned), (status = "4XX", body = ErrorBody)))]
async fn ban_member(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<BanMember>,
) -> Result<(StatusCode, Reply<MemberBanned>)> {
    let banned = bans::ban(&app, &caller, &room(&id)?, request).await?;
    Ok((StatusCode::CREATED, Reply(banned)))
}

/// List whom the room keeps out. Owner only.
#[utoipa::path(get, path = "/rooms/{id}/bans", tag = "Members", params(("id" = String, Path)),
    responses((status = 200, body = RoomBans), (status = "4XX", body = ErrorBody)))]
async fn list_room_bans(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Reply<RoomBans>> {
    bans::list(&app, &caller, &room(&id)?).await.map(Reply)
}

/// Let somebody in again; they need a new invite. Owner only.
#[utoipa::path(delete, path = "/rooms/{id}/bans/{user_id}", tag = "Members", params(("id" = String, Path), ("user_id" = String, Path)),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn lift_room_ban(
    State(app): State<App>,
    caller: Caller,
    Path((id, user_id)): Path<(String, String)>,
) -> Result<Reply<Yes>> {
    bans::lift(&app, &caller, &room(&id)?, &user(&user_id)?).await?;
    Ok(Reply(Yes::YES))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListUsersQuery {
    /// The last id of the page before.
    #[serde(default)]
    after: String,
}

/// List users. Admin tokens only.
#[utoipa::path(get, path = "/internal/admin/users", tag = "System", params(ListUsersQuery),
    responses((status = 200, body = AdminUsers), (status = "4XX", body = ErrorBody)))]
async fn admin_users(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<ListUsersQuery>,
) -> Result<Reply<AdminUsers>> {
    operators::users(&app, &caller, &page.after)
        .await
        .map(Reply)
}

/// List a user's keys and identity tokens. Admin tokens only.
#[utoipa::path(get, path = "/internal/admin/users/{user_id}/sessions", tag = "System", params(("user_id" = String, Path)),
    responses((status = 200, body = Sessions), (status = "4XX", body = ErrorBody)))]
async fn admin_sessions(
    State(app): State<App>,
    caller: Caller,
    Path(user_id): Path<String>,
) -> Result<Reply<Sessions>> {
    operators::sessions_of(&app, &caller, &any_user(&user_id)?)
        .await
        .map(Reply)
}

/// End every credential of a user. Admin tokens only.
#[utoipa::path(delete, path = "/internal/admin/users/{user_id}/sessions", tag = "System", params(("user_id" = String, Path)),
    responses((status = 200, body = SessionsEnded), (status = "4XX", body = ErrorBody)))]
async fn admin_revoke_user(
    State(app): State<App>,
    caller: Caller,
    Path(user_id): Path<String>,
) -> Result<Reply<SessionsEnded>> {
    operators::revoke_user(&app, &caller, &any_user(&user_id)?)
        .await
        .map(Reply)
}

/// Give a user another name, in all rooms. Admin tokens only.
#[utoipa::path(patch, path = "/internal/admin/users/{user_id}", tag = "System", params(("user_id" = String, Path)), request_body = UpdateAccount,
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn admin_rename_user(
    State(app): State<App>,
    caller: Caller,
    Path(user_id): Path<String>,
    Json(request): Json<UpdateAccount>,
) -> Result<Reply<Yes>> {
    operators::rename_user(&app, &caller, &any_user(&user_id)?, &request.display_name).await?;
    Ok(Reply(Yes::YES))
}

/// Take a user out of all rooms that they do not own, end their credentials, and forget their account.
/// Admin tokens only.
#[utoipa::path(delete, path = "/internal/admin/users/{user_id}", tag = "System", params(("user_id" = String, Path)),
    responses((status = 200, body = SessionsEnded), (status = "4XX", body = ErrorBody)))]
async fn admin_remove_user(
    State(app): State<App>,
    caller: Caller,
    Path(user_id): Path<String>,
) -> Result<Reply<SessionsEnded>> {
    operators::remove_user(&app, &caller, &any_user(&user_id)?)
        .await
        .map(Reply)
}

/// Revoke a room key or an identity token, and what was derived from it. Admin tokens only.
#[utoipa::path(delete, path = "/internal/admin/credentials/{jti}", tag = "System", params(("jti" = String, Path)),
    responses((status = 200, body = SessionsEnded), (status = "4XX", body = ErrorBody)))]
async fn admin_revoke(
    State(app): State<App>,
    caller: Caller,
    Path(jti): Path<String>,
) -> Result<Reply<SessionsEnded>> {
    operators::revoke_credential(&app, &caller, &jti)
        .await
        .map(Reply)
}

/// Ban a user, an address or a network from the server. Admin tokens only.
#[utoipa::path(post, path = "/internal/admin/bans", tag = "System", request_body = Ban,
    responses((status = 201, body = ServerBan), (status = "4XX", body = ErrorBody)))]
async fn admin_ban(
    State(app): State<App>,
    caller: Caller,
    Json(request): Json<Ban>,
) -> Result<(StatusCode, Reply<ServerBan>)> {
    let banned = operators::ban(&app, &caller, request).await?;
    Ok((StatusCode::CREATED, Reply(banned)))
}

/// List the server's bans. Admin tokens only.
#[utoipa::path(get, path = "/internal/admin/bans", tag = "System",
    responses((status = 200, body = ServerBans), (status = "4XX", body = ErrorBody)))]
async fn admin_bans(State(app): State<App>, caller: Caller) -> Result<Reply<ServerBans>> {
    operators::bans(&app, &caller).await.map(Reply)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct LiftBanQuery {
    /// The user's id, the address or the network.
    subject: String,
}

/// Lift a ban. Admin tokens only.
#[utoipa::path(delete, path = "/internal/admin/bans", tag = "System", params(LiftBanQuery),
    responses((status = 200, body = Yes), (status = "4XX", body = ErrorBody)))]
async fn admin_unban(
    State(app): State<App>,
    caller: Caller,
    Query(of): Query<LiftBanQuery>,
) -> Result<Reply<Yes>> {
    operators::unban(&app, &caller, &of.subject).await?;
    Ok(Reply(Yes::YES))
}

fn any_user(text: &str) -> Result<UserId> {
    text.parse().map_err(|_| Error::not_found("No such user"))
}
