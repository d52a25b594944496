//! Tools and instructions uploaded once, and named by id from then on: the
//! document's `tools_id`.

use super::request;
use crate::pain::AgentPain;
use crate::provider::api::Api;
use crate::provider::wire::{Body, WireTools};
use crate::provider::{Context, read_bounded};
use serde_json::{Map, Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const LIFE: Duration = Duration::from_secs(3600);
/// The API refuses to keep less than about a thousand tokens; below this many
/// bytes we do not even ask.
const SMALLEST: usize = 4096;
/// How long an upload may hold up the request that it is meant to shorten.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The last upload: what it holds, and its id. No id: the API would not keep it.
#[derive(Debug, Default)]
pub(super) struct Uploads(Mutex<Option<Upload>>);

#[derive(Debug)]
struct Upload {
    holds: u64,
    id: Option<String>,
    until: Instant,
}

impl Uploads {
    /// The id to send in place of the tools and instructions, made when it is
    /// not there yet. A failure to upload costs the saving and nothing else.
    pub(super) async fn get(
        &self,
        api: &Api,
        context: &Context,
        tools: &WireTools,
    ) -> Option<String> {
        let size = tools.json.as_ref()?.get().len() + context.system.len();
        if !api.config.cache || size < SMALLEST {
            return None;
        }
        let holds = hash(tools, &context.system);
        if let Some(upload) = self.lock().as_ref()
            && upload.holds == holds
            && Instant::now() < upload.until
        {
            return upload.id.clone();
        }
        let id = upload(api, context, tools).await;
        *self.lock() = Some(Upload {
            holds,
            id: id.clone(),
            until: Instant::now() + LIFE * 9 / 10,
        });
        id
    }

    /// The upload is gone. Until it would have expired nothing is uploaded again.
    pub(super) fn forget(&self) {
        if let Some(upload) = self.lock().as_mut() {
            upload.id = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Upload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(tools: &WireTools, system: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (tools.fingerprint, system).hash(&mut hasher);
    hasher.finish()
}

async fn upload(api: &Api, context: &Context, tools: &WireTools) -> Option<String> {
    let mut rest = Map::new();
    rest.insert(
        "model".into(),
        format!("models/{}", api.config.model).into(),
    );
    rest.insert("ttl".into(), format!("{}s", LIFE.as_secs()).into());
    if !context.system.is_empty() {
        rest.insert("systemInstruction".into(), request::system(context));
    }
    // The API wants contents beside the tools.
    let hello = json!([{ "role": "user", "parts": [{ "text": "The conversation begins." }] }]);
    rest.insert("contents".into(), hello);
    let body = Body {
        rest,
        tools: tools.json.as_deref(),
    };
    let sent = api
        .endpoint
        .post("/cachedContents", body.bytes().ok()?.into());
    let read = async {
        let (bytes, _) = read_bounded(sent.await?, 64 << 10).await?;
        Ok::<_, AgentPain>(serde_json::from_slice::<Value>(&bytes).unwrap_or_default())
    };
    match tokio::time::timeout(TIMEOUT, read).await {
        Ok(Ok(answer)) => Some(answer.get("name")?.as_str()?.to_owned()),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the tools were not cached");
            None
        }
        Err(_) => None,
    }
}
