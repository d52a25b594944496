//! What can go wrong between the core and a model.

use crate::segment::ProviderResponse;
use std::time::Duration;

/// A provider's failure: the document's `AgentPainException`.
#[derive(Debug, thiserror::Error)]
pub enum AgentPain {
    /// The agent is set up wrongly.
    #[error("{0}")]
    Config(String),
    /// The API does not accept the key (401, 403).
    #[error("the API refused the key: {0}")]
    Key(String),
    /// Too many requests, and waiting did not help (429).
    #[error("the API asks for fewer requests: {message}{}", asked_to_wait(*retry_after))]
    RateLimited {
        /// What the API said.
        message: String,
        /// How long it asked to wait.
        retry_after: Option<Duration>,
    },
    /// The API found fault with the request.
    #[error("the API refused the request ({status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the API said.
        message: String,
    },
    /// The API would not let the model see the request.
    #[error("the API blocked the request: {0}")]
    Blocked(String),
    /// The API failed.
    #[error("the API failed: {message}{}", asked_to_wait(*retry_after))]
    Unavailable {
        /// What the API said.
        message: String,
        /// How long it asked to wait.
        retry_after: Option<Duration>,
    },
    /// No connection, or it broke.
    #[error("the connection failed: {0}")]
    Network(String),
    /// The whole call took too long.
    #[error("no whole answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// Not even the first byte of an answer came in time.
    #[error(
        "no word of an answer within {} s (provider.first_byte_seconds allows more)",
        .0.as_secs_f32()
    )]
    Silent(Duration),
    /// The stream said nothing for too long.
    #[error(
        "the stream stalled for {} s (provider.stall_seconds allows more)",
        .0.as_secs_f32()
    )]
    Stalled(Duration),
    /// The answer could not be read.
    #[error("the answer could not be read: {why}: {excerpt}")]
    Unreadable {
        /// What is wrong.
        why: String,
        /// Where.
        excerpt: String,
    },
    /// The answer is larger than is allowed.
    #[error("the answer is too large: {0}")]
    TooLarge(String),
    /// The answer broke off; what had come is kept.
    #[error("the answer broke off: {cause}")]
    Interrupted {
        /// What had come.
        partial: Box<ProviderResponse>,
        /// Why it broke off.
        #[source]
        cause: Box<AgentPain>,
    },
}

impl AgentPain {
    /// The API failed, and did not say for how long.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable {
            message: message.into(),
            retry_after: None,
        }
    }

    /// Whether the API says that the request is longer than the model's context.
    pub(crate) fn is_overflow(&self) -> bool {
        let Self::Refused { message, .. } = self else {
            return false;
        };
        let message = message.to_lowercase();
        let words = [
            "context length",
            "context_length",
            "context window",
            "context size",
            "maximum context",
            "prompt is too long",
            "input is too long",
            "too many tokens",
            "input token count",
            "input length",
            "maximum prompt length",
            "model token limit",
            "reduce the length",
        ];
        words.iter().any(|word| message.contains(word))
    }

    /// Bytes that could not be read, with the first of them.
    pub(crate) fn unreadable(why: impl ToString, bytes: &str) -> Self {
        Self::Unreadable {
            why: why.to_string(),
            excerpt: excerpt(bytes, 200).into(),
        }
    }
}

/// How long the API wants to be left alone, where it said so.
fn asked_to_wait(time: Option<Duration>) -> String {
    let seconds = time.map_or(0, |time| time.as_secs());
    match seconds {
        0 => String::new(),
        1..120 => format!(" (it asks to wait {seconds} s)"),
        _ => format!(" (it asks to wait {} min)", seconds.div_ceil(60)),
    }
}

/// At most `limit` bytes of `text`, cut between characters.
pub(crate) fn excerpt(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
