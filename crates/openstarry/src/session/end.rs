//! Why a turn ended, in words that say how to go on.

use crate::segment::StopReason;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "detail", rename_all = "snake_case")]
pub enum EndReason {
    /// The model gave its answer, and finished it.
    Answered,
    /// The model began an answer and could not finish it.
    Incomplete(String),
    /// The model or its API would not answer.
    Refused(String),
    /// A slash command was run.
    Command,
    /// The rounds of the turn are used up.
    Rounds(String),
    /// Tokens or money are used up.
    Budget(String),
    /// The session is stopped until it is reset.
    Stopped(String),
    /// The provider failed.
    Failed(String),
    /// Nobody waits for the answer any more.
    Cancelled,
}

impl EndReason {
    /// In words.
    pub fn why(&self) -> &str {
        match self {
            Self::Answered => "it was answered",
            Self::Command => "a command was run",
            Self::Cancelled => "it was cancelled",
            Self::Incomplete(why)
            | Self::Refused(why)
            | Self::Rounds(why)
            | Self::Budget(why)
            | Self::Stopped(why)
            | Self::Failed(why) => why,
        }
    }
}

/// What was refused stays in the conversation, and some APIs refuse all that follows it.
const REFUSED_HINT: &str = "say it otherwise, or /reset to start anew";

/// How a turn ends with a reply that stopped for this reason and calls no tool.
pub(super) fn end_of(stop: Option<&StopReason>, extra: &Map<String, Value>) -> EndReason {
    let word = stop.and_then(|stop| match stop {
        StopReason::Other(word) => Some(word.as_str()),
        _ => None,
    });
    let details = extra.get("stop_details");
    let said: Vec<&str> = ["blockReason", "finishReason", "finishMessage"]
        .iter()
        .filter_map(|key| extra.get(*key)?.as_str())
        .chain(details.and_then(|details| details.get("explanation")?.as_str()))
        .filter(|said| Some(*said) != word)
        .collect();
    let detail = match said.is_empty() {
        true => String::new(),
        false => format!(" ({})", said.join(": ")),
    };
    match stop {
        None | Some(StopReason::EndTurn | StopReason::ToolUse) => EndReason::Answered,
        Some(StopReason::MaxTokens) => EndReason::Incomplete(
            "the answer was cut at the limit of output tokens; say \"go on\", or raise \
             provider.max_output_tokens"
                .into(),
        ),
        Some(StopReason::ContextFull) => EndReason::Incomplete(
            "the model's context window is full; /compact shortens the conversation, /reset \
             starts anew"
                .into(),
        ),
        Some(StopReason::Refusal) => EndReason::Refused(format!(
            "the model refused to answer{detail}; {REFUSED_HINT}"
        )),
        Some(StopReason::ContentFilter) => EndReason::Refused(format!(
            "a content filter of the API stopped the answer{detail}; {REFUSED_HINT}"
        )),
        Some(StopReason::BlockedPrompt) => EndReason::Refused(format!(
            "the API blocked the request before the model saw it{detail}; {REFUSED_HINT}"
        )),
        Some(StopReason::Pause | StopReason::MalformedCall) => {
            EndReason::Incomplete(format!("the model was interrupted{detail}"))
        }
        Some(StopReason::Other(word)) => {
            EndReason::Incomplete(format!("the model stopped early: {word}{detail}"))
        }
    }
}
