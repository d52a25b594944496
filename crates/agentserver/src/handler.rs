//! What a handler is given and what it may give back.

use crate::core::{HopId, Note, ThreadId};
use crate::payload::{Payload, PayloadError, Schema};
use crate::peer_guide::Offer;
use crate::pump::Meter;
use runtime::CancellationToken;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Context from the pump. The handler may trust it; the pump trusts nothing that
/// comes back.
#[derive(Debug, Clone)]
pub struct HandlerMetadata {
    /// Opaque: names a hidden call chain. Good as a key for state that ends with
    /// the thread.
    pub thread_id: ThreadId,
    /// The previous hop.
    pub from_id: String,
    /// This listener's name; agents alone are told.
    pub own_name: Option<String>,
    /// Whether the message is from this listener itself.
    pub is_self_call: bool,
    /// What the peers accept, written for a model's system prompt.
    pub usage_instructions: Arc<str>,
    /// The same as data: what it may send to whom.
    pub offers: Arc<[Offer]>,
    /// This delivery's id, the same when it is delivered again after a crash.
    pub hop_id: HopId,
    /// Tells when nobody waits for this work any more: the caller has answered
    /// without it, or a budget is used up. A handler that goes on is ended soon
    /// after.
    pub cancellation: CancellationToken,
    pub(crate) meter: Meter,
}

impl HandlerMetadata {
    /// Asks for one model call. An error when the budget has none left: the
    /// work is over then, and whoever asked for it is told.
    pub async fn admit_model_call(&self) -> std::result::Result<(), HandlerError> {
        self.meter.admit_model_call().await
    }

    /// A key for effects outside: the same when this message is given to the
    /// handler again after a crash, and no other message's.
    pub fn dedup_key(&self) -> String {
        format!("{}-{}", self.thread_id, self.hop_id)
    }

    /// This delivery as a parent for spans, as W3C Trace Context writes it: the
    /// trace is the conversation, the span is the hop.
    pub fn traceparent(&self) -> String {
        let job = self.meter.job();
        crate::trace::traceparent(job.root, job.id)
    }

    /// What this listener has noted in this thread under a name, oldest first.
    pub fn notes(&self, list: &str) -> Vec<Arc<str>> {
        let notes = self.meter.job().notes.iter();
        notes.flat_map(|notes| notes.list(list)).cloned().collect()
    }

    /// Keeps a text for this thread, in place of the `forget` oldest of its list.
    /// It is kept with what the handler gives back: both or, if it fails or a crash
    /// comes first, neither. Of one thread a mebibyte is kept.
    pub fn note(&self, list: impl Into<Arc<str>>, text: impl Into<Arc<str>>, forget: usize) {
        self.meter.note(Note {
            list: list.into(),
            text: text.into(),
            forget,
        });
    }

    /// Notes what a model call used.
    pub fn charge(&self, tokens: u64, money: u64) {
        self.meter.charge(tokens, money);
    }
}

/// One message to send: a payload and where it should go.
#[derive(Debug)]
pub struct HandlerResponse {
    pub(crate) target: Target,
    pub(crate) xml: Result<String, PayloadError>,
    pub(crate) schema: fn() -> Schema,
}

/// Where a message asks to go. The pump decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// To a listener by name.
    Named(String),
    /// Back to the caller.
    Caller,
    /// To whichever peers accept the payload's type, else back to the caller.
    ByType,
}

impl HandlerResponse {
    /// Forwards to a named peer.
    pub fn to<P: Payload>(name: impl Into<String>, payload: P) -> Self {
        Self::new(Target::Named(name.into()), &payload)
    }

    /// Answers the caller. The sub-threads of this thread end.
    pub fn respond<P: Payload>(payload: P) -> Self {
        Self::new(Target::Caller, &payload)
    }

    /// Sends to every broadcast peer that accepts this type, side by side; to
    /// the one peer that does, if there is just one.
    pub fn broadcast<P: Payload>(payload: P) -> Self {
        Self::new(Target::ByType, &payload)
    }

    fn new<P: Payload>(target: Target, payload: &P) -> Self {
        Self {
            target,
            xml: payload.to_xml(),
            schema: P::schema,
        }
    }
}

/// What a handler gave back.
#[derive(Debug)]
pub enum Reply {
    /// Messages; none ends the chain here.
    Messages(Vec<HandlerResponse>),
    /// Text that holds one payload or several, bare or in envelopes: what a
    /// model, a process or a handler of the old kind says.
    Text(Vec<u8>),
    /// Something that holds no message though it was meant to: whoever wrote it
    /// is told, by a `<huh>`, and may try again.
    NotUnderstood {
        /// What was written.
        attempt: Vec<u8>,
        /// What is wrong with it, in words for its writer.
        reason: String,
    },
}

impl From<()> for Reply {
    fn from((): ()) -> Self {
        Self::Messages(Vec::new())
    }
}

impl From<HandlerResponse> for Reply {
    fn from(response: HandlerResponse) -> Self {
        Self::Messages(vec![response])
    }
}

impl From<Option<HandlerResponse>> for Reply {
    fn from(response: Option<HandlerResponse>) -> Self {
        Self::Messages(response.into_iter().collect())
    }
}

impl From<Vec<HandlerResponse>> for Reply {
    fn from(responses: Vec<HandlerResponse>) -> Self {
        Self::Messages(responses)
    }
}

/// Deprecated: raw bytes still work, but say nothing of a target and are
/// checked only when they are read. Return a [`HandlerResponse`] instead.
impl From<Vec<u8>> for Reply {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Text(bytes)
    }
}

/// Why a handler failed. Any error converts into it with `?`; it goes to the
/// log, and the caller learns only that the listener failed, unless there are
/// words for it.
pub struct HandlerError {
    error: Box<dyn std::error::Error + Send + Sync>,
    told: String,
}

impl HandlerError {
    /// What the caller is told, in characters.
    const TOLD: usize = 2000;

    /// An error that the caller is told as well: what to do otherwise.
    pub fn telling(words: impl fmt::Display) -> Self {
        let words = words.to_string();
        // What XML cannot hold is left out.
        let is_text = |c: &char| match c {
            '\n' | '\t' => true,
            '\u{fffe}' | '\u{ffff}' => false,
            c => !c.is_control(),
        };
        let told = words.chars().filter(is_text).take(Self::TOLD).collect();
        Self {
            error: words.into(),
            told,
        }
    }

    /// The words for the caller; empty where there are none.
    pub(crate) fn told(&self) -> &str {
        &self.told
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            told: String::new(),
        }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// What a handler returns.
pub type Result<T = Option<HandlerResponse>, E = HandlerError> = std::result::Result<T, E>;
