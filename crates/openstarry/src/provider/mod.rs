//! Providers: what stands between the core and a model's API.
//!
//! A provider turns a context into a request, and the API's stream into
//! [`Event`]s; [`Fold`] makes the reply of them. An adapter knows its wire
//! format and nothing of the loop.

mod anthropic;
mod api;
mod call;
mod config;
mod decode;
mod failure;
mod fallback;
mod fold;
mod frames;
mod gemini;
mod http;
mod models;
mod names;
mod ollama;
mod openai;
mod providers;
mod record;
mod responses;
mod script;
mod wire;

pub use anthropic::Anthropic;
pub use config::{ProviderConfig, ProviderKind};
pub use fallback::Fallback;
pub use fold::Fold;
pub use gemini::Gemini;
pub use http::CallLimits;
pub use models::Model;
pub use ollama::Ollama;
pub use openai::OpenAi;
pub use providers::Providers;
pub use record::{Recorder, Replay};
pub use responses::Responses;
pub use script::Script;

pub(crate) use config::USUAL_CONTEXT;
pub(crate) use fallback::ANSWERED_BY;
pub(crate) use http::{Endpoint, read_bounded};

use crate::pain::AgentPain;
use crate::segment::{ContentSegment, Message, ProviderResponse, Role, StopReason, Usage};
use crate::tool::ToolView;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the core shows a provider: the document's `IAgentContext`.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Who the agent is.
    pub system: String,
    /// What was said before the prompt.
    pub messages: Vec<Message>,
    /// The tools the agent has in this round, by name.
    pub tools: ToolView,
    /// The JSON Schema that the answer has to fit, for providers that can see to
    /// it ([`Provider::structured_output`]).
    pub output: Option<Arc<Value>>,
    /// The most tokens of this reply, where it may have fewer than the provider's own limit.
    pub max_output: Option<u64>,
}

impl Context {
    /// The most tokens of the reply: the smaller of what is wanted here and the provider's own.
    pub(crate) fn output_limit(&self, own: Option<u64>) -> Option<u64> {
        match (self.max_output, own) {
            (Some(here), Some(own)) => Some(here.min(own)),
            (here, own) => here.or(own),
        }
    }

    /// The messages with the prompt as the last one. An empty prompt adds none:
    /// the model goes on from the results it was given.
    pub fn with_prompt(&self, prompt: &str) -> Vec<Message> {
        let mut messages = self.messages.clone();
        if !prompt.is_empty() {
            messages.push(Message::text(Role::User, prompt));
        }
        messages
    }
}

/// One thing that happened in a model's stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// More words.
    Text(String),
    /// More thought.
    Reasoning(String),
    /// A call begins. `index` tells calls of one reply apart.
    CallStart {
        /// Which call.
        index: usize,
        /// The API's id, where it gives one.
        id: Option<String>,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments {
        /// Which call.
        index: usize,
        /// The next part of the text.
        json: String,
    },
    /// A call is complete.
    CallEnd {
        /// Which call.
        index: usize,
    },
    /// A whole segment: a picture, a provider's own item.
    Segment(ContentSegment),
    /// Tokens so far; a later one replaces the fields it tells.
    Usage(Usage),
    /// The model, as the API names it.
    Model(String),
    /// Something that could not be passed on as it was.
    Warning(String),
    /// Something else the API told, for the metadata.
    Extra(String, Value),
    /// The API is asked again after a wait.
    Waiting {
        /// Why it did not answer.
        why: String,
        /// How long it is left alone.
        wait: Duration,
    },
    /// The server works, and has nothing to show: it thinks where nobody sees it.
    Activity,
    /// The model stopped.
    Finish(StopReason),
}

impl Event {
    /// Whether this is something the model said.
    pub(crate) fn is_said(&self) -> bool {
        matches!(
            self,
            Self::Text(_)
                | Self::Reasoning(_)
                | Self::CallStart { .. }
                | Self::CallArguments { .. }
                | Self::CallEnd { .. }
                | Self::Segment(_)
        )
    }
}

/// A model's stream. It ends after the first error; dropping it hangs up.
pub type EventStream<'a> = BoxStream<'a, Result<Event, AgentPain>>;

/// A model behind an API.
pub trait Provider: Send + Sync {
    /// The name; items of a provider go back to the same name alone.
    fn name(&self) -> &str;

    /// The model it asks, where it has a name.
    fn model(&self) -> Option<&str> {
        None
    }

    /// The same provider with another model; `None` where there is but one.
    fn with_model(&self, _model: &str) -> Option<Arc<dyn Provider>> {
        None
    }

    /// Whether it sees to it that an answer fits [`Context::output`].
    fn structured_output(&self) -> bool {
        false
    }

    /// Asks the model, and gives its answer piece by piece.
    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a>;

    /// Asks the model and waits for the whole answer.
    fn generate<'a>(
        &'a self,
        prompt: &'a str,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<ProviderResponse, AgentPain>> {
        Box::pin(async move {
            let started = Instant::now();
            let mut fold = Fold::new(self.name());
            let mut events = self.stream(prompt, context);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => fold.push(event),
                    Err(cause) => return Err(fold.interrupt(cause)),
                }
            }
            Ok(fold.finish(started.elapsed()))
        })
    }
}
