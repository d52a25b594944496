//! Services that call when something has happened, as Standard Webhooks has it:
//! each call is signed (HMAC-SHA256 over id, time and body), has to come within
//! five minutes, and counts once.

use super::http::{Refusal, body, no_store, to_xml};
use super::log::ToLog;
use super::{Outside, REQUEST, server};
use agentserver::SendError;
use agentserver::gateway::{CorrelationId, GatewayConversations, Idle};
use agentserver::payload::Schema;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use serde_json::json;
use sha2::Sha256;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// The file's words for it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookFile {
    listen: SocketAddr,
    /// The variable that holds the secret: `whsec_` and base64, or plain text.
    secret_env: String,
    /// The payload that a call becomes.
    payload: String,
    /// The text field that the body goes into as it is; else the body is the
    /// payload, as JSON or XML.
    #[serde(default)]
    field: Option<String>,
    /// Whom to send it to, where its type does not say.
    #[serde(default)]
    to: Option<String>,
}

/// How far a call's time may be from ours.
const WINDOW: u64 = 300;
/// How long a call's conversation is kept, and the call's id with it: for as long as
/// the same call could come in time.
const KNOWN: Idle = Idle(Duration::from_secs(2 * WINDOW));

struct Hook {
    conversations: GatewayConversations<ToLog>,
    secret: Vec<u8>,
    schema: Schema,
    field: Option<String>,
    to: Option<String>,
    limit: usize,
}

impl WebhookFile {
    pub(super) async fn start(
        &self,
        outside: Outside,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), String> {
        let secret = std::env::var(&self.secret_env).unwrap_or_default();
        let secret = match secret.strip_prefix("whsec_") {
            Some(encoded) => STANDARD
                .decode(encoded)
                .map_err(|_| format!("{} is no base64 after whsec_", self.secret_env))?,
            None => secret.into_bytes(),
        };
        if secret.len() < 16 {
            return Err(format!(
                "set {} to a secret of 16 bytes or more",
                self.secret_env
            ));
        }
        let Outside {
            pump,
            gateway,
            limits,
        } = outside;
        let offers = pump.organism().offers(&gateway);
        let offer = offers
            .into_iter()
            .find(|offer| offer.schema.name == self.payload);
        let schema = offer
            .ok_or_else(|| format!("no peer accepts {:?}", self.payload))?
            .schema;
        if let Some(field) = &self.field
            && schema.fields().iter().all(|known| known.name != *field)
        {
            return Err(format!("{} has no field {field:?}", self.payload));
        }
        let outlet = ToLog {
            gateway: gateway.clone(),
        };
        let hook = Hook {
            conversations: GatewayConversations::new(pump, &gateway, outlet, KNOWN),
            secret,
            schema,
            field: self.field.clone(),
            to: self.to.clone(),
            limit: limits.bytes,
        };
        let (listener, address) = server::bind(self.listen).await?;
        eprintln!("{gateway}: webhooks at http://{address}/");
        let router = Router::new()
            .route("/", axum::routing::post(receive))
            .with_state(Arc::new(hook));
        tasks.spawn(server::serve(listener, router));
        Ok(())
    }
}

async fn receive(State(hook): State<Arc<Hook>>, request: Request) -> Result<Response, Refusal> {
    let (head, content) = request.into_parts();
    let bytes = body(content, hook.limit).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    let id = verified(&head.headers, &bytes, &hook.secret, now)?;
    let correlation = CorrelationId::parse(&id).map_err(Refusal::invalid)?;
    let xml = match &hook.field {
        Some(field) => {
            let text = String::from_utf8_lossy(&bytes);
            let value = json!({ field.as_str(): text });
            hook.schema.json_to_xml(&value).map_err(Refusal::invalid)?
        }
        None => to_xml(&hook.schema, &head.headers, &bytes)?,
    };
    // The conversation knows the call, with a journal also after a crash.
    let sent = hook
        .conversations
        .send_once(&correlation, &id, hook.to.as_deref(), &xml);
    let sent = tokio::time::timeout(REQUEST, sent).await;
    let sent = sent.map_err(|_| Refusal::busy("there is no room for the call"))??;
    Ok(accepted(&id, sent.is_none()))
}

fn accepted(id: &str, duplicate: bool) -> Response {
    let told = axum::Json(json!({ "id": id, "duplicate": duplicate }));
    (StatusCode::ACCEPTED, no_store(), told).into_response()
}

/// The id of a call whose signature and time are right.
fn verified(headers: &HeaderMap, body: &[u8], secret: &[u8], now: u64) -> Result<String, Refusal> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let unsigned = || Refusal::unauthorized("the webhook-id, -timestamp and -signature do not fit");
    let (Some(id), Some(time), Some(signatures)) = (
        header("webhook-id"),
        header("webhook-timestamp"),
        header("webhook-signature"),
    ) else {
        return Err(unsigned());
    };
    let sent: u64 = time.parse().map_err(|_| unsigned())?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| unsigned())?;
    mac.update(format!("{id}.{time}.").as_bytes());
    mac.update(body);
    let is_right = signatures.split(' ').take(8).any(|signature| {
        let decoded = signature
            .strip_prefix("v1,")
            .map(|text| STANDARD.decode(text));
        // Compared in constant time.
        matches!(decoded, Some(Ok(bytes)) if mac.clone().verify_slice(&bytes).is_ok())
    });
    match (is_right, now.abs_diff(sent) <= WINDOW) {
        (false, _) => Err(unsigned()),
        (true, false) => Err(Refusal::unauthorized(
            "the call is more than five minutes from now",
        )),
        (true, true) => Ok(id.to_owned()),
    }
}

impl From<SendError> for Refusal {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Refused(payload) => Self::refused(payload.xml()),
            SendError::Payload(error) => Self::invalid(error),
            error @ (SendError::Closed | SendError::Full(_) | SendError::Journal(_)) => {
                Self::busy(&error.to_string())
            }
        }
    }
}
