//! An API at an address: how it is reached, with which headers, and how long it
//! is waited for.

use super::failure;
use crate::pain::AgentPain;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use std::time::Duration;
use url::Url;

/// Limits of one call to a model.
#[derive(Clone, Debug)]
pub struct CallLimits {
    /// For the whole call, where its owner wants a limit: a healthy stream may
    /// last as long as the model has something to say.
    pub timeout: Option<Duration>,
    /// For the first byte of an answer, tries and waits included. Models that
    /// think before they speak are silent for minutes.
    pub first_byte: Duration,
    /// For the silence between two pieces of a stream.
    pub stall: Duration,
    /// How often to try again when the API is busy or out of reach.
    pub retries: u32,
    /// The first wait between tries; each further one is twice as long.
    pub backoff: Duration,
    /// For one frame, a picture in base64 included.
    pub max_frame: usize,
    /// For a whole answer.
    pub max_answer: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            timeout: None,
            first_byte: Duration::from_secs(600),
            stall: Duration::from_secs(300),
            retries: 3,
            backoff: Duration::from_secs(1),
            max_frame: 32 << 20,
            max_answer: 128 << 20,
        }
    }
}

/// A list of models, or another short document.
const MAX_DOCUMENT: usize = 8 << 20;
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(20);

/// An API at an address, with the headers it wants.
#[derive(Debug)]
pub(crate) struct Endpoint {
    client: Client,
    /// The address up to where paths are added.
    base: String,
    /// What follows every path, such as Azure's `api-version=…`.
    query: Option<String>,
    headers: HeaderMap,
    pub(crate) limits: CallLimits,
}

impl Endpoint {
    pub(crate) fn new(base: &str, limits: CallLimits) -> Result<Self, AgentPain> {
        let mut url = Url::parse(base)
            .map_err(|error| AgentPain::Config(format!("base_url {base:?}: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(AgentPain::Config(format!(
                "base_url {base:?}: want an http or https address"
            )));
        }
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| AgentPain::Config(error.to_string()))?;
        let query = url.query().filter(|query| !query.is_empty());
        let query = query.map(str::to_owned);
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self {
            client,
            base: url.as_str().trim_end_matches('/').into(),
            query,
            headers: HeaderMap::new(),
            limits,
        })
    }

    /// Adds a header that is never logged.
    pub(crate) fn secret(mut self, name: &str, value: &str) -> Result<Self, AgentPain> {
        let wrong = |what: &str| AgentPain::Config(format!("the header {name:?} has {what}"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("no header's name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong("no header's value"))?;
        value.set_sensitive(true);
        self.headers.insert(key, value);
        Ok(self)
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        self
    }

    /// Posts a body once, and answers when the API has said yes.
    pub(crate) async fn post(&self, path: &str, body: Bytes) -> Result<Response, AgentPain> {
        let request = self.client.post(self.url(path));
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        self.send(request).await
    }

    /// Reads a short JSON document.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, AgentPain> {
        let request = self.client.get(self.url(path)).timeout(DOCUMENT_TIMEOUT);
        let (bytes, whole) = read_bounded(self.send(request).await?, MAX_DOCUMENT).await?;
        if !whole {
            return Err(AgentPain::TooLarge(format!("over {MAX_DOCUMENT} bytes")));
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| AgentPain::unreadable(error, &String::from_utf8_lossy(&bytes)))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, AgentPain> {
        let request = request.headers(self.headers.clone());
        let response = request.send().await.map_err(failure::network)?;
        match response.status().is_success() && !failure::is_web_page(&response) {
            true => Ok(response),
            false => Err(failure::of_response(response).await),
        }
    }

    fn url(&self, path: &str) -> String {
        match &self.query {
            None => format!("{}{path}", self.base),
            Some(query) => {
                let join = if path.contains('?') { '&' } else { '?' };
                format!("{}{path}{join}{query}", self.base)
            }
        }
    }
}

/// At most `limit` bytes of a body, and whether that was all of it.
pub(crate) async fn read_bounded(
    mut response: Response,
    limit: usize,
) -> Result<(Vec<u8>, bool), AgentPain> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failure::network)? {
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_refused_at_once() {
        for base in ["", "ftp://x", "localhost:1", "http://"] {
            assert!(
                Endpoint::new(base, CallLimits::default()).is_err(),
                "{base}"
            );
        }
    }

    #[test]
    fn a_query_in_the_address_follows_every_path() {
        let azure = "https://x.openai.azure.com/openai/deployments/d/?api-version=2024-10-21";
        let endpoint = Endpoint::new(azure, CallLimits::default()).unwrap();
        assert_eq!(
            endpoint.url("/chat/completions"),
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
        );
        assert!(
            endpoint
                .url("/a?alt=sse")
                .ends_with("/a?alt=sse&api-version=2024-10-21")
        );
    }
}
