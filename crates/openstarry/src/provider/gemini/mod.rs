//! Google's Gemini.

mod cache;
mod request;
mod stream;

use super::api::Api;
use super::call::deferred;
use super::frames::Framing;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use crate::pain::AgentPain;
use futures_util::stream::{self as streams, StreamExt};
use std::sync::Arc;

/// A model behind `…:streamGenerateContent`.
#[derive(Debug)]
pub struct Gemini {
    api: Api,
    uploads: cache::Uploads,
}

impl Gemini {
    pub(super) fn new(config: &ProviderConfig, endpoint: Endpoint) -> Self {
        Self {
            api: Api::new(config, endpoint),
            uploads: cache::Uploads::default(),
        }
    }
}

impl Provider for Gemini {
    fn name(&self) -> &str {
        &self.api.name
    }

    fn model(&self) -> Option<&str> {
        Some(&self.api.config.model)
    }

    fn with_model(&self, model: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Self {
            api: self.api.with_model(model),
            uploads: cache::Uploads::default(),
        }))
    }

    fn structured_output(&self) -> bool {
        // Models before 3 take no schema beside tools.
        super::wire::signs_calls(&self.api.config.model)
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let Self { api, uploads } = self;
            let path = format!("/models/{}:streamGenerateContent?alt=sse", api.config.model);
            let tools = request::tools(api, context)?;
            let upload = uploads.get(api, context, &tools).await;
            let ask = |upload: Option<&str>| {
                let request = request::build(api, prompt, context, &tools, upload)?;
                let path = path.clone();
                Ok(api.ask(path, request, Framing::Sse, stream::Parts::new))
            };
            let Some(upload) = upload else {
                return ask(None);
            };
            let mut events = ask(Some(&upload))?;
            match events.next().await {
                // The upload is gone before its time: send everything once more.
                Some(Err(AgentPain::Refused { .. } | AgentPain::Key(_))) => {
                    uploads.forget();
                    ask(None)
                }
                first => Ok(streams::iter(first).chain(events).boxed()),
            }
        })
    }
}
