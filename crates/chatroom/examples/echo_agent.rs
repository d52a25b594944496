//! An agent that a room server can push to, for trying things out and for tests.
//!
//! It answers `POST /chat/stream` as `--reply` says. `GET /calls` lists the calls it got, and
//! `POST /reply` with a text changes how it answers.

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use clap::Parser;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// An agent that answers as it is told.
#[derive(Parser)]
struct Options {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// `always`, `silent`, `once` (each bearer gets one answer), `hang`, `flood`, `endless`,
    /// `broken`, `reset`, `slow`, `status=NUMBER`, `redirect=URL`, or `raw=` and the bytes of a stream.
    #[arg(long, default_value = "always")]
    reply: String,
}

#[derive(Clone)]
struct Agent {
    reply: Arc<Mutex<String>>,
    calls: Arc<Mutex<Vec<Value>>>,
    /// The bearer that was answered last.
    answered: Arc<Mutex<Value>>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let options = Options::parse();
    let agent = Agent {
        reply: Arc::new(Mutex::new(options.reply)),
        calls: Arc::default(),
        answered: Arc::default(),
    };
    let router = Router::new()
        .route("/chat/stream", post(chat))
        .route("/calls", get(calls))
        .route("/reply", post(change))
        .with_state(agent);
    let listener = tokio::net::TcpListener::bind(options.listen).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, router).await
}

async fn calls(State(agent): State<Agent>) -> Json<Vec<Value>> {
    Json(lock(&agent.calls).clone())
}

async fn change(State(agent): State<Agent>, reply: String) {
    *lock(&agent.reply) = reply;
}

async fn chat(State(agent): State<Agent>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let seq = body["thread_metadata"]["seq"].clone();
    let headers: serde_json::Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap_or_default())))
        .collect();
    let bearer = headers.get("authorization").cloned().unwrap_or_default();
    lock(&agent.calls).push(json!({"headers": headers, "body": body}));
    let reply = lock(&agent.reply).clone();
    if reply == "once" && std::mem::replace(&mut *lock(&agent.answered), bearer.clone()) == bearer {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    answer(&reply, &seq)
}

fn answer(reply: &str, seq: &Value) -> Response {
    if let Some(status) = reply.strip_prefix("status=") {
        let status = status.parse().unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return (status, [(header::RETRY_AFTER, "1")]).into_response();
    }
    if let Some(target) = reply.strip_prefix("redirect=") {
        let head = [(header::LOCATION, target.to_owned())];
        return (StatusCode::TEMPORARY_REDIRECT, head).into_response();
    }
    if let Some(raw) = reply.strip_prefix("raw=") {
        return events(Body::from(raw.to_owned()));
    }
    let frame = |text: &str| Bytes::from(format!("data: {}\n\n", json!({"text": text})));
    match reply {
        "silent" => events(Body::from(frame("[SILENT]"))),
        "hang" => events(Body::from_stream(stream::pending::<
            Result<Bytes, Infallible>,
        >())),
        "flood" => {
            let chunk = Bytes::from(format!("data: {}\n\n", "x".repeat(16 * 1024)));
            let gigabyte = stream::iter(0..65_536).map(move |_| Ok::<_, Infallible>(chunk.clone()));
            events(Body::from_stream(gigabyte))
        }
        // One line that never ends.
        "endless" => {
            let begin = stream::iter([Bytes::from_static(b"data: ")]);
            let more = stream::repeat(Bytes::from(vec![b'x'; 16 * 1024]));
            events(Body::from_stream(
                begin.chain(more).map(Ok::<_, Infallible>),
            ))
        }
        "broken" => events(Body::from(
            &b"data: {\"text\":\"\xff\xfe\xc3\x28\"}\n\n"[..],
        )),
        "reset" => {
            let parts = [Ok(frame("half an ans")), Err(io::Error::other("reset"))];
            events(Body::from_stream(stream::iter(parts)))
        }
        // Two halves, and a pause in which the room can see the first.
        "slow" => {
            let parts = stream::unfold(0, move |n| async move {
                match n {
                    0 => Some((frame("The first half"), 1)),
                    1 => {
                        tokio::time::sleep(Duration::from_millis(1500)).await;
                        Some((frame(" and the second"), 2))
                    }
                    _ => None,
                }
            });
            events(Body::from_stream(parts.map(Ok::<_, Infallible>)))
        }
        _ => events(Body::from(frame(&format!("An answer to {seq}")))),
    }
}

fn events(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
