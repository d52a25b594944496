//! A whole reply of a model, and what is known about it.

use super::{ContentSegment, ToolCall, joined_text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a model said, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderResponse {
    /// Speech, pictures and tool calls, as they came.
    pub segments: Vec<ContentSegment>,
    /// Usage, stop reason and warnings.
    #[serde(default)]
    pub metadata: Metadata,
}

impl ProviderResponse {
    /// The calls among the segments.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.segments.iter().filter_map(ContentSegment::as_call)
    }

    /// The spoken text.
    pub fn text(&self) -> String {
        joined_text(&self.segments)
    }
}

/// What is known about a reply besides what was said. The document leaves its
/// shape open, so whatever it holds is kept: a field that is not known here, or
/// known with another type, is in `extra`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Value")]
pub struct Metadata {
    /// The provider's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The model, as the API named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens, where the API told them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// From the call to the last byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// What could not be passed on as it was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What else the API told, field for field.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl From<Value> for Metadata {
    fn from(value: Value) -> Self {
        let mut extra = match value {
            Value::Null => Map::new(),
            Value::Object(fields) => fields,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Self {
            provider: take(&mut extra, "provider").unwrap_or_default(),
            model: take(&mut extra, "model"),
            usage: take(&mut extra, "usage"),
            stop_reason: take(&mut extra, "stopReason"),
            latency_ms: take(&mut extra, "latencyMs"),
            warnings: take(&mut extra, "warnings").unwrap_or_default(),
            extra,
        }
    }
}

/// Takes a field out, when it is what it should be.
fn take<T: serde::de::DeserializeOwned>(fields: &mut Map<String, Value>, key: &str) -> Option<T> {
    let found = T::deserialize(fields.get(key)?).ok()?;
    fields.remove(key);
    Some(found)
}

/// Tokens of one or more replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens read, the cached ones included.
    pub input_tokens: u64,
    /// Tokens written, the reasoning included.
    pub output_tokens: u64,
    /// Of those read, how many came from the API's cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Whether some of this is our estimate because the API told nothing.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// Tokens read and written.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds another reply's tokens.
    pub fn add(&mut self, other: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.estimated |= other.estimated;
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said all.
    EndTurn,
    /// It waits for tools.
    ToolUse,
    /// It reached the limit of output tokens.
    MaxTokens,
    /// What it was told and what it said fill its context window.
    ContextFull,
    /// It would not answer.
    Refusal,
    /// A filter stopped what it was saying.
    ContentFilter,
    /// The API did not even show it the request.
    BlockedPrompt,
    /// The API paused a long turn: it goes on when it is sent back as it is.
    Pause,
    /// It tried to call a tool and the API could not read the call.
    MalformedCall,
    /// Another reason, in the API's word.
    #[serde(untagged)]
    Other(String),
}

impl StopReason {
    /// Whether the reply may have been cut off in the middle of something.
    pub(crate) fn cuts(&self) -> bool {
        matches!(self, Self::MaxTokens | Self::ContextFull | Self::Other(_))
    }
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::ContextFull => "context_full",
            Self::Refusal => "refusal",
            Self::ContentFilter => "content_filter",
            Self::BlockedPrompt => "blocked_prompt",
            Self::Pause => "pause",
            Self::MalformedCall => "malformed_call",
            Self::Other(word) => word,
        })
    }
}
