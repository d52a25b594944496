//! Anthropic's messages.

mod request;
mod stream;

use super::api::Api;
use super::call::deferred;
use super::frames::Framing;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use std::sync::Arc;

/// A model behind `…/v1/messages`.
#[derive(Debug)]
pub struct Anthropic(Api);

impl Anthropic {
    pub(super) fn new(config: &ProviderConfig, endpoint: Endpoint) -> Self {
        Self(Api::new(config, endpoint))
    }
}

impl Provider for Anthropic {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn model(&self) -> Option<&str> {
        Some(&self.0.config.model)
    }

    fn with_model(&self, model: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Self(self.0.with_model(model))))
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let request = request::build(&self.0, prompt, context)?;
            let path = "/v1/messages".to_owned();
            Ok(self.0.ask(path, request, Framing::Sse, stream::Blocks::new))
        })
    }
}
