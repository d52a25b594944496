//! How far the caller has read, and what waits for them.

use crate::{Client, Result, RoomId};
use protocol::{Inbox, MarkRead, MarkThreadRead, ReadPosition, ThreadPosition};

impl Client {
    /// The caller's rooms with what is unread, and the newest mentions, or those before `cursor`.
    pub async fn inbox(&self, cursor: Option<&str>, limit: Option<u32>) -> Result<Inbox> {
        self.get(&["inbox"])
            .query("cursor", cursor)
            .query("limit", limit)
            .send()
            .await
    }

    /// The caller has read the room up to this message. Never goes back.
    pub async fn mark_read(&self, room: &RoomId, seq: i64) -> Result<ReadPosition> {
        self.put(&["rooms", room.as_str(), "read"])
            .json(&MarkRead { seq })
            .send()
            .await
    }

    /// The caller has read the thread of a message up to this one. Never goes back.
    pub async fn mark_thread_read(
        &self,
        room: &RoomId,
        message: i64,
        seq: i64,
    ) -> Result<ThreadPosition> {
        let message = message.to_string();
        self.put(&[
            "rooms",
            room.as_str(),
            "messages",
            &message,
            "thread",
            "read",
        ])
        .json(&MarkThreadRead { seq })
        .send()
        .await
    }
}
