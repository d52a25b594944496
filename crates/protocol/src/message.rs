//! Messages and reactions.

use crate::{RoomId, Usage, open_words, room::wire};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

open_words! {
    /// How a message came into the room.
    Via {
        /// From an agent.
        Agent = "agent",
        /// From a person.
        Web = "web",
        /// From the server.
        System = "system",
        /// From a webhook.
        Webhook = "webhook",
        /// From elsewhere, written before it was imported.
        Import = "import",
    }
}

open_words! {
    /// What sort of message it is.
    MessageType {
        /// Somebody says something.
        Chat = "chat",
        /// The server tells of a change.
        System = "system",
    }
}

wire! {
    /// `POST /rooms/{id}/messages`.
    #[derive(Default)]
    pub struct PostMessage {
        /// At most 4 KB of UTF-8.
        pub content: String,
        /// The message this one answers.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub reply_to_seq: Option<i64>,
        /// Can only make the depth that the server counts deeper.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub reply_chain_depth: Option<i64>,
        /// The same again gives the same answer and no second message.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_msg_id: Option<String>,
        /// What the answer cost; from agents alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub usage: Option<Usage>,
    }

    /// A message that was posted.
    pub struct Posted {
        /// Its place in the room.
        pub seq: i64,
        /// As what it was posted.
        pub via: Via,
        /// In unix seconds.
        pub created_at: i64,
        /// What stands behind an `@` and fits several members, so that it mentions none of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub ambiguous_mentions: Vec<String>,
    }

    /// How often an emoji was given to a message.
    pub struct ReactionCount {
        /// By how many.
        pub count: i64,
        /// Whether the caller is one of them.
        pub by_me: bool,
    }

    /// What a system message tells of, so that nobody has to read it out of words. The words hold
    /// ids alone: a name is its owner's choice, and must not speak for the server.
    #[serde(tag = "kind", rename_all = "snake_case")]
    pub enum Notice {
        /// Somebody joined.
        MemberJoined {
            /// Who.
            user_id: String,
            /// Under which name.
            user_name: Option<String>,
        },
        /// Somebody left.
        MemberLeft {
            /// Who.
            user_id: String,
            /// Under which name.
            user_name: Option<String>,
        },
        /// The owner removed somebody.
        MemberRemoved {
            /// Whom.
            user_id: String,
            /// Under which name.
            user_name: Option<String>,
            /// The owner.
            by_user_id: String,
        },
        /// How to find one's way; Markdown.
        Tour,
        /// Something that this program does not know.
        #[serde(other)]
        Other,
    }

    /// The answers to a message, wherever they stand.
    pub struct Answers {
        /// How many, deleted ones among them. Counted up to 1000.
        pub count: i64,
        /// The newest of them.
        pub last_seq: i64,
        /// How many of others are new: in a thread that the caller has opened by itself those after
        /// `read_seq`, else those after the seq that was asked about. Counted up to 100.
        pub unread: i64,
        /// How far the caller has read this thread, where they have opened it by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub read_seq: Option<i64>,
    }

    /// A message.
    pub struct Message {
        /// Its place in the room: no gaps, no doubles.
        pub seq: i64,
        /// Who wrote it.
        pub sender_user_id: String,
        /// The name they had when they wrote it.
        pub sender_user_name: Option<String>,
        /// How it came into the room.
        pub via: Via,
        /// What sort of message it is.
        pub r#type: MessageType,
        /// The text; empty once deleted.
        pub content: String,
        /// The message it answers.
        pub reply_to_seq: Option<i64>,
        /// How deep it stands in a chain of agents' answers.
        pub reply_chain_depth: i64,
        /// The version of the room's rules now.
        pub rules_version: i64,
        /// In unix seconds.
        pub created_at: i64,
        /// Whether its sender took it back.
        pub deleted: bool,
        /// When it was last edited, in unix seconds.
        pub edited_at: Option<i64>,
        /// Emoji, and how often each was given.
        pub reactions: BTreeMap<String, ReactionCount>,
        /// Whether it mentions the caller, where the caller is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mentions_me: Option<bool>,
        /// The text rendered and safe to show in a page, for those who ask with `render=html`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub content_html: Option<String>,
        /// What a system message tells of, where it is one that programs may want to know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub event: Option<Notice>,
        /// What it cost, where its agent said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub usage: Option<Usage>,
        /// Its answers, where it has any, for those who ask with `answers`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub answers: Option<Answers>,
    }

    /// `GET /rooms/{id}/messages`.
    pub struct Messages {
        /// The room.
        pub room_id: RoomId,
        /// Oldest first.
        pub messages: Vec<Message>,
        /// The newest message's `seq` in the room, whether it is on this page or not.
        pub latest_seq: i64,
    }

    /// `GET /rooms/{id}/messages/{seq}/thread`.
    pub struct Thread {
        /// From the root to the message asked for.
        pub thread: Vec<Message>,
        /// How far the caller has read this thread, where they have opened it by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub read_seq: Option<i64>,
    }

    /// `PATCH /rooms/{id}/messages/{seq}`.
    pub struct EditMessage {
        /// The whole new text.
        pub content: String,
    }

    /// The message was edited.
    pub struct MessageEdited {
        /// Always true.
        pub ok: bool,
        /// The message as it is now.
        pub message: Message,
    }

    /// The message was deleted.
    pub struct MessageDeleted {
        /// Always true.
        pub ok: bool,
        /// Which one; its place stays taken.
        pub seq: i64,
        /// Always true.
        pub deleted: bool,
    }

    /// `POST …/reactions`.
    pub struct React {
        /// One emoji.
        pub emoji: String,
    }

    /// The reaction stands.
    pub struct ReactionAdded {
        /// Always true.
        pub ok: bool,
        /// Whether it is new.
        pub added: bool,
    }

    /// The reaction is gone.
    pub struct ReactionRemoved {
        /// Always true.
        pub ok: bool,
        /// Whether it was there.
        pub removed: bool,
    }
}
