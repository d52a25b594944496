//! Requests to the API, on behalf of a caller.

use super::caller::McpCaller;
use crate::{
    app::App,
    auth::network::Peer,
    error::{Error, Result},
};
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, request::Parts},
    response::Response,
};
use protocol::{ErrorBody, RoomId};
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

/// The largest answer that is passed on: two hundred messages of the largest size, and more.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// What proxies tell of the caller's address.
const FORWARDED: [&str; 2] = ["x-forwarded-for", "forwarded"];

/// The API as one caller reaches it.
#[derive(Clone)]
pub struct RoomApi {
    pub app: App,
    routes: Router,
    pub caller: McpCaller,
    peer: Option<Peer>,
    forwarded: HeaderMap,
}

/// Why the API refused, in its own words.
#[derive(Debug)]
pub struct ApiRefusal(pub String);

impl From<Error> for ApiRefusal {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// A request in the making.
pub struct ApiCall<'a> {
    pub method: Method,
    pub room: Option<&'a RoomId>,
    /// With its query, encoded.
    pub path: String,
    pub body: Option<Value>,
    pub idempotency_key: Option<&'a str>,
    /// Whether it takes a room key and no identity token.
    pub with_key: bool,
}

impl<'a> ApiCall<'a> {
    /// Reads something of a room.
    pub fn get(room: &'a RoomId, rest: &str) -> Self {
        Self {
            method: Method::GET,
            room: Some(room),
            path: format!("/rooms/{room}{rest}"),
            body: None,
            idempotency_key: None,
            with_key: false,
        }
    }

    /// Changes something of a room.
    pub fn change(method: Method, room: &'a RoomId, rest: &str, body: Value) -> Self {
        Self {
            method,
            body: Some(body),
            ..Self::get(room, rest)
        }
    }
}

impl RoomApi {
    /// For the caller whose request this is, as the endpoint found it.
    pub fn new(app: &App, routes: &Router, caller: McpCaller, parts: &Parts) -> Self {
        let forwarded = FORWARDED.iter().flat_map(|name| {
            let values = parts.headers.get_all(*name).iter();
            values.map(|value| (header::HeaderName::from_static(name), value.clone()))
        });
        let mut headers = HeaderMap::new();
        forwarded.for_each(|(name, value)| {
            headers.append(name, value);
        });
        Self {
            app: app.clone(),
            routes: routes.clone(),
            caller,
            peer: parts.extensions.get::<Peer>().copied(),
            forwarded: headers,
        }
    }

    /// Sends a request and reads its answer.
    pub async fn call(&self, call: ApiCall<'_>) -> Result<Value, ApiRefusal> {
        let response = self.send(call).await?;
        let body = to_bytes(response.into_body(), MAX_ANSWER).await;
        let body =
            body.map_err(|_| ApiRefusal("the answer is too large; ask for less".to_owned()))?;
        serde_json::from_slice(&body).map_err(|_| ApiRefusal("the answer is no JSON".to_owned()))
    }

    /// Sends a request; gives its answer, whose body may go on.
    pub async fn send(&self, call: ApiCall<'_>) -> Result<Response, ApiRefusal> {
        let bearer = self
            .caller
            .bearer_for(&self.app, call.room, call.with_key)
            .await?;
        let room = call.room;
        let request = self.request(call, bearer).map_err(Error::internal)?;
        let response = match self.routes.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if response.status().is_success() {
            return Ok(response);
        }
        if let (StatusCode::UNAUTHORIZED, Some(room)) = (response.status(), room) {
            self.caller.forget_key(&self.app, room);
        }
        let body = to_bytes(response.into_body(), MAX_ANSWER).await;
        let error: Option<ErrorBody> = body.ok().and_then(|b| serde_json::from_slice(&b).ok());
        Err(ApiRefusal(error.map_or_else(
            || "the request was refused".to_owned(),
            |error| format!("{}: {}", error.error, error.message),
        )))
    }

    fn request(&self, call: ApiCall<'_>, bearer: Arc<str>) -> axum::http::Result<Request<Body>> {
        let mut bearer = HeaderValue::try_from(format!("Bearer {bearer}"))?;
        bearer.set_sensitive(true);
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(header::AUTHORIZATION, bearer);
        if let Some(key) = call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let body = match call.body {
            None => Body::empty(),
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
        };
        let mut request = request.body(body)?;
        for (name, value) in &self.forwarded {
            request.headers_mut().append(name, value.clone());
        }
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        Ok(request)
    }
}
