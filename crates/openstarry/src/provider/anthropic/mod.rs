//! Anthropic's messages.

mod request;
mod stream;

use super::frames::Framing;
use super::http::{deferred, with_warnings};
use super::wire::ToolCache;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use crate::pain::AgentPain;

/// A model behind `…/v1/messages`.
#[derive(Debug)]
pub struct Anthropic {
    name: String,
    config: ProviderConfig,
    endpoint: Endpoint,
    tools: ToolCache,
}

impl Anthropic {
    pub(super) fn new(
        config: &ProviderConfig,
        endpoint: Endpoint,
        key: Option<String>,
    ) -> Result<Self, AgentPain> {
        let mut endpoint = endpoint.header("anthropic-version", "2023-06-01");
        if let Some(key) = key {
            endpoint = endpoint.secret("x-api-key", key)?;
        }
        Ok(Self {
            name: config.name(),
            config: config.clone(),
            endpoint,
            tools: ToolCache::default(),
        })
    }
}

impl Provider for Anthropic {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let deadline = self.endpoint.deadline();
            let request = request::build(self, prompt, context)?;
            let response = self
                .endpoint
                .post("/v1/messages", request.body, deadline)
                .await?;
            let decoder = stream::Blocks::new(&self.name, request.tools);
            let events = self
                .endpoint
                .read(response, deadline, Framing::Sse, Box::new(decoder));
            Ok(with_warnings(request.warnings, events))
        })
    }
}
