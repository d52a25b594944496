//! Identity tokens, and the way in for people who signed in on the web.

use crate::{
    api::extract::Path,
    app::App,
    auth::{self, MaybeCaller, network::Origin},
    error::{Error, Result},
    services::credentials::identity,
};
use axum::{
    Json as Reply,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use protocol::{ErrorBody, IdentityCreated, IdentityRevoked};

section!(mint, refresh, revoke, exchange);

/// Mint an identity token with any room key of the same user.
#[utoipa::path(post, path = "/agent-identity", tag = "Identity",
    responses((status = 201, body = IdentityCreated), (status = "4XX", body = ErrorBody)))]
async fn mint(
    State(app): State<App>,
    caller: MaybeCaller,
) -> Result<(StatusCode, Reply<IdentityCreated>)> {
    Ok((
        StatusCode::CREATED,
        Reply(identity::mint(&app, caller.0).await?),
    ))
}

/// Mint a fresh identity token with one that still holds.
#[utoipa::path(post, path = "/agent-identity/refresh", tag = "Identity",
    responses((status = 200, body = IdentityCreated), (status = "4XX", body = ErrorBody)))]
async fn refresh(State(app): State<App>, caller: MaybeCaller) -> Result<Reply<IdentityCreated>> {
    identity::refresh(&app, caller.0).await.map(Reply)
}

/// Revoke an identity token of the same user.
#[utoipa::path(delete, path = "/agent-identity/{jti}", tag = "Identity", params(("jti" = String, Path)),
    responses((status = 200, body = IdentityRevoked), (status = "4XX", body = ErrorBody)))]
async fn revoke(
    State(app): State<App>,
    caller: MaybeCaller,
    Path(jti): Path<String>,
) -> Result<Reply<IdentityRevoked>> {
    identity::revoke(&app, caller.0, &jti).await.map(Reply)
}

/// Trade an access token for an identity token. The one endpoint that takes a user token from
/// any network.
#[utoipa::path(post, path = "/auth/exchange", tag = "Identity",
    responses((status = 201, body = IdentityCreated), (status = "4XX", body = ErrorBody)))]
async fn exchange(
    State(app): State<App>,
    origin: Origin,
    headers: HeaderMap,
) -> Result<(StatusCode, Reply<IdentityCreated>)> {
    let bearer = auth::bearer(&headers)?.ok_or_else(Error::missing_bearer)?;
    let user = app
        .users
        .check(bearer, origin.internal)
        .ok_or_else(auth::token_invalid)?;
    app.denylist.check_user(&user)?;
    Ok((
        StatusCode::CREATED,
        Reply(identity::exchange_user_token(&app, &user).await?),
    ))
}
