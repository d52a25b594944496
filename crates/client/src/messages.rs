//! Messages, threads and reactions.

use crate::{Client, PostMessage, Result, RoomId};
use protocol::{
    EditMessage, MessageDeleted, MessageEdited, Messages, Posted, React, ReactionAdded,
    ReactionRemoved, Thread,
};
use serde::Deserialize;
use serde_json::Value;

/// Which messages to read.
#[derive(Debug, Clone, Default)]
pub struct MessageQuery {
    /// Those after this `seq`, oldest first.
    pub since: Option<i64>,
    /// The newest below this `seq`, oldest first.
    pub before: Option<i64>,
    /// At most so many; 50 where absent, 200 at most.
    pub limit: Option<u32>,
    /// Only those that mention the caller.
    pub mentions_me: bool,
    /// Only those of this sender.
    pub sender_user_id: Option<String>,
}

impl Client {
    /// Posts a message.
    ///
    /// With a key (here, or as the message's `client_msg_id`) the post is tried again when its
    /// answer is lost: the same key always means the same message.
    pub async fn post_message(
        &self,
        room: &RoomId,
        message: &PostMessage,
        idempotency_key: Option<&str>,
    ) -> Result<Posted> {
        self.post(&["rooms", room.as_str(), "messages"])
            .header("idempotency-key", idempotency_key)
            .json(message)
            .idempotent(idempotency_key.is_some() || message.client_msg_id.is_some())
            .send()
            .await
    }

    /// Reads messages. One that cannot be read is left out.
    pub async fn messages(&self, room: &RoomId, query: &MessageQuery) -> Result<Messages> {
        #[derive(Deserialize)]
        struct Page {
            room_id: RoomId,
            messages: Vec<Value>,
            latest_seq: i64,
        }
        let page: Page = self
            .get(&["rooms", room.as_str(), "messages"])
            .query("since", query.since)
            .query("before", query.before)
            .query("limit", query.limit)
            .query("mentions", query.mentions_me.then_some("me"))
            .query("sender_user_id", query.sender_user_id.as_deref())
            .send()
            .await?;
        let readable = |message: Value| {
            let seq = message.get("seq").and_then(Value::as_i64);
            let read = serde_json::from_value(message);
            read.inspect_err(|error| {
                tracing::warn!(%room, seq, %error, "a message cannot be read and is left out");
            })
            .ok()
        };
        Ok(Messages {
            room_id: page.room_id,
            messages: page.messages.into_iter().filter_map(readable).collect(),
            latest_seq: page.latest_seq,
        })
    }

    /// The chain of replies from its root to this message.
    pub async fn thread(&self, room: &RoomId, seq: i64) -> Result<Thread> {
        let seq = seq.to_string();
        self.get(&["rooms", room.as_str(), "messages", &seq, "thread"])
            .send()
            .await
    }

    /// Replaces the text of a message of the caller's own.
    pub async fn edit_message(
        &self,
        room: &RoomId,
        seq: i64,
        content: &str,
    ) -> Result<MessageEdited> {
        let content = content.to_owned();
        self.patch(&["rooms", room.as_str(), "messages", &seq.to_string()])
            .json(&EditMessage { content })
            .send()
            .await
    }

    /// Takes back a message of the caller's own. Its `seq` stays taken.
    pub async fn delete_message(&self, room: &RoomId, seq: i64) -> Result<MessageDeleted> {
        self.delete(&["rooms", room.as_str(), "messages", &seq.to_string()])
            .send()
            .await
    }

    /// Adds a reaction.
    pub async fn react(&self, room: &RoomId, seq: i64, emoji: &str) -> Result<ReactionAdded> {
        let emoji = emoji.to_owned();
        let seq = seq.to_string();
        self.post(&["rooms", room.as_str(), "messages", &seq, "reactions"])
            .json(&React { emoji })
            .send()
            .await
    }

    /// Removes a reaction of the caller's own.
    pub async fn unreact(&self, room: &RoomId, seq: i64, emoji: &str) -> Result<ReactionRemoved> {
        let seq = seq.to_string();
        let room = room.as_str();
        self.delete(&["rooms", room, "messages", &seq, "reactions", emoji])
            .send()
            .await
    }
}
