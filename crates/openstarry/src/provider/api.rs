//! What the adapters have in common: a name, settings, an address, and the way
//! from a request to a stream of events.

use super::call::{self, with_warnings};
use super::decode::Decoder;
use super::frames::Framing;
use super::wire::{Request, ToolCache, WireTools};
use super::{Endpoint, EventStream, ProviderConfig};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) name: String,
    pub(crate) config: ProviderConfig,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) tools: ToolCache,
}

impl Api {
    pub(super) fn new(config: &ProviderConfig, endpoint: Endpoint) -> Self {
        Self {
            name: config.name(),
            config: config.clone(),
            endpoint: Arc::new(endpoint),
            tools: ToolCache::default(),
        }
    }

    /// The same API with another model.
    pub(super) fn with_model(&self, model: &str) -> Self {
        Self {
            name: self.name.clone(),
            config: ProviderConfig {
                model: model.into(),
                ..self.config.clone()
            },
            endpoint: Arc::clone(&self.endpoint),
            tools: ToolCache::default(),
        }
    }

    /// Sends a request, and reads the answer.
    pub(super) fn ask<'a, D: Decoder + 'a>(
        &'a self,
        path: String,
        request: Request,
        framing: Framing,
        decoder: impl Fn(&str, Arc<WireTools>) -> D + Send + 'a,
    ) -> EventStream<'a> {
        let Request {
            body,
            tools,
            warnings,
        } = request;
        let make =
            move || -> Box<dyn Decoder + 'a> { Box::new(decoder(&self.name, Arc::clone(&tools))) };
        let events = call::ask(&self.endpoint, path, body, framing, Box::new(make));
        with_warnings(warnings, events)
    }
}
