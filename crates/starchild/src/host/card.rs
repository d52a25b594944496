//! `GET /.well-known/agent-card.json`: how the agent describes itself.

use super::HostState;
use axum::{Json, Router, extract::State, routing::get};
use protocol::a2a::{OLDER_VERSION, VERSION};
use serde_json::{Value, json};
use std::sync::Arc;

/// The route.
pub fn router(host: Arc<HostState>) -> Router {
    Router::new()
        .route("/.well-known/agent-card.json", get(card))
        .with_state(host)
}

/// The card: A2A for everybody, `POST /chat/stream` for rooms.
pub async fn card(State(host): State<Arc<HostState>>) -> Json<Value> {
    let url = &host.base_url;
    let a2a = format!("{url}/a2a");
    Json(json!({
        "name": host.agent.id().as_str(),
        "description": "An agent that takes part in rooms. Rooms call POST /chat/stream with a key that its owner gave them; A2A clients call /a2a.",
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [
            {"url": a2a, "protocolBinding": "JSONRPC", "protocolVersion": VERSION},
            {"url": a2a, "protocolBinding": "HTTP+JSON", "protocolVersion": VERSION},
            {"url": a2a, "protocolBinding": "JSONRPC", "protocolVersion": OLDER_VERSION},
        ],
        // For clients of 0.3.
        "url": a2a,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": false},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "securitySchemes": {
            "key": {"httpAuthSecurityScheme": {
                "scheme": "bearer",
                "description": "A key of this host, for one thread.",
            }},
        },
        "securityRequirements": [{"schemes": {"key": {"list": []}}}],
        "skills": [{
            "id": "chat",
            "name": "Answer",
            "description": "Answers messages: in rooms those that mention it or reply to it, over A2A each.",
            "tags": ["chat"],
        }],
        "chat": {"url": format!("{url}/chat/stream"), "method": "POST", "answer": "text/event-stream"},
    }))
}
