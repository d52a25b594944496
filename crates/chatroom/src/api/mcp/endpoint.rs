//! The route: who is it, whose session is it, and then to `rmcp`.

use super::{caller::McpCaller, handler::Rooms, resume::ResumableSessions, sessions::McpSessions};
use crate::{
    api::extract::read_body,
    app::App,
    auth::network::Origin,
    error::{Error, Result},
};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService,
    session::local::{LocalSessionManager, SessionConfig},
};
use serde::Deserialize;
use std::{sync::Arc, time::Duration};

/// The largest request: rules of the largest size, escaped.
const MAX_BODY: usize = 256 * 1024;
const SESSION_ID: &str = "mcp-session-id";

/// What `/mcp` is served with.
pub struct McpEndpoint {
    app: App,
    service: StreamableHttpService<Rooms, ResumableSessions>,
    sessions: McpSessions,
}

impl McpEndpoint {
    /// The route, in front of these.
    pub fn routes(app: &App, api: &Router) -> Router {
        let mut manager = LocalSessionManager::default();
        let mut session = SessionConfig::default();
        let idle = Duration::from_secs(app.config.mcp.session_idle_seconds.max(1));
        session.keep_alive = Some(idle);
        manager.session_config = session;
        let sessions = McpSessions::new(manager);
        // Nothing is opened by a cookie or by where a browser comes from, so neither the host nor the origin
        // tells anything.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(MAX_BODY)
            .with_cancellation_token(app.shutdown.graceful_token());
        let (made_of, routes) = (app.clone(), api.clone());
        let service = StreamableHttpService::new(
            move || Ok(Rooms::new(&made_of, &routes)),
            sessions.manager.clone(),
            config,
        );
        let endpoint = Arc::new(Self {
            app: app.clone(),
            service,
            sessions,
        });
        Router::new()
            .route("/mcp", any(handle_request))
            .with_state(endpoint)
    }

    async fn handle_request(&self, request: Request) -> Result<Response> {
        let (mut parts, body) = request.into_parts();
        let request = Request::from_parts(parts.clone(), Body::empty());
        let origin = Origin::of_request(&request, &self.app.config.network);
        let caller = McpCaller::of(&self.app, &parts.headers, origin).await?;
        let owner = caller.owner();
        let session = parts.headers.get(SESSION_ID);
        let session = session.map(|id| id.to_str().unwrap_or_default().to_owned());
        if let Some(session) = &session
            && !self.sessions.is_of(session, &owner).await
        {
            return Err(Error::not_found(
                "No such session, or it has ended; send initialize without a session id",
            ));
        }
        let body = match parts.method {
            Method::POST => {
                let request = Request::from_parts(parts.clone(), body);
                read_body(&self.app, request, MAX_BODY).await?
            }
            _ => bytes::Bytes::new(),
        };
        if session.is_none() && opens_a_session(&body) {
            let limits = &self.app.config.mcp;
            let sessions = &self.sessions;
            sessions
                .make_room(&owner, limits.sessions_per_user, limits.sessions)
                .await?;
        }
        parts.extensions.insert(caller);
        let request = Request::from_parts(parts, Body::from(body));
        let response = self.service.handle(request).await;
        if let Some(opened) = response.headers().get(SESSION_ID)
            && session.is_none()
        {
            self.sessions
                .opened(opened.to_str().unwrap_or_default(), owner);
        }
        Ok(response.map(Body::new))
    }
}

/// Whether the request is the one that makes a session.
fn opens_a_session(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct JsonRpcRequest {
        method: Option<String>,
    }
    serde_json::from_slice::<JsonRpcRequest>(body)
        .is_ok_and(|request| request.method.as_deref() == Some("initialize"))
}

async fn handle_request(State(endpoint): State<Arc<McpEndpoint>>, request: Request) -> Response {
    match endpoint.handle_request(request).await {
        Ok(response) => response,
        Err(refused) => {
            let mut response = refused.into_response();
            if response.status() == StatusCode::UNAUTHORIZED {
                let url = &endpoint.app.public_url;
                let challenge = format!(
                    "Bearer resource_metadata=\"{url}/.well-known/oauth-protected-resource/mcp\""
                );
                if let Ok(challenge) = HeaderValue::try_from(challenge) {
                    let headers = response.headers_mut();
                    headers.insert(header::WWW_AUTHENTICATE, challenge);
                }
            }
            response
        }
    }
}
