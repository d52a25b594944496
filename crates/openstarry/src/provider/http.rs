//! Sends a request, waits and tries again where that helps, and reads the
//! stream. Every wait has an end; dropping the stream hangs up.

use super::decode::{self, Decoder};
use super::frames::{Frames, Framing};
use super::{Event, EventStream};
use crate::pain::AgentPain;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// Limits of one call to a model.
#[derive(Clone, Debug)]
pub struct CallLimits {
    /// For the whole call, tries and waits included.
    pub timeout: Duration,
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
            timeout: Duration::from_secs(120),
            stall: Duration::from_secs(60),
            retries: 3,
            backoff: Duration::from_secs(1),
            max_frame: 32 << 20,
            max_answer: 128 << 20,
        }
    }
}

const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// A server that asks for more gets this: it can be added to a clock.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(86_400);
const MAX_ERROR_BODY: usize = 64 << 10;

/// An API at an address, with the headers it wants.
#[derive(Debug)]
pub(crate) struct Endpoint {
    client: Client,
    base: String,
    headers: HeaderMap,
    pub(crate) limits: CallLimits,
}

impl Endpoint {
    pub(crate) fn new(base: &str, limits: CallLimits) -> Result<Self, AgentPain> {
        let url = Url::parse(base)
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
        Ok(Self {
            client,
            base: base.trim_end_matches('/').into(),
            headers: HeaderMap::new(),
            limits,
        })
    }

    /// Adds a header that is never logged.
    pub(crate) fn secret(mut self, name: &'static str, value: String) -> Result<Self, AgentPain> {
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| AgentPain::Config(format!("the key for {name} is no header value")))?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
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

    /// When a call that begins now must be over.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.limits.timeout
    }

    /// Reads an answer as a stream of events.
    pub(crate) fn read<'a>(
        &'a self,
        response: Response,
        deadline: Instant,
        framing: Framing,
        decoder: Box<dyn Decoder + 'a>,
    ) -> EventStream<'a> {
        let reader = Reader {
            limits: &self.limits,
            deadline,
            response: Some(response),
            frames: Frames::new(framing, self.limits.max_frame),
            decoder,
            ready: VecDeque::new(),
            failed: None,
            taken: 0,
        };
        Box::pin(stream::unfold(reader, Reader::next))
    }

    /// Posts a body, and answers when the API has said yes.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: Vec<u8>,
        deadline: Instant,
    ) -> Result<Response, AgentPain> {
        let body = Bytes::from(body);
        let mut wait = self.limits.backoff;
        let mut left = self.limits.retries;
        loop {
            let failure = match timeout_at(deadline, self.post_once(path, body.clone())).await {
                Err(_) => return Err(AgentPain::Timeout(self.limits.timeout)),
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(failure)) => failure,
            };
            let pause = match &failure {
                AgentPain::RateLimited { retry_after, .. }
                | AgentPain::Unavailable { retry_after, .. } => retry_after.unwrap_or(wait),
                AgentPain::Network(_) => wait,
                _ => return Err(failure),
            };
            if left == 0 || Instant::now() + pause >= deadline {
                return Err(failure);
            }
            tracing::info!(error = %failure, wait_ms = pause.as_millis() as u64, "the model is asked again");
            tokio::time::sleep(pause).await;
            left -= 1;
            wait = (wait * 2).min(MAX_BACKOFF);
        }
    }

    async fn post_once(&self, path: &str, body: Bytes) -> Result<Response, AgentPain> {
        let response = self
            .client
            .post(format!("{}{path}", self.base))
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .send()
            .await
            .map_err(network)?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(failure(response).await)
    }
}

fn network(error: reqwest::Error) -> AgentPain {
    // The innermost cause is the one that says something ("connection refused").
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    AgentPain::Network(cause.to_string())
}

async fn failure(response: Response) -> AgentPain {
    let status = response.status();
    let header = response
        .headers()
        .get("retry-after-ms")
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_millis)
        .or_else(|| retry_after(response.headers().get(RETRY_AFTER)?.to_str().ok()?));
    let text = read_bounded(response, MAX_ERROR_BODY)
        .await
        .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let retry_after = header
        .or_else(|| retry_delay(&body))
        .map(|wait| wait.min(MAX_RETRY_AFTER));
    let message = decode::error_message(&body)
        .unwrap_or_else(|| crate::pain::excerpt(text.trim(), 300).to_owned());
    let message = match message.is_empty() {
        true => status.to_string(),
        false => message,
    };
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => AgentPain::Key(message),
        StatusCode::TOO_MANY_REQUESTS => AgentPain::RateLimited {
            message,
            retry_after,
        },
        status if status == StatusCode::REQUEST_TIMEOUT || status.is_server_error() => {
            AgentPain::Unavailable {
                message,
                retry_after,
            }
        }
        status => AgentPain::Refused {
            status: status.as_u16(),
            message,
        },
    }
}

