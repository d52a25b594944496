//! What the four adapters have in common: a name, settings, an address, and the
//! way from a request to a stream of events.

use super::decode::Decoder;
use super::frames::Framing;
use super::http::with_warnings;
use super::wire::{Request, ToolCache, WireTools};
use super::{Endpoint, EventStream, ProviderConfig};
use crate::pain::AgentPain;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use std::sync::Arc;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) name: String,
    pub(crate) config: ProviderConfig,
    pub(crate) endpoint: Endpoint,
    pub(crate) tools: ToolCache,
}

impl Api {
    /// An API that takes its key in the header `key_header`.
    pub(super) fn new(
        config: &ProviderConfig,
        mut endpoint: Endpoint,
        key_header: &'static str,
        key: Option<String>,
    ) -> Result<Self, AgentPain> {
        if let Some(key) = key {
            endpoint = endpoint.secret(key_header, key)?;
        }
        Ok(Self {
            name: config.name(),
            config: config.clone(),
            endpoint,
            tools: ToolCache::default(),
        })
    }

    /// Sends a request, and reads the answer.
    pub(super) async fn ask<'a, D: Decoder + 'a>(
        &'a self,
        path: &str,
        request: Request,
        framing: Framing,
        decoder: impl FnOnce(&str, Arc<WireTools>) -> D,
    ) -> Result<EventStream<'a>, AgentPain> {
        let deadline = self.endpoint.deadline();
        let response = self.endpoint.post(path, request.body, deadline).await?;
        let decoder = decoder(&self.name, request.tools);
        Ok(self.read(response, deadline, framing, decoder, request.warnings))
    }

    /// Reads an answer.
    pub(super) fn read<'a>(
        &'a self,
        response: Response,
        deadline: Instant,
        framing: Framing,
        decoder: impl Decoder + 'a,
        warnings: Vec<String>,
    ) -> EventStream<'a> {
        let kind = response.headers().get(CONTENT_TYPE);
        let json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        // A server that cannot stream answers with one JSON document.
        let framing = match (framing, json) {
            (Framing::Sse, true) => Framing::Whole,
            (framing, _) => framing,
        };
        let events = self
            .endpoint
            .read(response, deadline, framing, Box::new(decoder));
        with_warnings(warnings, events)
    }
}
