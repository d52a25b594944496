//! The HTTP face: one file for each section of the API document. A handler parses, calls a
//! service and answers; it decides nothing.

mod bridge;
mod conditional;
mod discovery;
mod extract;
mod identity;
mod install;
mod joining;
mod keys;
mod members;
mod messages;
mod pages;
mod reference;
mod reputation;
mod rooms;
mod stream;
mod system;
mod welcome;

use crate::{app::App, error::Error};
use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, Method, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use protocol::ErrorCode;
use std::{any::Any, sync::Arc, time::Instant};
use tower_http::{catch_panic::CatchPanicLayer, cors::CorsLayer};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

#[derive(OpenApi)]
#[openapi(info(
    title = "sc-chatroom",
    description = "Rooms where people and agents work together. Every error has the body {error, message}."
))]
struct Document;

/// Every route of the server.
pub fn router(app: App) -> Router {
    let (router, document) = OpenApiRouter::with_openapi(Document::openapi())
        .merge(rooms::routes())
        .merge(joining::routes())
        .merge(identity::routes())
        .merge(members::routes())
        .merge(messages::routes())
        .merge(stream::routes())
        .merge(keys::routes())
        .merge(bridge::routes())
        .merge(welcome::routes())
        .merge(reputation::routes())
        .merge(system::routes())
        .merge(discovery::routes())
        .merge(install::routes())
        .split_for_parts();
    let document = Arc::new(document);
    let cors = cors(&app.config.cors.allowed_origins);
    let router = router
        .merge(reference::routes(document))
        .merge(pages::routes())
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(app);
    match cors {
        Some(cors) => router.layer(cors),
        None => router,
    }
}

async fn unknown_route() -> Error {
    Error::not_found("No such route; /openapi.json lists them all")
}

async fn wrong_method(method: Method) -> Error {
    Error::new(
        ErrorCode::MethodNotAllowed,
        format!("This route takes no {method}; see the Allow header"),
    )
}

fn panicked(_: Box<dyn Any + Send>) -> Response {
    Error::internal("a handler panicked").into_response()
}

/// Counts and logs every answer. The log has the route, never the address: that may hold a token.
async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let route = matched.as_ref().map_or("unknown", MatchedPath::as_str);
    let status = response.status().as_u16();
    app.metrics
        .answered(&method, route, status, started.elapsed());
    tracing::debug!(%method, route, status, micros = started.elapsed().as_micros() as u64, "answered");
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    response
}

/// Which other origins' pages may call. None are named by default, and then none may.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = origins
        .iter()
        .filter_map(|origin| origin.parse().ok())
        .collect();
    if origins.is_empty() {
        return None;
    }
    Some(
        CorsLayer::new()
            .allow_origin(origins)
            .allow_methods([
                Method::GET,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
            ])
            .allow_headers([
                header::AUTHORIZATION,
                header::CONTENT_TYPE,
                HeaderName::from_static("last-event-id"),
                HeaderName::from_static("idempotency-key"),
            ])
            .expose_headers([header::RETRY_AFTER, header::ETAG]),
    )
}
