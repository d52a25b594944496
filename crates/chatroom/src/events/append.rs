//! Writing to a room's log inside a transaction.

use super::{frame, hub::Commit};
use crate::{
    clock::Now,
    error::Result,
    services::wire,
    store::{Tx, group::NewMessage, members::MemberRow, messages::MessageRow, rooms::RoomRow},
};
use bytes::BytesMut;
use protocol::{Cursor, EventKind, MessageType, Notice, SYSTEM_USER, Via};
use serde::Serialize;

/// What a transaction adds to a room's log. The room must be locked in that transaction.
pub struct Appender {
    room: RoomRow,
    from: Cursor,
    head: Cursor,
    frames: BytesMut,
}

impl Appender {
    pub fn new(room: RoomRow) -> Self {
        let head = room.head();
        Self {
            room,
            from: head,
            head,
            frames: BytesMut::new(),
        }
    }

    /// Adds a notice of the server's own. It calls nobody.
    pub async fn system_message(&mut self, tx: &mut Tx, content: String, now: Now) -> Result<()> {
        let message = self.of_system(content, false, now);
        self.message(tx, message, None).await?;
        Ok(())
    }

    /// Adds a message of the server's own that agents are called for.
    pub async fn system_call(&mut self, tx: &mut Tx, content: String, now: Now) -> Result<()> {
        let message = self.of_system(content, true, now);
        self.message(tx, message, None).await?;
        Ok(())
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
            Notice::Other => return Ok(()),
        };
        let message = self.of_system(content, false, now);
        let event = crate::store::posting::json(&notice);
        let seq = self.message(tx, message, Some(notice)).await?;
        tx.set_message_event(&self.room.room_id, seq, &event)
            .await?;
        Ok(())
    }

    fn of_system(&self, content: String, calls_agents: bool, now: Now) -> NewMessage {
        NewMessage {
            room_id: self.room.room_id.clone(),
            seq: self.head.seq + 1,
            sender_user_id: SYSTEM_USER.to_owned(),
            sender_user_name: None,
            via: Via::System.as_str(),
            r#type: MessageType::System.as_str(),
            content,
            reply_to_seq: None,
            reply_chain_depth: 0,
            created_at: now.seconds(),
            client_key: None,
            calls_agents,
        }
    }

    /// Adds what a member's agent answered to a message, and gives its seq.
    pub async fn reply(
        &mut self,
        tx: &mut Tx,
        member: &MemberRow,
        content: String,
        reply_to_seq: i64,
        depth: i64,
        now: Now,
    ) -> Result<i64> {
        let message = NewMessage {
            room_id: self.room.room_id.clone(),
            seq: self.head.seq + 1,
            sender_user_id: member.user_id.clone(),
            sender_user_name: member.user_name.clone(),
            via: Via::Agent.as_str(),
            r#type: MessageType::Chat.as_str(),
            content,
            reply_to_seq: Some(reply_to_seq),
            reply_chain_depth: depth,
            created_at: now.seconds(),
            client_key: None,
            calls_agents: true,
        };
        self.message(tx, message, None).await
    }

    async fn message(
        &mut self,
        tx: &mut Tx,
        message: NewMessage,
        event: Option<Notice>,
    ) -> Result<i64> {
        tx.insert_message(&message).await?;
        let seq = message.seq;
        self.head = Cursor::at(seq);
        let mut message = wire::new_message(message, self.room.rules_version);
        message.event = event;
        frame::message_frame(&mut self.frames, &message);
        Ok(seq)
    }

    /// Adds an event that has no seq of its own.
    pub async fn event(
        &mut self,
        tx: &mut Tx,
        kind: EventKind,
        data: &impl Serialize,
    ) -> Result<()> {
        let text = crate::store::posting::json(data);
        self.head.sub += 1;
        tx.insert_event(&self.room.room_id, self.head, kind.as_str(), None, &text)
            .await?;
        frame::raw_event(&mut self.frames, self.head, kind.as_str(), &text);
        Ok(())
    }

    /// Adds an edit. The log keeps which message it is about and not its text, so that a text
    /// that is deleted later cannot be read from the log.
    pub async fn edited(&mut self, tx: &mut Tx, message: MessageRow) -> Result<()> {
        self.head.sub += 1;
        let kind = EventKind::MessageEdited;
        tx.insert_event(
            &self.room.room_id,
            self.head,
            kind.as_str(),
            Some(message.seq),
            "",
        )
        .await?;
        frame::event(
            &mut self.frames,
            self.head,
            kind,
            &wire::message(message, self.room.rules_version),
        );
        Ok(())
    }

    /// The rules have a new version, which messages tell from now on.
    pub fn set_rules_version(&mut self, version: i64) {
        self.room.rules_version = version;
    }

    /// The room as it was before.
    pub fn room(&self) -> &RoomRow {
        &self.room
    }

    /// The room as it is to be.
    pub fn room_mut(&mut self) -> &mut RoomRow {
        &mut self.room
    }

    /// Whether anything was added.
    pub fn has_grown(&self) -> bool {
        self.head != self.from
    }

    /// Moves the room on, and gives what to publish once the transaction is committed.
    pub async fn finish(self, tx: &mut Tx) -> Result<Commit> {
        tx.set_head(&self.room.room_id, self.head).await?;
        Ok(Commit {
            room_id: self.room.room_id,
            from: self.from,
            head: self.head,
            frames: self.frames.freeze(),
        })
    }
}
