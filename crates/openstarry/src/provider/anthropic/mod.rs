//! Anthropic's messages.

mod request;
mod stream;

use super::api::Api;
use super::frames::Framing;
use super::http::deferred;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use crate::pain::AgentPain;

/// A model behind `…/v1/messages`.
#[derive(Debug)]
pub struct Anthropic(Api);

impl Anthropic {
    pub(super) fn new(
        config: &ProviderConfig,
        endpoint: Endpoint,
        key: Option<String>,
    ) -> Result<Self, AgentPain> {
        let endpoint = endpoint.header("anthropic-version", "2023-06-01");
        Ok(Self(Api::new(config, endpoint, "x-api-key", key)?))
    }
}

impl Provider for Anthropic {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let request = request::build(&self.0, prompt, context)?;
            let path = "/v1/messages";
            self.0
                .ask(path, request, Framing::Sse, stream::Blocks::new)
                .await
        })
    }
}
