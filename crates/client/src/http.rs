//! How a call becomes an HTTP request and a reply becomes a type.

use crate::{ClientError, Result};
use bytes::{Bytes, BytesMut};
use protocol::ErrorBody;
use reqwest::{
    Method, RequestBuilder, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};
use runtime::Backoff;
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, time::Duration};

/// The most bytes of a reply that are read.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;
/// How long a call may take, streams excepted.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an idempotent call is tried.
const TRIES: u32 = 4;
/// The delays between the tries.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// A room server, and who is calling it. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    bearer: Option<HeaderValue>,
}

impl fmt::Debug for Client {
    /// Shows whether there is a token, never the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base.as_str())
            .field("has_token", &self.bearer.is_some())
            .finish()
    }
}

impl Client {
    /// A client of the server at this address, without a token.
    pub fn new(base_url: &str) -> Result<Self> {
        let base: Url = base_url
            .parse()
            .map_err(|error| ClientError::Config(format!("{base_url} is no address: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            let message = format!("{base_url} is no http or https address");
            return Err(ClientError::Config(message));
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            .build()?;
        Ok(Self {
            http,
            base,
            bearer: None,
        })
    }

    /// The same server and connections, called with this token.
    pub fn with_token(&self, token: impl AsRef<str>) -> Result<Self> {
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.as_ref()))
            .map_err(|_| ClientError::Config("the token holds characters no token has".into()))?;
        bearer.set_sensitive(true);
        Ok(Self {
            bearer: Some(bearer),
            ..self.clone()
        })
    }

    /// The same server and connections, called without a token.
    pub fn anonymous(&self) -> Self {
        Self {
            bearer: None,
            ..self.clone()
        }
    }

    /// The server's address.
    pub fn base_url(&self) -> &str {
        self.base.as_str()
    }

    pub(crate) fn get(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::POST, path)
    }

    pub(crate) fn put(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::PUT, path)
    }

    pub(crate) fn patch(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::PATCH, path)
    }

    pub(crate) fn delete(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::DELETE, path)
    }

    fn call(&self, method: Method, path: &[&str]) -> Call<'_> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Call {
            client: self,
            idempotent: method == Method::GET,
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            error: None,
        }
    }
}

/// A request in the making.
pub(crate) struct Call<'a> {
    client: &'a Client,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
    /// Whether doing it twice is the same as doing it once.
    idempotent: bool,
    /// Why it cannot be sent.
    error: Option<ClientError>,
}

impl Call<'_> {
    /// Adds a query parameter, where there is a value.
    pub(crate) fn query(mut self, name: &str, value: Option<impl fmt::Display>) -> Self {
        if let Some(value) = value {
            self.url
                .query_pairs_mut()
                .append_pair(name, &value.to_string());
        }
        self
    }

    /// Adds a header, where there is a value.
    pub(crate) fn header(mut self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        let Some(value) = value.map(|value| value.to_string()) else {
            return self;
        };
        match HeaderValue::try_from(&value) {
            Ok(value) => {
                self.headers.insert(name, value);
            }
            Err(_) => {
                let message = format!("the header {name} cannot hold {value:?}");
                self.error = Some(ClientError::Config(message));
            }
        }
        self
    }

    /// Sets the body.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => {
                self.body = Some(bytes.into());
                self.headers
                    .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            Err(error) => self.error = Some(ClientError::Protocol(error.to_string())),
        }
        self
    }

    /// Says whether a lost answer may be asked for again.
    pub(crate) fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sends it and reads the reply.
    pub(crate) async fn send<T: DeserializeOwned>(self) -> Result<T> {
        let bytes = self.send_for_bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| ClientError::Protocol(error.to_string()))
    }

    /// Sends it and reads the reply as text.
    pub(crate) async fn send_for_text(self) -> Result<String> {
        let bytes = self.send_for_bytes().await?;
        String::from_utf8(bytes.into())
            .map_err(|_| ClientError::Protocol("the reply is no UTF-8".into()))
    }

    /// Sends it and gives the reply as its body begins to arrive, however long that takes.
    pub(crate) async fn open(mut self) -> Result<Response> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let reply = tokio::time::timeout(CALL_TIMEOUT, self.request().send())
            .await
            .map_err(|_| ClientError::Silent(CALL_TIMEOUT))??;
        checked(reply).await
    }

    async fn send_for_bytes(mut self) -> Result<Bytes> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut tries_left = if self.idempotent { TRIES } else { 1 };
        let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        loop {
            tries_left -= 1;
            match self.send_once().await {
                Err(ClientError::Transport(error)) if tries_left > 0 => {
                    tracing::debug!(%error, "no answer, trying again");
                    tokio::time::sleep(backoff.next_delay()).await;
                }
                result => return result,
            }
        }
    }

    async fn send_once(&self) -> Result<Bytes> {
        let reply = self.request().timeout(CALL_TIMEOUT).send().await?;
        read(checked(reply).await?).await
    }

    fn request(&self) -> RequestBuilder {
        let mut headers = self.headers.clone();
        if let Some(bearer) = &self.client.bearer {
            headers.insert(AUTHORIZATION, bearer.clone());
        }
        let request = self
            .client
            .http
            .request(self.method.clone(), self.url.clone())
            .headers(headers);
        match &self.body {
            Some(body) => request.body(body.clone()),
            None => request,
        }
    }
}

/// A reply that says yes, or the error it carries.
async fn checked(reply: Response) -> Result<Response> {
    let status = reply.status();
    if status.is_success() || status.is_redirection() {
        return Ok(reply);
    }
    let retry_after = reply
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let body = read(reply).await?;
    let Ok(ErrorBody { error, message }) = serde_json::from_slice(&body) else {
        return Err(ClientError::NoErrorBody(status.as_u16()));
    };
    Err(ClientError::Api {
        status: status.as_u16(),
        code: error,
        message,
        retry_after,
    })
}

/// A reply's whole body, if it is not larger than any reply is.
async fn read(mut reply: Response) -> Result<Bytes> {
    let mut body = BytesMut::new();
    while let Some(chunk) = reply.chunk().await? {
        if body.len() + chunk.len() > MAX_REPLY_BYTES {
            return Err(ClientError::Protocol("the reply is too large".into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}
