//! What can be seen of the pump: one record for every hop.

use crate::core::ThreadId;
use crate::system::Fault;
use std::fmt;
use std::sync::Arc;

/// A message moved, or did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The root thread of its conversation.
    pub conversation: ThreadId,
    /// Who sent it.
    pub from: Arc<str>,
    /// Who it was for.
    pub to: Arc<str>,
    /// The payload's root element.
    pub payload: Arc<str>,
    /// The payload's size.
    pub bytes: usize,
    /// What became of it.
    pub kind: HopKind,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HopKind {
    /// It called a listener.
    Call,
    /// It answered a caller.
    Answer,
    /// The pump itself sent it.
    System,
    /// It was blocked; its sender was told.
    Refused {
        /// What the sender was told.
        fault: Fault,
        /// Why, for the operator alone.
        reason: String,
    },
    /// Its handler failed; the caller was told.
    Failed {
        /// What the caller was told.
        fault: Fault,
        /// Why, for the operator alone.
        reason: String,
    },
    /// Its text was mended before it was read.
    Repaired {
        /// What was mended.
        repairs: String,
    },
    /// Its thread had ended.
    Ended,
    /// Whoever began the conversation had left.
    Unheard,
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conversation = self.conversation.to_string();
        let Self {
            from,
            to,
            payload,
            bytes,
            kind,
            ..
        } = self;
        let short = conversation.get(..8).unwrap_or(&conversation);
        write!(
            f,
            "{short}  {from} -> {to}  <{payload}> {bytes} bytes  {kind}"
        )
    }
}

impl fmt::Display for HopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call => f.write_str("call"),
            Self::Answer => f.write_str("answer"),
            Self::System => f.write_str("system"),
            Self::Refused { fault, reason } => write!(f, "refused ({}): {reason}", fault.code()),
            Self::Failed { fault, reason } => write!(f, "failed ({}): {reason}", fault.code()),
            Self::Repaired { repairs } => write!(f, "repaired: {repairs}"),
            Self::Ended => f.write_str("dropped: the thread has ended"),
            Self::Unheard => f.write_str("dropped: the caller has left"),
        }
    }
}

/// Tells the log; the place where refusals and failures are logged, once.
pub(crate) fn log(hop: &Hop) {
    let Hop {
        conversation,
        from,
        to,
        payload,
        bytes,
        kind,
    } = hop;
    match kind {
        HopKind::Refused { .. } | HopKind::Failed { .. } => {
            tracing::warn!(%conversation, %from, %to, %payload, bytes, %kind, "hop");
        }
        HopKind::Repaired { .. } => {
            tracing::info!(%conversation, %from, %to, %payload, bytes, %kind, "hop")
        }
        _ => tracing::debug!(%conversation, %from, %to, %payload, bytes, %kind, "hop"),
    }
}
