//! Ollama's chat.

mod request;
mod stream;

use super::api::Api;
use super::call::deferred;
use super::frames::Framing;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use std::sync::Arc;

/// A model behind `…/api/chat`.
#[derive(Debug)]
pub struct Ollama(Api);

impl Ollama {
    pub(super) fn new(config: &ProviderConfig, endpoint: Endpoint) -> Self {
        Self(Api::new(config, endpoint))
    }
}

impl Provider for Ollama {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn model(&self) -> Option<&str> {
        Some(&self.0.config.model)
    }

    fn with_model(&self, model: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Self(self.0.with_model(model))))
    }

    fn structured_output(&self) -> bool {
        true
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let request = request::build(&self.0, prompt, context)?;
            let path = "/api/chat".to_owned();
            Ok(self
                .0
                .ask(path, request, Framing::Lines, stream::Lines::new))
        })
    }
}
