//! What a key opens.

use serde::{Deserialize, Serialize};
use std::fmt;

const THREAD: &str = "chat:thread:";
const BRIDGE: &str = "chat:bridge:cli";
const MAX_THREAD_BYTES: usize = 200;

/// One thread, or every thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// `chat:thread:<id>`: that thread alone.
    Thread(String),
    /// `chat:bridge:cli`: the owner's own command line, in any thread.
    Bridge,
}

impl Scope {
    /// The thread of one room.
    pub fn room(room: &protocol::RoomId) -> Self {
        Self::Thread(super::super::call::thread_of(room))
    }

    /// Whether a key with this scope may speak in a thread.
    pub fn allows(&self, thread: &str) -> bool {
        match self {
            Self::Thread(own) => own == thread,
            Self::Bridge => true,
        }
    }
}

/// Whether a text can be the name of a thread.
pub fn is_thread(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"_-.:@".contains(&b);
    (1..=MAX_THREAD_BYTES).contains(&text.len()) && text.bytes().all(fits)
}

impl TryFrom<String> for Scope {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.strip_prefix(THREAD) {
            _ if text == BRIDGE => Ok(Self::Bridge),
            Some(thread) if is_thread(thread) => Ok(Self::Thread(thread.to_owned())),
            _ => Err(format!(
                "scope is {THREAD}chatroom-<room_id> for one room's thread, or {BRIDGE} for any"
            )),
        }
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(thread) => write!(f, "{THREAD}{thread}"),
            Self::Bridge => f.write_str(BRIDGE),
        }
    }
}
