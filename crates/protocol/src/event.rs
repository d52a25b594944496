//! The stream's events and the cursor that orders them.

use crate::{
    AgentDelta, AgentRetry, AgentStop, AgentTyping, BadId, Consent, InboxMoved, Message,
    ReadPosition, RoomId, ThreadPosition,
};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A position in a room's one durable order of events.
///
/// A message stands at its `seq`. What has no `seq` of its own (an edit, a reaction, new rules)
/// stands after the newest message of its time, counted: `43.1`, `43.2`. So a client that knows
/// only a message's `seq` can resume from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor {
    /// The newest message's `seq` at that position.
    pub seq: i64,
    /// How many other events have come since that message.
    pub sub: i64,
}

impl Cursor {
    /// The position of the message with this `seq`.
    pub const fn at(seq: i64) -> Self {
        Self { seq, sub: 0 }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sub {
            0 => write!(f, "{}", self.seq),
            sub => write!(f, "{}.{}", self.seq, sub),
        }
    }
}

impl FromStr for Cursor {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        const FORM: BadId = BadId("a cursor is a seq, or a seq and a count: 43 or 43.2");
        let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
            true => digits.parse::<i64>().map_err(|_| FORM),
            false => Err(FORM),
        };
        let (seq, sub) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self {
            seq: number(seq)?,
            sub: number(sub)?,
        })
    }
}

crate::words! {
    /// The `event:` field of a frame.
    EventKind {
        /// The stream is open; the data is where it stands.
        Ready = "ready",
        /// A new message.
        Message = "message",
        /// A message was edited; the data is the whole row.
        MessageEdited = "message_edited",
        /// A message was deleted; the data is its `seq`.
        MessageDeleted = "message_deleted",
        /// A reaction was added.
        ReactionAdded = "reaction_added",
        /// A reaction was removed.
        ReactionRemoved = "reaction_removed",
        /// The room's rules have a new version.
        RulesUpdated = "rules_updated",
        /// A message was pinned, or its pin was taken away.
        PinUpdated = "pin_updated",
        /// How a member is reached has changed, or whether it can be.
        MemberUpdated = "member_updated",
        /// A request for consent was made, decided, withdrawn or has expired.
        ConsentUpdated = "consent_updated",
        /// What a member does just now; not kept.
        AgentTyping = "agent_typing",
        /// What an agent has written so far; only for those who ask, and not kept.
        AgentDelta = "agent_delta",
        /// The reader has read a room further, elsewhere; only for that user's own streams that ask, and
        /// not kept.
        Read = "read",
        /// The reader has read a thread further, elsewhere; told like `read`.
        ThreadRead = "thread_read",
        /// Something happened in other rooms of the reader's; told like `read`.
        Inbox = "inbox",
        /// The reader itself is to stop what it does; not kept.
        AgentStop = "agent_stop",
        /// The reader itself is asked to answer a message anew; not kept.
        AgentRetry = "agent_retry",
        /// The cursor is too old or unknown: read the room anew, then follow from here.
        Resync = "resync",
    }
}

/// One event of a room's stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The stream is open.
    Ready(Ready),
    /// A new message.
    Message(Box<Message>),
    /// A message was edited.
    MessageEdited(Box<Message>),
    /// A message was deleted.
    MessageDeleted {
        /// Which one.
        seq: i64,
    },
    /// A reaction was added.
    ReactionAdded(Reaction),
    /// A reaction was removed.
    ReactionRemoved(Reaction),
    /// The room's rules have a new version.
    RulesUpdated(RulesUpdated),
    /// A message was pinned, or its pin was taken away.
    PinUpdated(PinUpdated),
    /// How a member is reached has changed, or whether it can be.
    MemberUpdated(MemberUpdated),
    /// A request for consent was made, decided, withdrawn or has expired.
    ConsentUpdated(Box<Consent>),
    /// What a member does just now.
    AgentTyping(AgentTyping),
    /// What an agent has written so far.
    AgentDelta(AgentDelta),
    /// The reader has read a room further, elsewhere.
    Read(ReadPosition),
    /// The reader has read a thread further, elsewhere.
    ThreadRead(ThreadPosition),
    /// Something happened in other rooms of the reader's.
    Inbox(InboxMoved),
    /// The reader itself is to stop what it does.
    AgentStop(AgentStop),
    /// The reader itself is asked to answer a message anew.
    AgentRetry(AgentRetry),
    /// The cursor is too old or unknown.
    Resync(Resync),
    /// An event of a later version of the protocol.
    Other(String),
}

