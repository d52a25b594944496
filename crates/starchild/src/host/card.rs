//! `GET /.well-known/agent-card.json`: how the agent describes itself.

use super::Shared;
use axum::{Json, Router, extract::State, routing::get};
use serde_json::{Value, json};
use std::sync::Arc;

/// The route.
pub fn router(host: Arc<Shared>) -> Router {
    Router::new()
        .route("/.well-known/agent-card.json", get(card))
        .with_state(host)
}

/// The card names no A2A interface: the agent is called with `POST /chat/stream`.
async fn card(State(host): State<Arc<Shared>>) -> Json<Value> {
    let url = &host.base_url;
    Json(json!({
        "name": host.agent.id().as_str(),
        "description": "An agent that takes part in rooms. Rooms call POST /chat/stream with a key that its owner gave them.",
        "url": url,
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [],
        "capabilities": {"streaming": true, "pushNotifications": false},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain", "text/event-stream"],
        "securitySchemes": {
            "key": {"httpAuthSecurityScheme": {
                "scheme": "bearer",
                "description": "A key of this host, for one thread.",
            }},
        },
        "securityRequirements": [{"schemes": {"key": {"list": []}}}],
        "skills": [{
            "id": "chat",
            "name": "Answer in a room",
            "description": "Answers messages that mention it or reply to it.",
            "tags": ["chat"],
        }],
        "chat": {"url": format!("{url}/chat/stream"), "method": "POST", "answer": "text/event-stream"},
    }))
}
