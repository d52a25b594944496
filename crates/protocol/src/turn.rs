//! Agents at work: what they say of a turn while it goes on, and how it is stopped or begun again.

use crate::{RoleClass, open_words, room::wire, words};
use serde::{Deserialize, Serialize};

words! {
    /// What a member does just now.
    TypingState {
        /// It works on an answer.
        Thinking = "thinking",
        /// It writes.
        Writing = "writing",
        /// It does neither any more.
        Idle = "idle",
    }
}

open_words! {
    /// Why a member is idle now.
    IdleReason {
        /// Its message is posted.
        Posted = "posted",
        /// It says so itself, or its call is over without an answer.
        Done = "done",
        /// Somebody stopped it.
        Stopped = "stopped",
        /// Its call failed.
        Failed = "failed",
        /// Nothing was heard of it for a while.
        Silent = "silent",
        /// It left the room.
        Left = "left",
    }
}

wire! {
    /// `POST /rooms/{id}/typing`. A state lasts 15 seconds; say it again to keep it.
    pub struct PostTyping {
        /// What the member does.
        pub state: TypingState,
        /// The message it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        pub reply_to_seq: Option<i64>,
        /// What it does, in a line of at most 200 characters, e.g. the name of a tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_length = 200))]
        pub activity: Option<String>,
        /// Everything it has written so far, at most 4 KB of UTF-8; agents alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub text: Option<String>,
    }

    /// What readers were told, and whether to go on.
    pub struct TypingTold {
        /// Always true.
        pub ok: bool,
        /// Whether the member is to stop: somebody who may has said so.
        pub stop: bool,
        /// Who said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stopped_by: Option<String>,
    }

    /// `POST /rooms/{id}/members/{user_id}/stop`.
    #[derive(Default)]
    pub struct StopTurn {
        /// The message whose answer is not wanted any more; the one being answered where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1))]
        pub reply_to_seq: Option<i64>,
    }

    /// What became of a stop.
    pub struct TurnStopped {
        /// Always true.
        pub ok: bool,
        /// Whether there was a turn to stop.
        pub stopped: bool,
        /// The message whose answer was being written, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reply_to_seq: Option<i64>,
    }

    /// `POST /rooms/{id}/messages/{seq}/retry`.
    #[derive(Default)]
    pub struct RetryTurn {
        /// Which agent; where absent, those whom the message mentions, or else every agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub user_id: Option<String>,
    }

    /// Who answers anew.
    pub struct TurnRetried {
        /// Always true.
        pub ok: bool,
        /// Agents that are called again for the message.
        pub called: Vec<String>,
        /// Agents that read for themselves and were told by an event, if they have a stream open.
        pub told: Vec<String>,
    }
}

/// What a member does, as readers are told. Kept nowhere, and without a place in the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTyping {
    /// Which member.
    pub user_id: String,
    /// Whether it is an agent or a person.
    #[serde(default = "agent")]
    pub role_class: RoleClass,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_seq: Option<i64>,
    /// False once it is idle; its answer, if there is one, comes as a message.
    pub typing: bool,
    /// What it does.
    #[serde(default = "writing")]
    pub state: TypingState,
    /// When it began with this, in unix seconds by the server's clock.
    #[serde(default)]
    pub since: i64,
    /// What it says that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Why it is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<IdleReason>,
    /// Who stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_user_id: Option<String>,
}

fn agent() -> RoleClass {
    RoleClass::Agent
}

fn writing() -> TypingState {
    TypingState::Writing
}

/// An answer in the making.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentDelta {
    /// Which agent.
    pub user_id: String,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_seq: Option<i64>,
    /// Everything it has written so far.
    pub text: String,
}

/// A member is to stop what it does. Goes to that member's own streams alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStop {
    /// Which member.
    pub user_id: String,
    /// The message whose answer is not wanted any more; whatever it does where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_seq: Option<i64>,
    /// Who says so.
    pub by_user_id: String,
}

/// A member is asked to answer a message anew. Goes to that member's own streams alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRetry {
    /// Which member.
    pub user_id: String,
    /// The message.
    pub seq: i64,
    /// Who asks.
    pub by_user_id: String,
}
