//! HTTP as a gateway: a payload is posted, and what comes of it is waited for or
//! followed as a stream of events.

mod events;
mod openapi;
mod refusal;

pub use refusal::{Refusal, no_store};

use super::{Outside, REQUEST, server};
use crate::organism::observe::metrics;
use agentserver::gateway::{CorrelationId, GatewayConversations, Idle};
use agentserver::payload::{Canonical, Schema};
use agentserver::xml::Limits;
use agentserver::{Offer, Pump};
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use events::{Events, ToEvents};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The file's words for it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpFile {
    #[serde(default = "loopback")]
    listen: SocketAddr,
    /// The variable that holds the token that every request needs.
    #[serde(default)]
    token_env: Option<String>,
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8070))
}

/// The longest that a caller may wait for answers.
const WAIT: u64 = 300;

struct Api {
    pump: Pump,
    gateway: String,
    conversations: GatewayConversations<ToEvents>,
    events: Arc<Events>,
    limits: Limits,
    token: Option<[u8; 32]>,
}

impl HttpFile {
    pub(super) async fn start(
        &self,
        outside: Outside,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), String> {
        let Outside {
            pump,
            gateway,
            limits,
        } = outside;
        let token = match &self.token_env {
            None if !self.listen.ip().is_loopback() => {
                return Err("listens beyond this machine, so it needs a `token_env`".to_owned());
            }
            None => None,
            Some(variable) => match std::env::var(variable) {
                Ok(token) if token.len() >= 16 => Some(digest(&token)),
                _ => {
                    return Err(format!(
                        "set {variable} to a token of 16 characters or more"
                    ));
                }
            },
        };
        let events = Arc::new(Events::new(pump.clone()));
        let api = Arc::new(Api {
            conversations: GatewayConversations::new(
                pump.clone(),
                &gateway,
                ToEvents(events.clone()),
                Idle::default(),
            ),
            pump,
            gateway: gateway.clone(),
            events,
            limits,
            token,
        });
        let (listener, address) = server::bind(self.listen).await?;
        eprintln!("{gateway}: http://{address}/openapi.json");
        let router = Router::new()
            .route("/payloads/{name}", post(send))
            .route("/payloads/{name}/xsd", get(xsd))
            .route("/conversations/{id}/events", get(follow))
            .route("/conversations/{id}", delete(close))
            .route("/openapi.json", get(document))
            .route("/metrics", get(scrape))
            .fallback(async || Refusal::no_address())
            .method_not_allowed_fallback(async || Refusal::no_method())
            .layer(middleware::from_fn_with_state(api.clone(), admit))
            .with_state(api);
        tasks.spawn(server::serve(listener, router));
        Ok(())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Lets through who has the token; where there is none, who calls this machine
/// by its own name, so that no page of a browser can.
async fn admit(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match &api.token {
        Some(expected) => {
            let given = text(header::AUTHORIZATION);
            let given = given.and_then(|value| value.strip_prefix("Bearer "));
            // Digests are compared, so the time tells nothing of the token.
            if given.map(digest).as_ref() != Some(expected) {
                return Err(Refusal::unauthorized(
                    "send the token as Authorization: Bearer …",
                ));
            }
        }
        None => {
            if !server::calls_loopback(&headers) {
                return Err(Refusal::unauthorized(
                    "without a token, call it by localhost",
                ));
            }
        }
    }
    Ok(next.run(request).await)
}

/// A whole body, within its limits.
pub async fn body(body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let read = axum::body::to_bytes(body, limit);
    match tokio::time::timeout(REQUEST, read).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(Refusal::too_large(limit)),
        Err(_) => Err(Refusal::slow()),
    }
}

/// A body as the XML of a payload, whichever of the two it is.
pub fn to_xml(schema: &Schema, headers: &HeaderMap, bytes: &[u8]) -> Result<String, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match kind {
        "application/json" => {
            let value: Value = serde_json::from_slice(bytes).map_err(Refusal::invalid)?;
            schema.json_to_xml(&value).map_err(Refusal::invalid)
        }
        "application/xml" | "text/xml" => {
            let text = agentserver::xml::text(bytes).map_err(Refusal::invalid)?;
            Ok(text.to_owned())
        }
        _ => Err(Refusal::media_type()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendQuery {
    to: Option<String>,
    /// Seconds.
    wait: Option<u64>,
}

async fn send(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    query: Result<Query<SendQuery>, QueryRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    let offer = api.offer(&name)?;
    let (head, content) = request.into_parts();
    let given = head.headers.get("correlation-id");
    let correlation = match given {
        None => CorrelationId::random(),
        Some(given) => {
            let text = given.to_str().unwrap_or_default();
            CorrelationId::parse(text).map_err(Refusal::invalid)?
        }
    };
    let bytes = body(content, api.limits.bytes).await?;
    let xml = to_xml(&offer.schema, &head.headers, &bytes)?;
    // The address says which payload it is.
    let payload = Canonical::parse(&xml, &api.limits).map_err(Refusal::invalid)?;
    if payload.root() != offer.schema.name || payload.namespace() != offer.schema.namespace {
        return Err(Refusal::invalid(format!(
            "expected {}, found {}",
            in_words(&offer.schema.name, &offer.schema.namespace),
            in_words(payload.root(), payload.namespace())
        )));
    }
    api.events.begin(&correlation)?;
    let sent = api
        .conversations
        .send(&correlation, query.to.as_deref(), &xml);
    let sent = match tokio::time::timeout(REQUEST, sent).await {
        Ok(sent) => sent.map_err(Refusal::from),
        Err(_) => Err(Refusal::busy("there is no room for the message")),
    };
    let sent = sent.inspect_err(|_| api.give_up(&correlation, given.is_none()))?;
    let wait = query.wait.unwrap_or(0).min(WAIT);
    let (answers, done) = match wait {
        // Who does not wait follows the events, and reads there.
        0 => (Vec::new(), false),
        seconds => {
            let deadline = Instant::now() + Duration::from_secs(seconds);
            api.events.wait(&correlation, sent, deadline).await
        }
    };
    let status = match done {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    let told = json!({ "correlation_id": correlation.as_str(), "answers": answers, "done": done });
    Ok((status, no_store(), Json(told)).into_response())
}

/// An element, with its namespace where it has one.
fn in_words(name: &str, namespace: &str) -> String {
    match namespace {
        "" => format!("<{name}>"),
        namespace => format!("<{name}> in the namespace {namespace:?}"),
    }
}

async fn follow(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let correlation = CorrelationId::parse(&id).map_err(Refusal::invalid)?;
    let last = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    let last = last.and_then(|value| value.parse().ok()).unwrap_or(0);
    // One from before a crash may have had no answer yet.
    if api.conversations.contains(&correlation) {
        api.events.begin(&correlation)?;
    }
    let stream = api.events.clone().follow(correlation, last);
    Ok(stream.ok_or_else(Refusal::no_conversation)?.into_response())
}

async fn close(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<Response, Refusal> {
    let correlation = CorrelationId::parse(&id).map_err(Refusal::invalid)?;
    match api.conversations.close(&correlation) {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Refusal::no_conversation()),
    }
}

async fn document(State(api): State<Arc<Api>>) -> Json<Value> {
    let organism = api.pump.organism();
    let offers = organism.offers(&api.gateway);
    Json(openapi::document(
        organism.name(),
        &offers,
        api.token.is_some(),
    ))
}

async fn scrape(State(api): State<Arc<Api>>) -> Response {
    metrics::response(&api.pump.stats())
}

async fn xsd(State(api): State<Arc<Api>>, Path(name): Path<String>) -> Result<Response, Refusal> {
    let kind = [(header::CONTENT_TYPE, "application/xml")];
    Ok((kind, api.offer(&name)?.schema.xsd()).into_response())
}

impl Api {
    /// Nothing was sent: a conversation that nobody else knows of is over.
    fn give_up(&self, correlation: &CorrelationId, is_own: bool) {
        if is_own {
            self.conversations.close(correlation);
        }
        if !self.conversations.contains(correlation) {
            self.events.forget(correlation);
        }
    }

    fn offer(&self, name: &str) -> Result<Offer, Refusal> {
        let offers = self.pump.organism().offers(&self.gateway);
        let mut names: Vec<_> = offers
            .iter()
            .map(|offer| offer.schema.name.clone())
            .collect();
        names.dedup();
        let found = offers.into_iter().find(|offer| offer.schema.name == name);
        found.ok_or_else(|| Refusal::no_payload(name, &names))
    }
}
