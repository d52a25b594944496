//! Google's Gemini.

mod cache;
mod request;
mod stream;

use super::api::Api;
use super::frames::Framing;
use super::http::deferred;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use crate::pain::AgentPain;

/// A model behind `…:streamGenerateContent`.
#[derive(Debug)]
pub struct Gemini {
    api: Api,
    uploads: cache::Uploads,
}

impl Gemini {
    pub(super) fn new(
        config: &ProviderConfig,
        endpoint: Endpoint,
        key: Option<String>,
    ) -> Result<Self, AgentPain> {
        Ok(Self {
            api: Api::new(config, endpoint, "x-goog-api-key", key)?,
            uploads: cache::Uploads::default(),
        })
    }
}

impl Provider for Gemini {
    fn name(&self) -> &str {
        &self.api.name
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let Self { api, uploads } = self;
            let deadline = api.endpoint.deadline();
            let path = format!("/models/{}:streamGenerateContent?alt=sse", api.config.model);
            let tools = request::tools(api, context)?;
            let upload = uploads.get(api, context, &tools, deadline).await;
            let request = request::build(api, prompt, context, &tools, upload.as_deref())?;
            let sent = api.endpoint.post(&path, request.body, deadline).await;
            let response = match (sent, upload) {
                // The upload is gone before its time: send everything once more.
                (Err(AgentPain::Refused { .. } | AgentPain::Key(_)), Some(_)) => {
                    uploads.forget();
                    let request = request::build(api, prompt, context, &tools, None)?;
                    api.endpoint.post(&path, request.body, deadline).await?
                }
                (sent, _) => sent?,
            };
            let decoder = stream::Parts::new(&api.name, tools);
            Ok(api.read(response, deadline, Framing::Sse, decoder, request.warnings))
        })
    }
}
