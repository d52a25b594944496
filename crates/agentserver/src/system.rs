//! The payloads that the pump itself sends or understands.

use crate::Payload;
use crate::payload::Canonical;
use crate::xml::Limits;
use base64::Engine;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Who system messages are from. No listener and no gateway has this name.
pub const NAME: &str = "system";
/// The listener that learns of the start, where an organism has one.
pub const BOOT: &str = "system.boot";
/// The system listener that registers a to-do.
pub const TODO_UNTIL: &str = "todo-until";
/// Whoever called, in the `to` of a message: an answer.
pub const CALLER: &str = "caller";
/// The system listener that closes a to-do.
pub const TODO_COMPLETE: &str = "todo-complete";

/// Something could not be done. Says nothing of what exists and what does not.
#[derive(Payload, Debug, Clone, PartialEq, Eq)]
pub struct SystemError {
    /// One of routing, validation, timeout, handler, limit.
    #[payload(example = "routing")]
    pub code: String,
    /// What to do about it.
    pub message: String,
    /// Whether another try makes sense.
    #[payload(name = "retry-allowed")]
    pub retry_allowed: bool,
}

/// What you wrote could not be understood.
#[derive(Payload, Debug, Clone, PartialEq, Eq)]
#[payload(name = "huh", namespace = "https://xml-pipeline.org/ns/core/v1")]
pub struct Huh {
    /// What was wrong with it.
    pub error: String,
    /// What you wrote, in base64, cut.
    #[payload(name = "original-attempt", example = "PGE+")]
    pub original_attempt: String,
}

/// The organism has started.
#[derive(Payload, Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The organism's name.
    pub organism: String,
}

/// Watch this thread until something arrives, and remind me of it.
#[derive(Payload, Debug, Clone, PartialEq, Eq)]
pub struct TodoUntil {
    /// The payload type to wait for.
    pub wait_for: String,
    /// The listener it must come from; empty for anybody.
    pub from_listener: String,
    /// What is to be done.
    pub description: String,
}

/// The watcher is set.
#[derive(Payload, Debug, Clone, PartialEq, Eq)]
pub struct TodoRegistered {
    /// The watcher's id, for closing it.
    pub id: String,
    /// The payload type it waits for.
    pub wait_for: String,
    /// The listener it waits for; empty for anybody.
    pub from_listener: String,
    /// What is to be done.
    pub description: String,
}

/// Close a watcher.
#[derive(Payload, Debug, Clone, PartialEq, Eq)]
pub struct TodoComplete {
    /// The watcher's id.
    pub id: String,
}

/// The watcher is closed.
#[derive(Payload, Debug, Clone, PartialEq, Eq)]
pub struct TodoClosed {
    /// The watcher's id.
    pub id: String,
    /// Whether what it waited for had arrived.
    pub was_raised: bool,
}

/// A watcher of yours is still open.
#[derive(Payload, Debug, Clone, PartialEq, Eq)]
pub struct TodoNudge {
    /// The watcher's id.
    pub id: String,
    /// What is to be done.
    pub description: String,
    /// Whether what it waits for has arrived.
    pub is_raised: bool,
}

/// All of the above.
pub(crate) fn schemas() -> [crate::payload::Schema; 8] {
    [
        SystemError::schema(),
        Huh::schema(),
        Boot::schema(),
        TodoUntil::schema(),
        TodoRegistered::schema(),
        TodoComplete::schema(),
        TodoClosed::schema(),
        TodoNudge::schema(),
    ]
}

/// Why a message was not delivered, or a handler gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// The target may not be reached, or does not exist.
    Routing,
    /// The payload is not what its schema, or its receiver, takes.
    Validation,
    /// The handler took too long.
    Timeout,
    /// The handler failed.
    Handler,
    /// A limit or a budget was reached.
    Limit,
}

impl Fault {
    /// The code in a [`SystemError`].
    pub fn code(self) -> &'static str {
        match self {
            Self::Routing => "routing",
            Self::Validation => "validation",
            Self::Timeout => "timeout",
            Self::Handler => "handler",
            Self::Limit => "limit",
        }
    }

    /// The message for it, without words on what to do.
    pub fn error(self) -> SystemError {
        let (message, retry_allowed) = match self {
            Self::Routing => (
                "Message could not be delivered. Please verify your target and try again.",
                true,
            ),
            Self::Validation => (
                "Message was not understood. Please verify its payload and try again.",
                true,
            ),
            Self::Timeout => ("No answer came in time.", true),
            Self::Handler => ("The message could not be handled.", false),
            Self::Limit => ("A limit was reached.", false),
        };
        SystemError {
            code: self.code().to_owned(),
            message: message.to_owned(),
            retry_allowed,
        }
    }

    /// The payload for it.
    pub(crate) fn payload(self) -> Canonical {
        static ERRORS: LazyLock<[Canonical; 5]> = LazyLock::new(|| {
            [
                Fault::Routing,
                Fault::Validation,
                Fault::Timeout,
                Fault::Handler,
                Fault::Limit,
            ]
            .map(|f| canonical(&f.error()))
        });
        ERRORS[self as usize].clone()
    }

    /// The payload for it, with words on what its receiver could do.
    pub(crate) fn saying(self, words: &str) -> Canonical {
        if words.is_empty() {
            return self.payload();
        }
        let mut error = self.error();
        error.message = format!("{} {words}", error.message);
        canonical(&error)
    }
}

/// The `<huh>` for a text that could not be understood, with what is wrong in it.
pub fn huh(attempt: &[u8], wrong: &str) -> Canonical {
    const KEPT: usize = 512;
    let message = Fault::Validation.error().message;
    canonical(&Huh {
        error: format!("{message} {wrong}").trim_end().to_owned(),
        original_attempt: base64::engine::general_purpose::STANDARD
            .encode(&attempt[..attempt.len().min(KEPT)]),
    })
}

/// The canonical form of one of the payloads above. Their texts are our own or
/// came through the door, so they have one.
pub(crate) fn canonical<P: Payload>(payload: &P) -> Canonical {
    let parsed = payload
        .to_xml()
        .ok()
        .and_then(|xml| Canonical::parse(&xml, &Limits::default()).ok());
    parsed.unwrap_or_else(|| {
        let xml = format!("<{}></{}>", P::NAME, P::NAME);
        Canonical::from_parts(P::NAMESPACE, P::NAME, xml)
    })
}
