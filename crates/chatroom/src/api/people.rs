//! What people choose for themselves, and how the first of them signs in.

use crate::{
    api::extract::{Json, Path, read_body},
    app::App,
    auth::{Caller, network::Origin},
    error::Result,
    services::people,
};
use axum::{
    Json as Reply,
    extract::{Request, State},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use protocol::{Account, ErrorBody, UpdateAccount};

section!(me, update, set_picture, remove_picture, picture, first);

/// Read one's own name and picture.
#[utoipa::path(get, path = "/me", tag = "Identity",
    responses((status = 200, body = Account), (status = "4XX", body = ErrorBody)))]
async fn me(State(app): State<App>, caller: Caller) -> Result<Reply<Account>> {
    people::me(&app, &caller).await.map(Reply)
}

/// Choose another name; all of one's rooms show it from now on.
#[utoipa::path(patch, path = "/me", tag = "Identity", request_body = UpdateAccount,
    responses((status = 200, body = Account), (status = "4XX", body = ErrorBody)))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    Json(request): Json<UpdateAccount>,
) -> Result<Reply<Account>> {
    people::update(&app, &caller, request).await.map(Reply)
}

/// Choose a picture: the body is a PNG, JPEG, GIF or WebP file of at most 64 KB.
#[utoipa::path(put, path = "/me/picture", tag = "Identity",
    request_body(content = Vec<u8>, content_type = "image/*"),
    responses((status = 200, body = Account), (status = "4XX", body = ErrorBody)))]
async fn set_picture(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Reply<Account>> {
    let bytes = read_body(&app, request, people::MOST_PICTURE_BYTES).await?;
    people::set_picture(&app, &caller, Some(bytes.to_vec()))
        .await
        .map(Reply)
}

/// Have no picture any more.
#[utoipa::path(delete, path = "/me/picture", tag = "Identity",
    responses((status = 200, body = Account), (status = "4XX", body = ErrorBody)))]
async fn remove_picture(State(app): State<App>, caller: Caller) -> Result<Reply<Account>> {
    people::set_picture(&app, &caller, None).await.map(Reply)
}

/// A picture, by the `avatar_seed` of whoever chose it. Anonymous.
#[utoipa::path(get, path = "/avatars/{seed}", tag = "Identity", params(("seed" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "image/*"), (status = "4XX", body = ErrorBody)))]
async fn picture(State(app): State<App>, Path(seed): Path<String>) -> Result<Response> {
    let found = people::picture(&app, &seed).await?;
    let head = [
        (header::CONTENT_TYPE, found.picture_type),
        (header::CACHE_CONTROL, "public, max-age=300".to_owned()),
        // What somebody sent is shown as a picture and is nothing else.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox".to_owned(),
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin".to_owned(),
        ),
    ];
    Ok((head, found.picture).into_response())
}

/// Sign in as the first person, with the link that the server prints at its first start. It works once.
#[utoipa::path(get, path = "/first/{code}", tag = "Identity", params(("code" = String, Path)),
    responses((status = 302, description = "To the page, signed in"), (status = "4XX", body = ErrorBody)))]
async fn first(
    State(app): State<App>,
    origin: Origin,
    Path(code): Path<String>,
) -> Result<Response> {
    let path = people::sign_in_first(&app, origin.network(), &code).await?;
    let head = [
        (header::LOCATION, path.as_str()),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    Ok((StatusCode::FOUND, head).into_response())
}
