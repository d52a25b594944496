//! An agent's host, as far as its keys and the calls with them go.

use super::stand_in;
use axum::{
    Json, Router,
    extract::Path,
    http::{HeaderMap, StatusCode},
    routing,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard};

/// A host that refuses what the contract refuses. It answers every call with silence.
pub struct AgentHost {
    pub url: String,
    state: Shared,
}

type Shared = Arc<Mutex<State>>;

#[derive(Default)]
struct State {
    made: usize,
    keys: Vec<Value>,
    calls: Vec<Value>,
}

impl AgentHost {
    pub async fn start() -> Self {
        let state = Shared::default();
        let (listed, made, ended, called) =
            (state.clone(), state.clone(), state.clone(), state.clone());
        let list = async move || Json(json!({"keys": locked(&listed).keys}));
        let create = async move |headers: HeaderMap, Json(request): Json<Value>| {
            create(&mut locked(&made), &headers, &request)
        };
        let delete = async move |Path(prefix): Path<String>| {
            let mut state = locked(&ended);
            let before = state.keys.len();
            state.keys.retain(|key| key["prefix"] != prefix);
            match state.keys.len() < before {
                true => (StatusCode::OK, Json(json!({"ok": true}))),
                false => refused(StatusCode::NOT_FOUND, "no such key"),
            }
        };
        let chat = async move |headers: HeaderMap, Json(request): Json<Value>| {
            call(&mut locked(&called), &headers, request)
        };
        let router = Router::new()
            .route("/api/keys", routing::get(list).post(create))
            .route("/api/keys/{prefix}", routing::delete(delete))
            .route("/chat/stream", routing::post(chat));
        let url = stand_in(router).await;
        Self { url, state }
    }

    /// The keys that still count.
    pub fn keys(&self) -> Vec<Value> {
        locked(&self.state).keys.clone()
    }

    /// The calls that came with a key for their thread.
    pub fn calls(&self) -> Vec<Value> {
        locked(&self.state).calls.clone()
    }
}

fn locked(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap()
}

fn create(state: &mut State, headers: &HeaderMap, request: &Value) -> (StatusCode, Json<Value>) {
    if headers.contains_key("authorization") {
        return refused(StatusCode::BAD_REQUEST, "a token that is not for this host");
    }
    let scope = request["scope"].as_str().unwrap_or_default();
    let known = scope == "chat:bridge:cli" || scope.starts_with("chat:thread:chatroom-rm_");
    let bounded = request["ttl_seconds"].as_i64().is_some_and(|ttl| ttl > 0)
        && request["rate_limit"]["per_minute"].is_u64()
        && request["label"].is_string();
    if !known || !bounded {
        return refused(StatusCode::BAD_REQUEST, "no such key can be made");
    }
    state.made += 1;
    let prefix = format!("sk_{:08}", state.made);
    let mut key = request.clone();
    key["prefix"] = json!(prefix);
    state.keys.push(key.clone());
    let made = json!({"secret": format!("{prefix}_secret"), "key": key});
    (StatusCode::CREATED, Json(made))
}

fn call(state: &mut State, headers: &HeaderMap, request: Value) -> (StatusCode, String) {
    let bearer = headers.get("authorization").and_then(|it| it.to_str().ok());
    let thread = request["thread_id"].as_str().unwrap_or_default();
    let key = state.keys.iter().find(|key| {
        let prefix = key["prefix"].as_str().unwrap();
        bearer == Some(&format!("Bearer {prefix}_secret"))
    });
    match key.and_then(|key| key["scope"].as_str()) {
        None => (StatusCode::UNAUTHORIZED, String::new()),
        Some(scope) if scope != format!("chat:thread:{thread}") => {
            (StatusCode::FORBIDDEN, String::new())
        }
        Some(_) => {
            state.calls.push(request);
            (StatusCode::OK, "data: [SILENT]\n\n".to_owned())
        }
    }
}

fn refused(status: StatusCode, message: &str) -> (StatusCode, Json<Value>) {
    let body = json!({"error": "bad_request", "message": message});
    (status, Json(body))
}
