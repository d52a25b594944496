//! Writing to a room's log inside a transaction.

use super::message;
use crate::{
    clock::Now,
    error::Result,
    events::{Commit, FrameBuffer},
    store::{Tx, group::NewMessage, messages::MessageRow, rooms::RoomRow},
};
use protocol::{Cursor, EventKind, Notice};
use serde::Serialize;

/// What a transaction adds to a room's log. The room must be locked in that transaction.
pub struct RoomLog {
    room: RoomRow,
    from: Cursor,
    frames: FrameBuffer,
}

impl RoomLog {
    pub fn new(room: RoomRow) -> Self {
        Self {
            from: room.head(),
            room,
            frames: FrameBuffer::default(),
        }
    }

    /// Adds a notice of the server's own. It calls nobody.
    pub async fn system_message(&mut self, tx: &mut Tx, content: String, now: Now) -> Result<()> {
        let message = message::notice(&mut self.room, content, now);
        self.message(tx, message, None).await
    }

    /// Adds a message of the server's own that agents are called for.
    pub async fn system_call(&mut self, tx: &mut Tx, content: String, now: Now) -> Result<()> {
        let message = message::system_call(&mut self.room, content, now);
        self.message(tx, message, None).await
    }

    /// Adds a notice that tells of a member, in words and for programs. It calls nobody.
    pub async fn notice(&mut self, tx: &mut Tx, notice: Notice, now: Now) -> Result<()> {
        let content = match &notice {
            Notice::MemberJoined { user_id, .. } => format!("{user_id} joined the room"),
            Notice::MemberLeft { user_id, .. } => format!("{user_id} left the room"),
            Notice::MemberRemoved {
                user_id,
                by_user_id,
                ..
            } => format!("{user_id} was removed by {by_user_id}"),
            Notice::Tour | Notice::Other => return Ok(()),
        };
        self.told(tx, content, notice, now).await?;
        Ok(())
    }

    /// Adds a tour of the server's own, in Markdown, and gives its seq. It calls nobody.
    pub async fn tour(&mut self, tx: &mut Tx, content: String, now: Now) -> Result<i64> {
        self.told(tx, content, Notice::Tour, now).await
    }

    async fn told(
        &mut self,
        tx: &mut Tx,
        content: String,
        notice: Notice,
        now: Now,
    ) -> Result<i64> {
        let message = message::notice(&mut self.room, content, now);
        let (seq, event) = (message.seq, crate::store::posting::json(&notice));
        self.message(tx, message, Some(notice)).await?;
        tx.set_message_event(&self.room.room_id, seq, &event)
            .await?;
        Ok(seq)
    }

    /// Adds what a member said, and gives its seq.
    pub async fn chat(&mut self, tx: &mut Tx, said: message::Said, now: Now) -> Result<i64> {
        let message = message::chat(&mut self.room, said, now);
        let seq = message.seq;
        self.message(tx, message, None).await?;
        Ok(seq)
    }

    /// Adds a message as it was built.
    pub async fn add(&mut self, tx: &mut Tx, message: NewMessage) -> Result<()> {
        self.message(tx, message, None).await
    }

    async fn message(
        &mut self,
        tx: &mut Tx,
        message: NewMessage,
        event: Option<Notice>,
    ) -> Result<()> {
        tx.insert_message(&message).await?;
        let mut message = message.into_message(self.room.rules_version);
        message.event = event;
        self.frames.message(message);
        Ok(())
    }

    /// Adds an event that has no seq of its own.
    pub async fn event(
        &mut self,
        tx: &mut Tx,
        kind: EventKind,
        data: &impl Serialize,
    ) -> Result<()> {
        let text = crate::store::posting::json(data);
        let at = self.room.next_sub();
        tx.insert_event(&self.room.room_id, at, kind, None, &text)
            .await?;
        self.frames.raw_event(at, kind.as_str(), &text);
        Ok(())
    }

    /// Adds an edit. The log keeps which message it is about and not its text, so that a text
    /// that is deleted later cannot be read from the log.
    pub async fn edited(&mut self, tx: &mut Tx, message: MessageRow) -> Result<()> {
        let (at, kind) = (self.room.next_sub(), EventKind::MessageEdited);
        let about = Some(message.seq);
        tx.insert_event(&self.room.room_id, at, kind, about, "")
            .await?;
        let message = message.into_message(self.room.rules_version);
        self.frames.message_event(at, kind, message);
        Ok(())
    }

    /// The rules have a new version, which messages tell from now on.
    pub fn set_rules_version(&mut self, version: i64) {
        self.room.rules_version = version;
    }

    /// The room as it is so far.
    pub fn room(&self) -> &RoomRow {
        &self.room
    }

    /// The room as it is to be.
    pub fn room_mut(&mut self) -> &mut RoomRow {
        &mut self.room
    }

    /// Whether anything was added.
    pub fn has_grown(&self) -> bool {
        self.room.head() != self.from
    }

    /// Moves the room on, and gives what to publish once the transaction is committed.
    pub async fn finish(self, tx: &mut Tx) -> Result<Commit> {
        let head = self.room.head();
        tx.set_head(&self.room.room_id, head).await?;
        Ok(Commit {
            room_id: self.room.room_id,
            from: self.from,
            head,
            frames: self.frames.finish(),
        })
    }
}
