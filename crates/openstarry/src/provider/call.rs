//! One call to a model: it is asked, and asked again where that helps and
//! nothing has been said yet; then its stream is read. Every wait has an end;
//! dropping the stream hangs up.

use super::decode::Decoder;
use super::failure;
use super::frames::{Frames, Framing};
use super::http::{CallLimits, Endpoint};
use super::{Event, EventStream};
use crate::pain::AgentPain;
use crate::segment::StopReason;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use runtime::Backoff;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// Where Gemini tells why it blocked a request, and others are told to have.
const BLOCK_REASON: &str = "blockReason";

/// Makes a decoder for each try.
pub(super) type MakeDecoder<'a> = Box<dyn Fn() -> Box<dyn Decoder + 'a> + Send + 'a>;

/// Asks `path` and gives what comes as events.
pub(super) fn ask<'a>(
    endpoint: &'a Endpoint,
    path: String,
    body: Vec<u8>,
    framing: Framing,
    decoder: MakeDecoder<'a>,
) -> EventStream<'a> {
    let now = Instant::now();
    let limits = &endpoint.limits;
    let deadline = limits.timeout.map(|limit| now + limit);
    let first_byte = now + limits.first_byte;
    let call = ProviderCall {
        endpoint,
        path,
        body: body.into(),
        framing,
        decoder,
        deadline,
        first_byte: deadline.map_or(first_byte, |deadline| deadline.min(first_byte)),
        retries: limits.retries,
        backoff: Backoff::new(limits.backoff, LONGEST_DELAY),
        said: false,
        state: State::Ask,
    };
    Box::pin(stream::unfold(call, ProviderCall::next))
}

struct ProviderCall<'a> {
    endpoint: &'a Endpoint,
    path: String,
    body: Bytes,
    framing: Framing,
    decoder: MakeDecoder<'a>,
    deadline: Option<Instant>,
    first_byte: Instant,
    retries: u32,
    backoff: Backoff,
    /// Whether the model has said something. What was said is not asked for again.
    said: bool,
    state: State<'a>,
}

enum State<'a> {
    Ask,
    Wait(Duration),
    Read(Box<Reader<'a>>),
    /// The API would not have the content: that is how the model stopped.
    Blocked(StopReason),
    Over,
}

impl<'a> ProviderCall<'a> {
    async fn next(mut self) -> Option<(Result<Event, AgentPain>, Self)> {
        loop {
            let failure = match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return None,
                State::Blocked(stop) => return Some((Ok(Event::Finish(stop)), self)),
                State::Wait(wait) => {
                    tokio::time::sleep(wait).await;
                    self.state = State::Ask;
                    continue;
                }
                State::Ask => match self.open().await {
                    Ok(reader) => {
                        self.state = State::Read(Box::new(reader));
                        continue;
                    }
                    Err(failure) => failure,
                },
                State::Read(mut reader) => match reader.next().await? {
                    Ok(event) => {
                        self.said |= event.is_said();
                        self.state = State::Read(reader);
                        return Some((Ok(event), self));
                    }
                    Err(failure) => failure,
                },
            };
            if let AgentPain::Blocked(why) = failure {
                self.state = State::Blocked(match self.said {
                    true => StopReason::ContentFilter,
                    false => StopReason::BlockedPrompt,
                });
                return Some((Ok(Event::Extra(BLOCK_REASON.into(), why.into())), self));
            }
            let event = match self.retry(&failure) {
                None => Err(failure),
                Some(wait) => {
                    let why = failure.to_string();
                    tracing::info!(
                        error = why,
                        wait_ms = wait.as_millis() as u64,
                        "the model is asked again"
                    );
                    self.state = State::Wait(wait);
                    Ok(Event::Waiting { why, wait })
                }
            };
            return Some((event, self));
        }
    }

    async fn open(&mut self) -> Result<Reader<'a>, AgentPain> {
        let posted = self.endpoint.post(&self.path, self.body.clone());
        let response = match timeout_at(self.first_byte, posted).await {
            Err(_) => return Err(self.late()),
            Ok(posted) => posted?,
        };
        let kind = response.headers().get(CONTENT_TYPE);
        let json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        // A server that cannot stream answers with one JSON document.
        let framing = match (self.framing, json) {
            (Framing::Sse, true) => Framing::Whole,
            (framing, _) => framing,
        };
        Ok(Reader {
            limits: &self.endpoint.limits,
            deadline: self.deadline,
            first_byte: self.first_byte,
            late: self.late(),
            response: Some(response),
            frames: Frames::new(framing, self.endpoint.limits.max_frame),
            decoder: (self.decoder)(),
            ready: VecDeque::new(),
            failed: None,
            taken: 0,
        })
    }

    fn late(&self) -> AgentPain {
        let limits = &self.endpoint.limits;
        match limits.timeout.filter(|limit| *limit <= limits.first_byte) {
            Some(limit) => AgentPain::Timeout(limit),
            None => AgentPain::Silent(limits.first_byte),
        }
    }

    /// How long to wait before the next try; `None` when there is none.
    fn retry(&mut self, failure: &AgentPain) -> Option<Duration> {
        let asked = match failure {
            AgentPain::RateLimited { retry_after, .. }
            | AgentPain::Unavailable { retry_after, .. } => *retry_after,
            AgentPain::Network(_) => None,
            _ => return None,
        };
        let delay = self.backoff.next_delay();
        let wait = asked.unwrap_or(delay);
        if self.said || self.retries == 0 || Instant::now() + wait >= self.first_byte {
            return None;
        }
        self.retries -= 1;
        Some(wait)
    }
}

