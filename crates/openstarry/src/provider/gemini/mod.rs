//! Google's Gemini.

mod cache;
mod request;
mod stream;

use super::frames::Framing;
use super::http::{deferred, with_warnings};
use super::wire::ToolCache;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use crate::pain::AgentPain;

/// A model behind `…:streamGenerateContent`.
#[derive(Debug)]
pub struct Gemini {
    name: String,
    config: ProviderConfig,
    endpoint: Endpoint,
    tools: ToolCache,
    cached: cache::Uploads,
}

impl Gemini {
    pub(super) fn new(
        config: &ProviderConfig,
        mut endpoint: Endpoint,
        key: Option<String>,
    ) -> Result<Self, AgentPain> {
        if let Some(key) = key {
            endpoint = endpoint.secret("x-goog-api-key", key)?;
        }
        Ok(Self {
            name: config.name(),
            config: config.clone(),
            endpoint,
            tools: ToolCache::default(),
            cached: cache::Uploads::default(),
        })
    }
}

impl Provider for Gemini {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let deadline = self.endpoint.deadline();
            let path = format!(
                "/models/{}:streamGenerateContent?alt=sse",
                self.config.model
            );
            let tools = request::tools(self, context)?;
            let upload = self.cached.get(self, context, &tools, deadline).await;
            let request = request::build(self, prompt, context, &tools, upload.as_deref())?;
            let sent = self.endpoint.post(&path, request.body, deadline).await;
            let response = match (sent, upload) {
                // The upload is gone before its time: send everything once more.
                (Err(AgentPain::Refused { .. } | AgentPain::Key(_)), Some(_)) => {
                    self.cached.forget();
                    let request = request::build(self, prompt, context, &tools, None)?;
                    self.endpoint.post(&path, request.body, deadline).await?
                }
                (sent, _) => sent?,
            };
            let decoder = stream::Parts::new(&self.name, tools);
            let events = self
                .endpoint
                .read(response, deadline, Framing::Sse, Box::new(decoder));
            Ok(with_warnings(request.warnings, events))
        })
    }
}
