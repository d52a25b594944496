//! Writing to a room's log inside a transaction.

use super::{
    Admission,
    commit::PendingCommit,
    message::{self, Draft, ImportedDraft},
};
use crate::{
    clock::Now,
    config::Limits,
    error::Result,
    events::Commit,
    store::{
        Tx,
        group::NewMessage,
        messages::MessageRow,
        posting::{Addressed, AddressedBy, json},
        rooms::RoomRow,
    },
};
use protocol::{EventKind, Notice, UserId};
use serde::Serialize;

/// What a transaction adds to a room's log. The room must be locked in that transaction.
pub struct RoomLog {
    room: RoomRow,
    commit: PendingCommit,
    /// Whether words were admitted, which the room's account of exchanges knows of.
    admitted: bool,
    posted: usize,
}

impl RoomLog {
    pub fn new(room: RoomRow) -> Self {
        Self {
            commit: PendingCommit::new(&room),
            room,
            admitted: false,
            posted: 0,
        }
    }

    /// Adds a message that was admitted, whom it addresses, and what the room is told of it. Gives
    /// its seq.
    pub async fn post(
        &mut self,
        tx: &mut Tx,
        admission: Admission,
        draft: Draft<'_>,
        limits: &Limits,
        now: Now,
    ) -> Result<i64> {
        let entered = message::enter(&mut self.room, admission, draft, limits, now);
        self.admitted = true;
        self.posted += 1 + usize::from(entered.notice.is_some());
        let seq = entered.message.seq;
        tx.insert_message(&entered.message).await?;
        self.note_mentions(tx, seq, entered.mentions, entered.addressed())
            .await?;
        self.commit.message(entered.message, None);
        if let Some(notice) = entered.notice {
            self.message(tx, notice, None).await?;
        }
        Ok(seq)
    }

    /// Adds an edit that was admitted, as it is stored, whom it mentions now, and what the room is told
    /// of it. The log keeps which message it is about and not its text, so that a text that is deleted
    /// later cannot be read from the log.
    pub async fn edit(
        &mut self,
        tx: &mut Tx,
        admission: Admission,
        edited: MessageRow,
        mentions: &[UserId],
        limits: &Limits,
        now: Now,
    ) -> Result<()> {
        let sender = edited.sender_user_id.clone();
        let notice = admission.enter(&mut self.room, &sender, limits, now);
        self.admitted = true;
        let by = AddressedBy {
            seq: edited.seq,
            depth: edited.reply_chain_depth,
            at: now.seconds(),
        };
        // Whoever edits has not answered anything with that.
        let others = mentions.iter().filter(|user| **user != sender);
        let addressed = others.map(|user| (user, Some(by)));
        self.note_mentions(tx, edited.seq, mentions, addressed)
            .await?;
        let (at, kind) = (self.room.next_sub(), EventKind::MessageEdited);
        let about = Some(edited.seq);
        tx.insert_event(&self.room.room_id, at, kind, about, "")
            .await?;
        self.commit.edit(at, edited);
        if let Some(words) = notice {
            self.system_message(tx, words, now).await?;
        }
        Ok(())
    }

    async fn note_mentions<'a>(
        &self,
        tx: &mut Tx,
        seq: i64,
        mentions: &[UserId],
        addressed: impl Iterator<Item = (&'a UserId, Option<AddressedBy>)>,
    ) -> Result<()> {
        let room = &self.room.room_id;
        let addressed: Vec<_> = addressed
            .map(|(user, by)| Addressed { room, user, by })
            .collect();
        let mentions: Vec<_> = mentions.iter().map(|user| (room, user, seq)).collect();
        tx.insert_mentions(&mentions).await?;
        tx.note_addressed(&addressed).await?;
        Ok(())
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
        self.notice_in_words(tx, content, notice, now).await?;
        Ok(())
    }

    /// Adds a tour of the server's own, in Markdown, and gives its seq. It calls nobody.
    pub async fn tour(&mut self, tx: &mut Tx, content: String, now: Now) -> Result<i64> {
        self.notice_in_words(tx, content, Notice::Tour, now).await
    }

    async fn notice_in_words(
        &mut self,
        tx: &mut Tx,
        content: String,
        notice: Notice,
        now: Now,
    ) -> Result<i64> {
        let message = message::notice(&mut self.room, content, now);
        let (seq, event) = (message.seq, json(&notice));
        self.message(tx, message, Some(notice)).await?;
        tx.set_message_event(&self.room.room_id, seq, &event)
            .await?;
        Ok(seq)
    }

    /// Adds a message from elsewhere, and gives its seq.
    pub async fn import(&mut self, tx: &mut Tx, draft: ImportedDraft) -> Result<i64> {
        let message = message::imported(&mut self.room, draft);
        let seq = message.seq;
        self.message(tx, message, None).await?;
        Ok(seq)
    }

    async fn message(
        &mut self,
        tx: &mut Tx,
        message: NewMessage,
        notice: Option<Notice>,
    ) -> Result<()> {
        tx.insert_message(&message).await?;
        self.commit.message(message, notice);
        Ok(())
    }

    /// Adds an event that has no seq of its own.
    pub async fn event(
        &mut self,
        tx: &mut Tx,
        kind: EventKind,
        data: &impl Serialize,
    ) -> Result<()> {
        let text = json(data);
        let at = self.room.next_sub();
        tx.insert_event(&self.room.room_id, at, kind, None, &text)
            .await?;
        self.commit.event(at, kind, &text);
        Ok(())
    }

    /// The rules have a new version, which messages tell from now on.
    pub fn set_rules_version(&mut self, version: i64) {
        self.room.rules_version = version;
        self.commit.set_rules_version(version);
    }

    /// The room as it is so far.
    pub fn room(&self) -> &RoomRow {
        &self.room
    }

    /// Messages that members posted, and what the room was told of them.
    pub fn posted(&self) -> usize {
        self.posted
    }

    /// Whether anything was added.
    pub fn has_grown(&self) -> bool {
        !self.commit.is_empty()
    }

    /// Moves the room on, and gives what to publish once the transaction is committed.
    pub async fn finish(self, tx: &mut Tx) -> Result<Commit> {
        tx.set_head(&self.room.room_id, self.room.head()).await?;
        if self.admitted {
            tx.save_exchanges(&self.room).await?;
        }
        Ok(self.commit.finish())
    }
}
