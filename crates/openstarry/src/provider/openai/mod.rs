//! OpenAI's chat completions, and the many servers that speak like it.

mod request;
mod stream;

use super::api::Api;
use super::call::deferred;
use super::frames::Framing;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};

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

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let request = request::build(&self.0, prompt, context)?;
            let path = "/chat/completions".to_owned();
            Ok(self.0.ask(path, request, Framing::Sse, stream::Chunks::new))
        })
    }
}