/// Where a stream stands that has just been opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The cursor to resume from if nothing else comes.
    pub cursor: String,
}

/// Who reacted to what, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    /// The message.
    pub seq: i64,
    /// Who reacted.
    pub user_id: String,
    /// With what.
    pub emoji: String,
}

/// New rules, without their text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesUpdated {
    /// The new version.
    pub version: i64,
    /// Who changed them.
    pub updated_by: String,
    /// When, in unix seconds.
    pub updated_at: i64,
}

/// A message that was pinned, or is no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinUpdated {
    /// The message.
    pub seq: i64,
    /// Whether it is pinned now.
    pub pinned: bool,
    /// The owner.
    pub by_user_id: String,
}

/// How a member is reached now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberUpdated {
    /// Who.
    pub user_id: String,
    /// Whether there is an endpoint to call.
    pub has_agent_endpoint: bool,
    /// Whether there is a bearer to call it with.
    pub has_akm_key: bool,
    /// Whether the agent is no longer called until it sends a new bearer.
    pub key_stale: bool,
    /// Why it is no longer called, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why the stream could not resume from the cursor it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resync {
    /// The room.
    pub room_id: RoomId,
    /// In words.
    pub reason: String,
    /// The newest message's `seq` from which the stream goes on.
    pub latest_seq: i64,
}

impl Event {
    /// Reads a frame's `event:` and `data:`.
    pub fn parse(kind: &str, data: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Deleted {
            seq: i64,
        }
        Ok(match kind.parse::<EventKind>() {
            Ok(EventKind::Ready) => Self::Ready(serde_json::from_str(data)?),
            Ok(EventKind::Message) => Self::Message(serde_json::from_str(data)?),
            Ok(EventKind::MessageEdited) => Self::MessageEdited(serde_json::from_str(data)?),
            Ok(EventKind::MessageDeleted) => Self::MessageDeleted {
                seq: serde_json::from_str::<Deleted>(data)?.seq,
            },
            Ok(EventKind::ReactionAdded) => Self::ReactionAdded(serde_json::from_str(data)?),
            Ok(EventKind::ReactionRemoved) => Self::ReactionRemoved(serde_json::from_str(data)?),
            Ok(EventKind::RulesUpdated) => Self::RulesUpdated(serde_json::from_str(data)?),
            Ok(EventKind::PinUpdated) => Self::PinUpdated(serde_json::from_str(data)?),
            Ok(EventKind::MemberUpdated) => Self::MemberUpdated(serde_json::from_str(data)?),
            Ok(EventKind::ConsentUpdated) => Self::ConsentUpdated(serde_json::from_str(data)?),
            Ok(EventKind::AgentStop) => Self::AgentStop(serde_json::from_str(data)?),
            Ok(EventKind::AgentRetry) => Self::AgentRetry(serde_json::from_str(data)?),
            Ok(EventKind::AgentTyping) => Self::AgentTyping(serde_json::from_str(data)?),
            Ok(EventKind::AgentDelta) => Self::AgentDelta(serde_json::from_str(data)?),
            Ok(EventKind::Read) => Self::Read(serde_json::from_str(data)?),
            Ok(EventKind::ThreadRead) => Self::ThreadRead(serde_json::from_str(data)?),
            Ok(EventKind::Inbox) => Self::Inbox(serde_json::from_str(data)?),
            Ok(EventKind::Resync) => Self::Resync(serde_json::from_str(data)?),
            Err(_) => Self::Other(kind.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_writes() {
        for text in ["0", "43", "43.2", "9000000000.17"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_side_event_stands_between_two_messages() {
        let edit = Cursor { seq: 43, sub: 2 };
        assert!(Cursor::at(43) < edit && edit < Cursor::at(44));
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for bad in [
            "",
            "-1",
            "+1",
            "a",
            "1.",
            ".1",
            "1.-2",
            "1.2.3",
            "99999999999999999999",
        ] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
    }
}
