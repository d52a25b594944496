//! What answers a message: the one trait in which the daemon and the host meet every kind of agent.

mod a2a;
pub mod acp;
mod agent;
pub mod answer_in;
pub mod build;
mod call;
mod coding_agent;
pub mod command;
mod command_line;
pub mod config;
mod consent;
mod environment;
mod handler;
mod openai;
mod organism;
pub mod path;
mod plain;
mod prompt;
mod reply;
mod starchild;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod transcript;

pub use call::{Call, Progress, Usage};

use client::Client;
use futures_util::future::BoxFuture;
use protocol::{Message, RoomId, RoomText, mentions::Mentionable};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// A script, a command line, a remote agent, an agent or an organism of ours.
pub trait Backend: Send + Sync {
    /// Whether the daemon asks only when the agent is addressed: mentioned or replied to, never by
    /// itself and never by the system. The `handler` backend alone decides for itself.
    fn answers_only_addressed(&self) -> bool {
        true
    }

    /// Gives the answer to one message, and tells how it comes along. Whoever drops the future ends
    /// the call, and all that it started.
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>>;

    /// What it has to say in a room without being asked, when it is time to. It is given again until
    /// [`Backend::remark_is_dealt_with`]. Most backends have nothing to say by themselves.
    fn next_remark<'a>(&'a self, _room_name: &'a str) -> BoxFuture<'a, Remark> {
        Box::pin(std::future::pending())
    }

    /// A remark was posted, or never will be.
    fn remark_is_dealt_with(&self, _room_name: &str, _remark: &Remark) {}
}

/// Something said without being asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The message that it goes back to, if any.
    pub reply_to_seq: Option<i64>,
    /// What tells it from other remarks on that message.
    pub id: String,
    /// The words.
    pub text: String,
}

/// One message, and what a backend may want to know about the room it came from.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// The room.
    pub room_id: RoomId,
    /// What the room is called on this machine, which no room of another server is.
    pub room_name: String,
    /// The message to answer.
    pub message: Message,
    /// The room's server, for calls with the agent's own key.
    pub client: Client,
    /// Who answers.
    pub me: Me,
    /// The room's rules, as of `message.rules_version`; only for a backend that answers only when addressed.
    pub rules: Option<Arc<RoomText>>,
    /// What was said before the message, oldest first; only for a backend that answers only when addressed.
    pub recent: Vec<Message>,
    /// This start of the daemon.
    pub session: Arc<DaemonSession>,
}

impl Inbound {
    /// The message with what a conversation does not know yet, which was shown the room up to `seq`
    /// and these rules.
    fn unseen(&self, seq: i64, rules_version: Option<i64>) -> Self {
        let mut inbound = self.clone();
        let me = &inbound.me.user_id;
        inbound
            .recent
            .retain(|said| said.seq > seq && said.sender_user_id != *me);
        if inbound.rules.as_ref().map(|rules| rules.version) == rules_version {
            inbound.rules = None;
        }
        inbound
    }
}

/// Who the agent is in the room.
#[derive(Clone, Debug)]
pub struct Me {
    /// For example `ext_curious_otter-3a9f1c20`.
    pub user_id: String,
    /// The name it goes by in the room.
    pub user_name: Option<String>,
    /// What mentions it, for example `@MyBot`.
    pub mention_key: String,
    /// The person whose agent it is, by what the server knows.
    pub owner_user_id: Option<String>,
}

impl Me {
    /// The agent, as mentions see it.
    pub fn mentionable(&self) -> Mentionable<'_> {
        Mentionable {
            id: &self.user_id,
            name: Some(self.mention_key.trim_start_matches('@')),
        }
    }
}

/// One start of the daemon.
#[derive(Debug)]
pub struct DaemonSession {
    /// For example `20260503-024118`.
    pub id: String,
    /// A folder that a backend may log into.
    pub log_dir: PathBuf,
}

/// What a backend says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This text, in the agent's name.
    Text(String),
    /// Nothing, on purpose.
    Silent,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// Something the backend needs is not on this machine.
    #[error("{what}; {hint}")]
    Missing {
        /// What is missing.
        what: String,
        /// How to get it.
        hint: String,
    },
    /// It took longer than it may.
    #[error("no answer within {} s; raise timeout_seconds in handler.yaml if it needs longer", .0.as_secs())]
    TimedOut(Duration),
    /// It failed, and would fail again: the message is skipped.
    #[error("{0}")]
    Failed(String),
    /// It failed, and may work in a moment: the message is tried again.
    #[error("{0}")]
    Unavailable(String),
}
