//! Ollama's chat.

mod request;
mod stream;

use super::frames::Framing;
use super::http::{deferred, with_warnings};
use super::wire::ToolCache;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use crate::pain::AgentPain;

/// A model behind `…/api/chat`.
#[derive(Debug)]
pub struct Ollama {
    name: String,
    config: ProviderConfig,
    endpoint: Endpoint,
    tools: ToolCache,
}

impl Ollama {
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

impl Provider for Ollama {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let deadline = self.endpoint.deadline();
            let request = request::build(self, prompt, context)?;
            let response = self
                .endpoint
                .post("/api/chat", request.body, deadline)
                .await?;
            let decoder = stream::Lines::new(&self.name, request.tools);
            let events = self
                .endpoint
                .read(response, deadline, Framing::Lines, Box::new(decoder));
            Ok(with_warnings(request.warnings, events))
        })
    }
}
