//! The server itself: health, metrics, documents, and the operator's list.

use crate::{
    api::{
        conditional::{etag, is_held},
        extract::{Path, Query},
        pages,
        rooms::PageQuery,
    },
    app::App,
    auth::{self, Caller, network::Origin},
    docs,
    error::{Error, Result},
    render::document,
    services::{self, rooms},
};
use axum::{
    Json as Reply,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use protocol::{AdminRooms, DocsVersion, ErrorBody, Health};

section!(health, metrics, admin_rooms, docs_version, doc);

/// Whether the server serves, and can keep what it is told.
#[utoipa::path(get, path = "/health", tag = "System",
    responses((status = 200, body = Health), (status = "5XX", body = ErrorBody)))]
async fn health(State(app): State<App>) -> Result<Reply<Health>> {
    services::health::read(&app).await.map(Reply)
}

/// Measurements in Prometheus's text format. Internal networks only.
#[utoipa::path(get, path = "/metrics", tag = "System",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"), (status = "4XX", body = ErrorBody)))]
async fn metrics(State(app): State<App>, origin: Origin) -> Result<impl IntoResponse> {
    if !origin.internal {
        return Err(auth::internal_only());
    }
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok((
        [(header::CONTENT_TYPE, content_type)],
        app.metrics.render(app.hub.readers(), app.lanes.busy()),
    ))
}

/// List every room. Admin tokens only.
#[utoipa::path(get, path = "/internal/admin/rooms", tag = "System", params(PageQuery),
    responses((status = 200, body = AdminRooms), (status = "4XX", body = ErrorBody)))]
async fn admin_rooms(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<Reply<AdminRooms>> {
    let (limit, offset) = page.bounds()?;
    rooms::all(&app, &caller, limit, offset).await.map(Reply)
}

/// The fingerprints of the documents that define the protocol.
#[utoipa::path(get, path = "/docs-version", tag = "System", responses((status = 200, body = DocsVersion)))]
async fn docs_version(State(app): State<App>) -> Reply<DocsVersion> {
    Reply(app.docs.describe(&app.public_url))
}

/// A document, as markdown; rendered for browsers, which ask for `text/html`.
#[utoipa::path(get, path = "/docs/{name}", tag = "System", params(("name" = String, Path)),
    responses((status = 200, body = String, content_type = "text/markdown"), (status = "4XX", body = ErrorBody)))]
async fn doc(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let (text, hash) = app
        .docs
        .get(&name)
        .ok_or_else(|| Error::not_found("No such document"))?;
    if pages::is_for_people(&headers) {
        let page = document::html(text, docs::is_served);
        return Ok(pages::text_page(
            StatusCode::OK,
            document::title(text),
            &page,
        ));
    }
    let head = [
        (header::VARY, "accept".to_owned()),
        (header::ETAG, etag(&hash)),
        (header::HeaderName::from_static("x-doc-version"), hash),
        (header::CACHE_CONTROL, "public, max-age=300".to_owned()),
        (
            header::CONTENT_TYPE,
            "text/markdown; charset=utf-8".to_owned(),
        ),
    ];
    if is_held(&headers, &head[1].1) {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    Ok((head, text).into_response())
}
