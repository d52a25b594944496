//! The way to the owner's hosted agent: `POST {server}/agent/chat/stream`.
//!
//! Nothing that comes back is trusted: the answer is bounded in size, each piece in time.

pub mod login;

use crate::home::Secret;
use login::Login;
use protocol::agent_stream::{self, AgentStream, Part, StreamError};
use reqwest::{Response, StatusCode, header};
use serde::Serialize;
use std::time::Duration;

/// How long the agent may be silent. It may think, but it sends comments meanwhile.
const SILENCE: Duration = Duration::from_secs(300);
const CONNECT: Duration = Duration::from_secs(10);
/// The most text of one answer.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// The most bytes of one stream, frames that are no text included.
const MAX_STREAM_BYTES: usize = 64 << 20;
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The server understood and said no.
    #[error("{server} refuses: {message} ({status}){}", hint(*status))]
    Refused {
        /// The server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// The server cannot answer now.
    #[error("{server} cannot answer now: {message} ({status}); try again in a moment")]
    Busy {
        /// The server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// No connection, or it broke.
    #[error("no answer from {server}: {why}; check the address and try again")]
    Network {
        /// The server.
        server: String,
        /// What happened.
        why: String,
    },
    /// The agent itself reports a failure.
    #[error("the agent failed: {0}")]
    Agent(String),
    /// What came is no answer that can be read.
    #[error("{0}")]
    Unreadable(StreamError),
    /// The settings make no request.
    #[error("{0}")]
    Config(String),
}

fn hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "; get a new bundle from your agent and run `starchild login BUNDLE`",
        413 => "; ask something shorter",
        _ => "",
    }
}

impl BridgeError {
    /// Whether the same question may be answered later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Network { .. } | Self::Agent(_)
        )
    }
}

/// A question for the hosted agent.
#[derive(Debug, Serialize)]
pub struct BridgeRequest<'a> {
    /// The words.
    pub message: &'a str,
    /// The conversation it belongs to.
    pub thread_id: &'a str,
    /// Where it comes from.
    pub channel: &'static str,
    /// The model to answer with, if not the agent's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
}

/// The channel that the bridge expects.
pub const CHANNEL: &str = "starchild-cli";

/// The way to one hosted agent.
#[derive(Debug)]
pub struct Bridge {
    http: reqwest::Client,
    server: String,
    key: Secret,
}

impl Bridge {
    /// The agent that a login is for.
    pub fn new(login: &Login) -> Result<Self, BridgeError> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| BridgeError::Config(error.to_string()))?;
        Ok(Self {
            http,
            server: login.server.trim_end_matches('/').to_owned(),
            key: login.key.clone(),
        })
    }

    /// Asks, and gives the answer as it comes.
    pub async fn ask(&self, question: &BridgeRequest<'_>) -> Result<AnswerStream, BridgeError> {
        let reply = self
            .http
            .post(format!("{}/agent/chat/stream", self.server))
            .bearer_auth(self.key.expose())
            .header(header::ACCEPT, "text/event-stream")
            .json(question)
            .send()
            .await
            .map_err(|error| network(&self.server, error))?;
        if !reply.status().is_success() {
            return Err(self.refusal(reply).await);
        }
        let kind = reply.headers().get(header::CONTENT_TYPE);
        let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        Ok(AnswerStream {
            server: self.server.clone(),
            reply: Some(reply),
            format: match is_json {
                true => Format::Document(Vec::new()),
                false => Format::Stream(AgentStream::new(MAX_STREAM_BYTES)),
            },
            given: 0,
        })
    }

    async fn refusal(&self, mut reply: Response) -> BridgeError {
        let status = reply.status();
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BYTES
            && let Ok(Some(chunk)) = reply.chunk().await
        {
            body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR_BYTES)]);
        }
        let message = serde_json::from_slice::<protocol::ErrorBody>(&body)
            .map_or_else(|_| "no reason given".to_owned(), |body| body.message);
        let (server, code) = (self.server.clone(), status.as_u16());
        let passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        match passing {
            true => BridgeError::Busy {
                server,
                status: code,
                message,
            },
            false => BridgeError::Refused {
                server,
                status: code,
                message,
            },
        }
    }
}

/// An answer that is coming in.
#[derive(Debug)]
pub struct AnswerStream {
    server: String,
    /// Nothing once the stream is over.
    reply: Option<Response>,
    format: Format,
    given: usize,
}

/// A stream of events, or one document from an agent that does not stream.
#[derive(Debug)]
enum Format {
    Stream(AgentStream),
    Document(Vec<u8>),
}

impl AnswerStream {
    /// More words; nothing when the answer is whole.
    pub async fn next(&mut self) -> Result<Option<String>, BridgeError> {
        loop {
            while let Some(part) = self.part()? {
                if let Part::Text(text) = part {
                    return self.give(text).map(Some);
                }
            }
            if !self.read_more().await? {
                return Ok(None);
            }
        }
    }

    fn part(&mut self) -> Result<Option<Part>, BridgeError> {
        Ok(match &mut self.format {
            Format::Stream(stream) => stream.next_part()?,
            // Read once it is whole.
            Format::Document(_) if self.reply.is_some() => None,
            Format::Document(body) => {
                let document = String::from_utf8_lossy(&std::mem::take(body)).into_owned();
                agent_stream::read_document(document)?
            }
        })
    }

    /// The whole answer.
    pub async fn whole(mut self) -> Result<String, BridgeError> {
        let mut whole = String::new();
        while let Some(text) = self.next().await? {
            whole.push_str(&text);
        }
        Ok(whole)
    }

    fn give(&mut self, text: String) -> Result<String, BridgeError> {
        self.given += text.len();
        match self.given > MAX_ANSWER_BYTES {
            true => Err(StreamError::TooLong(MAX_ANSWER_BYTES).into()),
            false => Ok(text),
        }
    }

    /// Whether anything may have come.
    async fn read_more(&mut self) -> Result<bool, BridgeError> {
        let Some(reply) = &mut self.reply else {
            return Ok(false);
        };
        if matches!(&self.format, Format::Stream(stream) if stream.is_done()) {
            self.reply = None;
            return Ok(false);
        }
        let chunk = reply
            .chunk()
            .await
            .map_err(|error| network(&self.server, error))?;
        let Some(chunk) = chunk else {
            self.reply = None;
            if let Format::Stream(stream) = &mut self.format {
                stream.finish()?;
            }
            return Ok(true);
        };
        match &mut self.format {
            Format::Document(body) if body.len() + chunk.len() > MAX_ANSWER_BYTES => {
                return Err(StreamError::TooLong(MAX_ANSWER_BYTES).into());
            }
            Format::Document(body) => body.extend_from_slice(&chunk),
            Format::Stream(stream) => stream.push(&chunk)?,
        }
        Ok(true)
    }
}

impl From<StreamError> for BridgeError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Agent(why) => Self::Agent(why),
            other => Self::Unreadable(other),
        }
    }
}

/// The innermost cause says something ("connection refused"); the address may hold a secret.
fn network(server: &str, error: reqwest::Error) -> BridgeError {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    BridgeError::Network {
        server: server.to_owned(),
        why: cause.to_string(),
    }
}