/// Seconds, or a date.
fn retry_after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
    let now = jiff::Timestamp::now();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Google says the wait in the body: `error.details[].retryDelay = "34s"`.
fn retry_delay(body: &Value) -> Option<Duration> {
    let body = body.get(0).unwrap_or(body);
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?;
    let seconds = delay.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// At most `limit` bytes of a body, and whether that was all of it.
pub(crate) async fn read_bounded(
    mut response: Response,
    limit: usize,
) -> Result<(Vec<u8>, bool), AgentPain> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(network)? {
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

struct Reader<'a> {
    limits: &'a CallLimits,
    deadline: Instant,
    /// `None` once there is nothing more to read.
    response: Option<Response>,
    frames: Frames,
    decoder: Box<dyn Decoder + 'a>,
    ready: VecDeque<Event>,
    failed: Option<AgentPain>,
    taken: usize,
}

impl Reader<'_> {
    async fn next(mut self) -> Option<(Result<Event, AgentPain>, Self)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((Ok(event), self));
            }
            if let Some(failure) = self.failed.take() {
                self.response = None;
                return Some((Err(failure), self));
            }
            let response = self.response.take()?;
            self.failed = self.read(response).await.err();
        }
    }

    /// Reads one chunk; gives the response back to itself while more may come.
    async fn read(&mut self, mut response: Response) -> Result<(), AgentPain> {
        let until = self.deadline.min(Instant::now() + self.limits.stall);
        let chunk = match timeout_at(until, response.chunk()).await {
            Err(_) if until == self.deadline => Err(AgentPain::Timeout(self.limits.timeout)),
            Err(_) => Err(AgentPain::Stalled(self.limits.stall)),
            Ok(chunk) => chunk.map_err(network),
        };
        let chunk = match chunk {
            Ok(chunk) => chunk,
            // The model may have been done, and its server slow to hang up.
            Err(failure) => return self.end().map_err(|_| failure),
        };
        let mut frames = Vec::new();
        let Some(chunk) = chunk else {
            let read = self.frames.end(&mut frames);
            self.decode(frames).and(read)?;
            return self.end();
        };
        self.taken += chunk.len();
        if self.taken > self.limits.max_answer {
            return Err(AgentPain::TooLarge(format!(
                "over {} bytes",
                self.limits.max_answer
            )));
        }
        let read = self.frames.push(&chunk, &mut frames);
        // What was whole before the failure still counts.
        self.decode(frames).and(read)?;
        if self.decoder.done() {
            return self.end();
        }
        self.response = Some(response);
        Ok(())
    }

    /// Nothing more is read; an error when the model had not finished.
    fn end(&mut self) -> Result<(), AgentPain> {
        let mut out = Vec::new();
        let ended = self.decoder.end(&mut out);
        self.ready.extend(out);
        ended
    }

    fn decode(&mut self, frames: Vec<String>) -> Result<(), AgentPain> {
        let mut out = Vec::new();
        let decoded = frames
            .iter()
            .try_for_each(|frame| self.decoder.frame(frame, &mut out));
        self.ready.extend(out);
        decoded
    }
}

/// A stream that is known only after some waiting.
pub(crate) fn deferred<'a>(
    open: impl Future<Output = Result<EventStream<'a>, AgentPain>> + Send + 'a,
) -> EventStream<'a> {
    let opened = stream::once(open).map(|opened| match opened {
        Ok(events) => events,
        Err(failure) => stream::iter([Err(failure)]).boxed(),
    });
    opened.flatten().boxed()
}

/// Warnings, then the events.
pub(crate) fn with_warnings(warnings: Vec<String>, events: EventStream<'_>) -> EventStream<'_> {
    let warnings = warnings
        .into_iter()
        .map(|warning| Ok(Event::Warning(warning)));
    stream::iter(warnings).chain(events).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_from_seconds_dates_and_bodies() {
        assert_eq!(retry_after("2"), Some(Duration::from_secs(2)));
        assert_eq!(
            retry_after("Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        assert_eq!(retry_after("soon"), None);
        assert_eq!(retry_after("-1"), None);
        let body = serde_json::json!({"error": {"details": [{"a": 1}, {"retryDelay": "34.5s"}]}});
        assert_eq!(retry_delay(&body), Some(Duration::from_millis(34_500)));
    }

    #[test]
    fn an_address_that_is_none_is_refused_at_once() {
        for base in ["", "ftp://x", "localhost:1", "http://"] {
            assert!(
                Endpoint::new(base, CallLimits::default()).is_err(),
                "{base}"
            );
        }
    }
}