struct Reader<'a> {
    limits: &'a CallLimits,
    deadline: Option<Instant>,
    first_byte: Instant,
    /// What to say when the first byte does not come.
    late: AgentPain,
    /// `None` once there is nothing more to read.
    response: Option<Response>,
    frames: Frames,
    decoder: Box<dyn Decoder + 'a>,
    ready: VecDeque<Event>,
    failed: Option<AgentPain>,
    taken: usize,
}

impl Reader<'_> {
    async fn next(&mut self) -> Option<Result<Event, AgentPain>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(failure) = self.failed.take() {
                self.response = None;
                return Some(Err(failure));
            }
            let response = self.response.take()?;
            self.failed = self.read(response).await.err();
        }
    }

    /// Reads one chunk; gives the response back to itself while more may come.
    async fn read(&mut self, mut response: Response) -> Result<(), AgentPain> {
        let chunk = match timeout_at(self.until(), response.chunk()).await {
            Err(_) => Err(self.overdue()),
            Ok(chunk) => chunk.map_err(failure::network),
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
        if self.ready.is_empty() {
            // Pings, comments and hidden thoughts: nothing to show but life.
            self.ready.push_back(Event::Activity);
        }
        if self.decoder.done() {
            return self.end();
        }
        self.response = Some(response);
        Ok(())
    }

    fn until(&self) -> Instant {
        let until = match self.taken {
            0 => self.first_byte,
            _ => Instant::now() + self.limits.stall,
        };
        self.deadline.map_or(until, |deadline| until.min(deadline))
    }

    fn overdue(&mut self) -> AgentPain {
        if self.taken == 0 {
            let over = AgentPain::Silent(self.limits.first_byte);
            return std::mem::replace(&mut self.late, over);
        }
        match (self.deadline, self.limits.timeout) {
            (Some(deadline), Some(limit)) if deadline <= Instant::now() => {
                AgentPain::Timeout(limit)
            }
            _ => AgentPain::Stalled(self.limits.stall),
        }
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
pub(super) fn deferred<'a>(
    open: impl Future<Output = Result<EventStream<'a>, AgentPain>> + Send + 'a,
) -> EventStream<'a> {
    let opened = stream::once(open).map(|opened| match opened {
        Ok(events) => events,
        Err(failure) => stream::iter([Err(failure)]).boxed(),
    });
    opened.flatten().boxed()
}

/// Warnings, then the events.
pub(super) fn with_warnings(warnings: Vec<String>, events: EventStream<'_>) -> EventStream<'_> {
    let warnings = warnings
        .into_iter()
        .map(|warning| Ok(Event::Warning(warning)));
    stream::iter(warnings).chain(events).boxed()
}
