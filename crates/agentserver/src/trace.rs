//! What can be seen of the pump: one record for every hop.

use crate::core::{HopId, ThreadId};
use crate::payload::Canonical;
use crate::system::Fault;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A message moved, or did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Its id, where it reached someone.
    pub id: Option<HopId>,
    /// The message whose handling it followed from; none for one from outside.
    pub parent: Option<HopId>,
    /// The root thread of its conversation.
    pub conversation: ThreadId,
    /// Who sent it.
    pub from: Arc<str>,
    /// Who it was for.
    pub to: Arc<str>,
    /// What it carries.
    pub payload: Canonical,
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
    /// Its handler is done with it, whatever came of it.
    Handled(Handling),
    /// Its text was mended before it was read.
    Repaired {
        /// What was mended.
        repairs: String,
    },
    /// Work was ended because its budget is used up; whoever asked for it was told.
    Exhausted {
        /// The budget's key in a file.
        limit: &'static str,
        /// What was told.
        words: String,
    },
    /// Its thread, or the work it was part of, had ended.
    Ended,
    /// Whoever began the conversation had left.
    Unheard,
}

/// A hop as W3C Trace Context names a span: the trace is its conversation.
pub(crate) fn traceparent(conversation: ThreadId, id: HopId) -> String {
    format!("00-{:032x}-{:016x}-01", conversation.number(), id.number())
}

/// What handling a message took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handling {
    /// How long it waited for its turn.
    pub waited: Duration,
    /// How long its handler ran.
    pub took: Duration,
    /// Calls of models.
    pub model_calls: u64,
    /// Tokens that models read and wrote.
    pub tokens: u64,
    /// Millionths of the currency in which the models' prices are given.
    pub money: u64,
    /// What its caller was told, where the handler failed.
    pub fault: Option<Fault>,
}

impl HopKind {
    /// Its name, as counters and pages have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Answer => "answer",
            Self::System => "system",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
            Self::Handled(_) => "handled",
            Self::Repaired { .. } => "repaired",
            Self::Exhausted { .. } => "limit",
            Self::Ended => "ended",
            Self::Unheard => "unheard",
        }
    }

    /// Whether an operator should know of it who does not follow every hop.
    pub(crate) fn is_for_operator(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. } | Self::Failed { .. } | Self::Exhausted { .. }
        )
    }

    /// Whether something did not get done that was asked for.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Exhausted { .. })
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conversation = self.conversation.to_string();
        let Self {
            from,
            to,
            payload,
            kind,
            ..
        } = self;
        let (payload, bytes) = (payload.root(), payload.xml().len());
        let short = conversation.get(..8).unwrap_or(&conversation);
        write!(f, "{short}  ")?;
        if let Some(id) = self.id {
            write!(f, "#{id}  ")?;
        }
        write!(f, "{from} -> {to}  <{payload}> {bytes} bytes  {kind}")
    }
}

impl fmt::Display for HopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call => f.write_str("call"),
            Self::Answer => f.write_str("answer"),
            Self::System => f.write_str("system"),
            Self::Refused { fault, reason } => {
                write!(f, "refused ({}): ", fault.code())?;
                plain(reason, f)
            }
            Self::Failed { fault, reason } => {
                write!(f, "failed ({}): ", fault.code())?;
                plain(reason, f)
            }
            Self::Handled(handling) => handling.fmt(f),
            Self::Repaired { repairs } => write!(f, "repaired: {repairs}"),
            Self::Exhausted { limit, words } => {
                write!(f, "limit ({limit}): ")?;
                plain(words, f)
            }
            Self::Ended => f.write_str("dropped: the thread has ended"),
            Self::Unheard => f.write_str("dropped: the caller has left"),
        }
    }
}

impl fmt::Display for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            waited,
            took,
            model_calls,
            tokens,
            money,
            fault: _,
        } = self;
        let (waited, took) = (waited.as_secs_f64(), took.as_secs_f64());
        write!(f, "handled in {took:.6} s after {waited:.6} s")?;
        if *model_calls > 0 {
            let (whole, rest) = (money / 1_000_000, money % 1_000_000);
            write!(
                f,
                "; {model_calls} model calls, {tokens} tokens, {whole}.{rest:06} of money"
            )?;
        }
        Ok(())
    }
}

/// A text of which no part can pass for another line or another colour.
fn plain(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    text.chars().try_for_each(|c| {
        // Line and paragraph separators, and what turns the direction of writing.
        let is_sly =
            c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match is_sly {
            true => write!(f, "{}", c.escape_default()),
            false => fmt::Write::write_char(f, c),
        }
    })
}

/// Tells the log; the place where refusals and failures are logged, once.
pub(crate) fn log(hop: &Hop) {
    let Hop {
        id,
        conversation,
        from,
        to,
        payload,
        kind,
        ..
    } = hop;
    let (id, payload, bytes) = (id.as_ref(), payload.root(), payload.xml().len());
    let id = id.map(tracing::field::display);
    match kind {
        HopKind::Refused { .. } | HopKind::Failed { .. } | HopKind::Exhausted { .. } => {
            tracing::warn!(id, %conversation, %from, %to, payload, bytes, %kind, "hop");
        }
        HopKind::Repaired { .. } => {
            tracing::info!(id, %conversation, %from, %to, payload, bytes, %kind, "hop")
        }
        _ => tracing::debug!(id, %conversation, %from, %to, payload, bytes, %kind, "hop"),
    }
}
