//! A whole reply of a model, and what is known about it.

use super::{ContentSegment, ToolCall, joined_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// What is known about a reply besides what was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The provider's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The model, as the API named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens, where the API told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// From the call to the last byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// What could not be passed on as it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What else the API told, field for field.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra: serde_json::Map<String, Value>,
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
    /// A filter or a refusal stopped it.
    Refused,
    /// It tried to call a tool and the API could not read the call.
    MalformedCall,
    /// Another reason, in the API's word.
    #[serde(untagged)]
    Other(String),
}
