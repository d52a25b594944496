//! OpenAI's chat completions, and the many servers that speak like it.

mod request;
mod stream;

use super::api::Api;
use super::call::deferred;
use super::frames::Framing;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use std::sync::Arc;

/// A model behind `…/chat/completions`.
#[derive(Debug)]
pub struct OpenAi(Api);

impl OpenAi {
    pub(super) fn new(config: &ProviderConfig, endpoint: Endpoint) -> Self {
        Self(Api::new(config, endpoint))
    }
}

impl Provider for OpenAi {
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
        // These take JSON of any shape, and no schema.
        let base = self.0.config.base_url.as_deref().unwrap_or_default();
        !(base.contains("api.deepseek.com") || base.contains("api.moonshot."))
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let request = request::build(&self.0, prompt, context)?;
            let path = "/chat/completions".to_owned();
            Ok(self.0.ask(path, request, Framing::Sse, stream::Chunks::new))
        })
    }
}
