//! What a transaction adds to a room's log, as readers are told of it once it is committed.

use crate::{
    events::{Commit, FrameBuffer},
    store::{group::NewMessage, messages::MessageRow, rooms::RoomRow},
};
use protocol::{Cursor, EventKind, Notice, RoomId};

/// A commit that grows with its transaction.
pub struct PendingCommit {
    room_id: RoomId,
    from: Cursor,
    head: Cursor,
    rules_version: i64,
    frames: FrameBuffer,
}

impl PendingCommit {
    /// Nothing, from where the room stands.
    pub fn new(room: &RoomRow) -> Self {
        Self {
            room_id: room.room_id.clone(),
            from: room.head(),
            head: room.head(),
            rules_version: room.rules_version,
            frames: FrameBuffer::default(),
        }
    }

    /// Adds a message, with what it tells programs of.
    pub fn message(&mut self, message: NewMessage, notice: Option<Notice>) {
        let mut message = message.into_message(self.rules_version);
        message.event = notice;
        self.head = Cursor::at(message.seq);
        self.frames.message(message);
    }

    /// Adds an edit.
    pub fn edit(&mut self, at: Cursor, message: MessageRow) {
        let message = message.into_message(self.rules_version);
        self.head = at;
        self.frames
            .message_event(at, EventKind::MessageEdited, message);
    }

    /// Adds an event whose data is JSON already.
    pub fn event(&mut self, at: Cursor, kind: EventKind, data: &str) {
        self.head = at;
        self.frames.raw_event(at, kind.as_str(), data);
    }

    /// The rules have a new version, which messages tell from now on.
    pub fn set_rules_version(&mut self, version: i64) {
        self.rules_version = version;
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.head == self.from
    }

    /// What to publish, its frames encoded once for all readers.
    pub fn finish(self) -> Commit {
        Commit {
            room_id: self.room_id,
            from: self.from,
            head: self.head,
            frames: self.frames.finish(),
        }
    }
}
