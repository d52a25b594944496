//! OpenAI's chat completions, and the many servers that speak like it.

mod refusals;
mod request;
mod stream;
mod thoughts;

use super::api::Api;
use super::call::deferred;
use super::frames::Framing;
use super::{Context, Endpoint, EventStream, Provider, ProviderConfig};
use futures_util::stream::{self as streams, StreamExt};
use refusals::Refusals;
use std::sync::Arc;

/// A model behind `…/chat/completions`.
#[derive(Debug)]
pub struct OpenAi {
    api: Api,
    refusals: Refusals,
}

impl OpenAi {
    pub(super) fn new(config: &ProviderConfig, endpoint: Endpoint) -> Self {
        Self {
            api: Api::new(config, endpoint),
            refusals: Refusals::default(),
        }
    }

    fn ask<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        deferred(async move {
            let Self { api, refusals } = self;
            let request = request::build(api, refusals, prompt, context)?;
            let path = "/chat/completions".to_owned();
            Ok(api.ask(path, request, Framing::Sse, stream::Chunks::new))
        })
    }
}

impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.api.name
    }

    fn model(&self) -> Option<&str> {
        Some(&self.api.config.model)
    }

    fn with_model(&self, model: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Self {
            api: self.api.with_model(model),
            refusals: Refusals::default(),
        }))
    }

    fn structured_output(&self) -> bool {
        // These take JSON of any shape, and no schema.
        let base = self.api.config.base_url.as_deref().unwrap_or_default();
        !(base.contains("api.deepseek.com") || base.contains("api.moonshot."))
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        let asked = (self.ask(prompt, context), false);
        streams::unfold(asked, move |(mut heard, mut said)| async move {
            loop {
                let event = heard.next().await?;
                match &event {
                    Ok(event) => said |= event.is_said(),
                    Err(failure) if !said && self.refusals.learn(failure) => {
                        tracing::info!(error = %failure, "asked again without what was refused");
                        heard = self.ask(prompt, context);
                        continue;
                    }
                    Err(_) => {}
                }
                return Some((event, (heard, said)));
            }
        })
        .boxed()
    }
}
