//! What goes into the rules. All that they do follows from these, so whoever
//! keeps them can repeat a run.

use super::budget::Usage;
use super::message::{AskId, HopId, Outcome, Outgoing};
use super::notes::Note;
use super::outline::Outline;
use super::threads::ThreadId;
use super::time::Time;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One input, and when it came.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record<'a> {
    /// When.
    pub at: Time,
    /// What.
    pub input: Input<'a>,
}

/// What goes in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input<'a> {
    /// The organism has started.
    Boot,
    /// Other listeners from now on, or other limits.
    Reload(Box<Cow<'a, Outline>>),
    /// What ran when the pump ended is begun again.
    Resume,
    /// A gateway begins a conversation.
    Open {
        gateway: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Cow<'a, str>>,
    },
    /// It wants no more answers.
    Close { root: ThreadId },
    /// A message from outside.
    Send {
        root: ThreadId,
        out: Cow<'a, Outgoing>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Cow<'a, str>>,
    },
    /// A gateway has done with all answers up to this one.
    Acknowledge { root: ThreadId, id: HopId },
    /// A handler has finished.
    Finish {
        hop: HopId,
        outcome: Cow<'a, Outcome>,
        used: Usage,
        #[serde(default, skip_serializing_if = "<[Note]>::is_empty")]
        notes: Cow<'a, [Note]>,
    },
    /// A handler wants to call a model.
    ModelCall { hop: HopId },
    /// A handler asks a peer.
    Ask { hop: HopId, out: Cow<'a, Outgoing> },
    /// It does not wait for the answer any more.
    ForgetAsk { id: AskId },
    /// Time has passed.
    Tick,
}

/// Inputs as lines of JSON, until they are taken to be kept.
#[derive(Debug, Default)]
pub struct Records(Vec<u8>);

impl Records {
    pub fn push(&mut self, record: &Record<'_>) {
        // Writing to memory does not fail, and every input has a JSON form.
        if let Err(error) = serde_json::to_writer(&mut self.0, record) {
            tracing::error!(%error, "an input has no form that can be kept");
        }
        self.0.push(b'\n');
    }

    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}
