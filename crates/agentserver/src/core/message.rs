//! What goes into the state machine and what comes out of it.

use super::account::Cause;
use super::notes::Notes;
use super::threads::ThreadId;
use super::time::Time;
use crate::handler::Target;
use crate::organism::{Organism, RegisteredListener};
use crate::payload::Canonical;
use crate::system::Fault;
use crate::trace::Hop;
use runtime::CancellationToken;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One message for one handler.
#[derive(Debug)]
pub struct Job {
    pub id: HopId,
    /// The message that it followed from.
    pub parent: Option<HopId>,
    /// When it reached its listener.
    pub arrived: Time,
    pub entry: Arc<RegisteredListener>,
    /// As it was when the message was sent: a reload does not make strangers
    /// of the types that its answer may have.
    pub organism: Arc<Organism>,
    pub thread: ThreadId,
    pub root: ThreadId,
    pub from: Arc<str>,
    pub is_self_call: bool,
    pub payload: Canonical,
    pub reminder: Option<String>,
    /// What the listener has kept for the thread.
    pub notes: Option<Arc<Notes>>,
    /// Whoever called the thread: whom an answer goes to.
    pub caller: Option<Arc<str>>,
    pub cause: Cause,
    /// Tells the handler that nobody waits for it any more.
    pub cancellation: CancellationToken,
}

/// One message for one handler or for a gateway, told apart from all others of
/// the pump; the same when it is given again after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HopId(pub(super) u64);

impl HopId {
    /// Reads an id as it is written.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// The id as a number.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for HopId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A question that a handler asked while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AskId(pub(super) u64);

/// A message that a handler wants to send.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outgoing {
    pub target: Target,
    pub payload: Canonical,
    pub form: Form,
    pub fit: Fit,
}

/// How a message was said; a text that is not understood gets a `<huh>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    Typed,
    Text,
}

/// Whether the payload is a valid one of a type that the organism knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fit {
    Valid,
    /// Nobody knows a type of this name.
    Unknown,
    /// It is not what its type says; the text says where.
    Not(String),
}

/// How a handler's run ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Outcome {
    /// With messages, or none.
    Sent(Vec<Outgoing>),
    /// With text that nobody can read.
    Garbled { attempt: Vec<u8>, reason: String },
    /// Not at all. The reason is for the operator, the words are for the caller.
    Failed {
        fault: Fault,
        reason: String,
        #[serde(default)]
        words: String,
    },
}

/// A message for whoever began a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Arrival {
    pub id: HopId,
    pub root: ThreadId,
    /// The message from outside that it follows from.
    pub request: Option<HopId>,
    /// The key that one was sent with.
    pub key: Option<Arc<str>>,
    pub from: Arc<str>,
    pub payload: Canonical,
}

/// What the pump must carry out.
#[derive(Debug)]
pub enum Effect {
    /// Run a handler, and report with [`Core::finish`].
    Run(Arc<Job>),
    /// Hand a message to whoever began the conversation.
    Deliver(Arrival),
    /// A conversation came to rest: nothing of it waits or runs, and no to-do
    /// is open.
    Rest(ThreadId),
    /// So many messages from outside are done with, and all that followed from
    /// them: others may be let in.
    Finished(usize),
    /// A question that a handler asked has its answer, or will have none.
    Answered {
        id: AskId,
        answer: Option<Canonical>,
    },
    /// Nobody waits for this run any more.
    Cancel(CancellationToken),
    /// A thread of a listener ended.
    Ended {
        entry: Arc<RegisteredListener>,
        thread: ThreadId,
    },
    /// For the trace.
    Hop(Box<Hop>),
}

impl Effect {
    /// Whether someone who waits for a message is told.
    pub fn is_for_mailboxes(&self) -> bool {
        matches!(
            self,
            Self::Deliver(_) | Self::Rest(_) | Self::Answered { .. }
        )
    }
}

impl Outgoing {
    /// The target, for the trace.
    pub fn target_name(&self) -> Arc<str> {
        match &self.target {
            Target::Named(name) => Arc::from(&**name),
            Target::Caller => "caller".into(),
            Target::ByType => "*".into(),
        }
    }
}
