//! OpenAI's chat completions, and the many servers that speak like it.

mod request;
mod stream;

use super::frames::Framing;
use super::http::{deferred, with_warnings};
use super::wire::ToolCache;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use crate::pain::AgentPain;

/// A model behind `…/chat/completions`.
#[derive(Debug)]
pub struct OpenAi {
    name: String,
    config: ProviderConfig,
    endpoint: Endpoint,
    tools: ToolCache,
}

impl OpenAi {
    pub(super) fn new(
        config: &ProviderConfig,
        mut endpoint: Endpoint,
        key: Option<String>,
    ) -> Result<Self, AgentPain> {
        if let Some(key) = key {
            endpoint = endpoint.secret("authorization", format!("Bearer {key}"))?;
        }
        Ok(Self {
            name: config.name(),
            config: config.clone(),
            endpoint,
            tools: ToolCache::default(),
        })
    }
}

impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let deadline = self.endpoint.deadline();
            let request = request::build(self, prompt, context)?;
            let response = self
                .endpoint
                .post("/chat/completions", request.body, deadline)
                .await?;
            let whole = response
                .headers()
                .get("content-type")
                .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
            // A server that cannot stream answers with one JSON document.
            let framing = match whole {
                true => Framing::Whole,
                false => Framing::Sse,
            };
            let decoder = stream::Chunks::new(&self.name, request.tools);
            let events = self
                .endpoint
                .read(response, deadline, framing, Box::new(decoder));
            Ok(with_warnings(request.warnings, events))
        })
    }
}
