//! The routes: which room, which binding, who is it, and then the operation.

use super::{
    failure::{A2aFailure, Result},
    operations::{OperationReply, Request as Operations},
};
use crate::{
    api::{
        conditional::{etag, is_held},
        extract::read_body,
        mcp::{McpCaller, RoomApi},
    },
    app::App,
    auth::{Caller, bearer, network::Origin, secrets::sha256_hex},
    discovery::card,
    error::{Error, close_connection},
    services::a2a,
};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::any,
};
use futures_util::StreamExt;
use protocol::{
    RoomId,
    a2a::{A2aError, Binding, CARD_PATH, HttpRequest, MEDIA_TYPE, VERSION_HEADER},
};
use std::{convert::Infallible, sync::Arc, time::Duration};

/// The largest request.
const MAX_BODY: usize = 256 * 1024;
/// Streams say so often that they are still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What `/a2a` is served with.
pub struct A2aEndpoint {
    app: App,
    api: Router,
}

/// What a request's path names.
struct RoutePath {
    room: Option<RoomId>,
    /// Below the room or the server.
    rest: String,
}

impl RoutePath {
    fn of(path: &str) -> Result<Self> {
        let path = path.strip_prefix("/a2a").unwrap_or(path);
        let path = path.trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if !first.starts_with("rm_") {
            let rest = format!("/{path}");
            return Ok(Self { room: None, rest });
        }
        let room = first.parse().map_err(|_| Error::room_not_found())?;
        Ok(Self {
            room: Some(room),
            rest: format!("/{rest}"),
        })
    }
}

impl A2aEndpoint {
    /// The routes, in front of these.
    pub fn routes(app: &App, api: &Router) -> Router {
        let endpoint = Arc::new(Self {
            app: app.clone(),
            api: api.clone(),
        });
        Router::new()
            .route("/a2a", any(handle_request))
            .route("/a2a/{*path}", any(handle_request))
            .with_state(endpoint)
    }

    async fn handle_request(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let target = match RoutePath::of(parts.uri.path()) {
            Ok(target) => target,
            Err(failure) => return refused(&Binding::Http, &failure.0),
        };
        if parts.method == Method::GET && target.rest == CARD_PATH {
            return self.card(&parts, target.room).await;
        }
        let query = parts.uri.query().unwrap_or_default().as_bytes();
        let query: Vec<(String, String)> = form_urlencoded::parse(query).into_owned().collect();
        let version = parts.headers.get(VERSION_HEADER);
        let head = HttpRequest {
            method: parts.method.as_str(),
            path: &target.rest,
            query: &query,
            version: version.map(|value| value.to_str().unwrap_or("?")),
            body: &[],
        };
        // Whoever is nobody learns so before anything of the body is read.
        let binding = head.binding();
        let origin = self.origin(&parts);
        let caller = match McpCaller::of_the_api(&self.app, &parts.headers, origin).await {
            Ok(caller) => caller,
            Err(error) => return refused(&binding, &A2aFailure::from(error).0),
        };
        let whole = Request::from_parts(parts.clone(), body);
        let body = match read_body(&self.app, whole, MAX_BODY).await {
            Ok(body) => body,
            Err(error) => {
                let mut response = refused(&binding, &A2aFailure::from(error).0);
                close_connection(&mut response);
                return response;
            }
        };
        let asked = HttpRequest {
            body: &body,
            ..head
        };
        let asked = asked.read();
        let (binding, operation) = match asked.operation {
            Ok(operation) => (asked.binding, operation),
            Err(error) => return refused(&asked.binding, &error),
        };
        let asked = Operations {
            api: RoomApi::new(&self.app, &self.api, caller, &parts),
            headers: parts.headers.clone(),
            origin,
            room: target.room,
            older: matches!(binding, Binding::Rpc { older: true, .. }),
        };
        match asked.answer(operation).await {
            Ok(OperationReply::Once(outcome)) => {
                let body = binding.write_result(&outcome).to_string();
                written(&binding, StatusCode::OK, body)
            }
            Ok(OperationReply::Stream(watch)) => {
                let events = watch.events().map(move |event| {
                    let data = binding.event(&event).to_string();
                    Ok::<_, Infallible>(Event::default().data(data))
                });
                let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("working");
                let head = [(header::HeaderName::from_static("x-accel-buffering"), "no")];
                (head, Sse::new(events).keep_alive(keep_alive)).into_response()
            }
            Err(failure) => refused(&binding, &failure.0),
        }
    }

    fn origin(&self, parts: &Parts) -> Origin {
        let head = Request::from_parts(parts.clone(), Body::empty());
        Origin::of_request(&head, &self.app.config.network)
    }

    /// The card of a room for whoever may read it, or the server's own.
    async fn card(&self, parts: &Parts, room: Option<RoomId>) -> Response {
        let url = &self.app.public_url;
        let card = match room {
            None => card::describe(url),
            Some(room) => match self.room_card(parts, &room).await {
                Ok(card) => card,
                Err(error) => return error.into_response(),
            },
        };
        let card = card.to_string();
        let etag = etag(&sha256_hex(card.as_bytes()));
        let held = is_held(&parts.headers, &etag);
        let head = [
            (header::ETAG, etag),
            (header::CONTENT_TYPE, "application/json".to_owned()),
        ];
        match held {
            true => (StatusCode::NOT_MODIFIED, head).into_response(),
            false => (head, card).into_response(),
        }
    }

    async fn room_card(
        &self,
        parts: &Parts,
        room: &RoomId,
    ) -> crate::error::Result<serde_json::Value> {
        let caller = match bearer(&parts.headers)? {
            None => Caller::Anonymous,
            Some(_) => {
                let origin = self.origin(parts);
                let caller = McpCaller::of_the_api(&self.app, &parts.headers, origin).await?;
                caller.in_room(&self.app, room, origin).await?
            }
        };
        a2a::card::of_room(&self.app, &caller, room).await
    }
}

async fn handle_request(State(endpoint): State<Arc<A2aEndpoint>>, request: Request) -> Response {
    endpoint.handle_request(request).await
}

fn refused(binding: &Binding, error: &A2aError) -> Response {
    let (status, body) = binding.error(error);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = written(binding, status, body.to_string());
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer");
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

fn written(binding: &Binding, status: StatusCode, body: String) -> Response {
    let kind = match binding {
        Binding::Http => MEDIA_TYPE,
        Binding::Rpc { .. } => "application/json",
    };
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}
