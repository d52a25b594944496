//! The HTTP face: one file for each section of the API document. A handler parses, calls a
//! service and answers; it decides nothing.

#[macro_use]
mod section;

mod a2a;
mod bans;
mod bounds;
mod bridge;
mod conditional;
mod consents;
mod discovery;
mod extract;
mod idempotency;
mod identity;
mod inbox;
mod install;
mod joining;
mod keys;
mod mcp;
mod members;
mod messages;
mod oauth;
mod observe;
mod pages;
mod people;
mod pins;
mod reference;
mod reputation;
mod rooms;
mod search;
mod sessions;
mod stream;
mod system;
mod transfer;
mod turns;
mod usage;
mod webhooks;
mod welcome;
mod write_limits;

use crate::{app::App, error::Error};
use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use observe::Observe;
use protocol::ErrorCode;
use section::Section;
use std::any::Any;
use tower_http::{
    catch_panic::{CatchPanic, ResponseForPanic},
    cors::CorsLayer,
};

/// The API, section by section.
const SECTIONS: [Section; 24] = [
    rooms::SECTION,
    joining::SECTION,
    identity::SECTION,
    sessions::SECTION,
    members::SECTION,
    bans::SECTION,
    messages::SECTION,
    stream::SECTION,
    inbox::SECTION,
    search::SECTION,
    turns::SECTION,
    consents::SECTION,
    usage::SECTION,
    pins::SECTION,
    people::SECTION,
    keys::SECTION,
    webhooks::SECTION,
    bridge::SECTION,
    welcome::SECTION,
    reputation::SECTION,
    system::SECTION,
    transfer::SECTION,
    discovery::SECTION,
    install::SECTION,
];

/// The whole server as a service.
pub type Service = CatchPanic<Router, InternalError>;

/// Every route of the server.
pub fn service(app: App) -> Service {
    let cors = cors(&app.config.cors.allowed_origins);
    let api = SECTIONS
        .iter()
        .fold(Router::new(), |router, section| {
            (section.serve)(router, &app)
        })
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .with_state::<()>(app.clone());
    let unlisted = reference::routes()
        .merge(pages::routes())
        .merge(oauth::routes(&app));
    let router = mcp::McpEndpoint::routes(&app, &api)
        .merge(a2a::A2aEndpoint::routes(&app, &api))
        .merge(api)
        .merge(unlisted.with_state(app.clone()))
        .layer(Observe::new(app));
    let router = match cors {
        Some(cors) => router.layer(cors),
        None => router,
    };
    CatchPanic::custom(router, InternalError)
}

async fn unknown_route(headers: HeaderMap) -> Error {
    match pages::is_for_people(&headers) {
        true => Error::not_found("There is no such page"),
        false => Error::not_found("No such route; /openapi.json lists them all"),
    }
}

async fn wrong_method(method: Method) -> Error {
    Error::new(
        ErrorCode::MethodNotAllowed,
        format!("This route takes no {method}; see the Allow header"),
    )
}

/// What a handler's panic is answered with.
#[derive(Clone)]
pub struct InternalError;

impl ResponseForPanic for InternalError {
    type ResponseBody = Body;

    fn response_for_panic(&mut self, _: Box<dyn Any + Send>) -> Response {
        Error::internal("a handler panicked").into_response()
    }
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
                HeaderName::from_static("mcp-session-id"),
                HeaderName::from_static("mcp-protocol-version"),
                HeaderName::from_static("a2a-version"),
                HeaderName::from_static("a2a-extensions"),
                header::IF_MATCH,
            ])
            .expose_headers([
                header::RETRY_AFTER,
                header::ETAG,
                header::WWW_AUTHENTICATE,
                HeaderName::from_static("mcp-session-id"),
            ]),
    )
}
