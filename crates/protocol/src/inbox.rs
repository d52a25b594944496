//! How far somebody has read, and what waits for them.

use crate::{MessageType, Role, RoomId, Via, Visibility, room::wire};
use serde::{Deserialize, Serialize};

wire! {
    /// `PUT /rooms/{id}/read`.
    pub struct MarkRead {
        /// The newest message that was read. Beyond the room's newest one, it stands for that.
        pub seq: i64,
    }

    /// How far a member has read a room. Also the data of the `read` event.
    pub struct ReadPosition {
        /// The room.
        pub room_id: RoomId,
        /// The newest message that was read; it never goes back.
        pub read_seq: i64,
        /// The room's newest message.
        pub last_seq: i64,
    }

    /// `PUT /rooms/{id}/messages/{seq}/thread/read`.
    pub struct MarkThreadRead {
        /// The newest message of the thread that was read. Beyond the room's newest one, it stands for that.
        pub seq: i64,
    }

    /// How far a member has read a thread. Also the data of the `thread_read` event.
    pub struct ThreadPosition {
        /// The room.
        pub room_id: RoomId,
        /// The message that the thread began with.
        pub root_seq: i64,
        /// The newest message that was read; it never goes back.
        pub read_seq: i64,
    }

    /// The data of the `inbox` event.
    pub struct InboxMoved {
        /// Rooms of the reader's in which something happened: `GET /inbox` tells what waits there.
        pub room_ids: Vec<RoomId>,
    }

    /// The beginning of a room's newest message.
    pub struct LastMessage {
        /// Its place in the room.
        pub seq: i64,
        /// Who wrote it.
        pub sender_user_id: String,
        /// The name they had when they wrote it.
        pub sender_user_name: Option<String>,
        /// How it came into the room.
        pub via: Via,
        /// What sort of message it is.
        pub r#type: MessageType,
        /// Its first 200 characters; empty once deleted.
        pub preview: String,
        /// In unix seconds.
        pub created_at: i64,
    }

    /// A room in the caller's inbox.
    pub struct InboxRoom {
        /// Its id.
        pub room_id: RoomId,
        /// Its name.
        pub name: String,
        /// Who may read it.
        pub visibility: Visibility,
        /// Whether it is read-only.
        pub archived: bool,
        /// The caller's role in it.
        pub role: Role,
        /// When something was last said in it, or it was made, in unix seconds.
        pub active_at: i64,
        /// The room's newest message.
        pub last_seq: i64,
        /// The newest message that the caller has read.
        pub read_seq: i64,
        /// What others have said since; 100 stands for that many or more.
        pub unread: i64,
        /// How often the caller was mentioned since; 100 stands for that many or more.
        pub mentions: i64,
        /// The newest message, where there is one.
        pub last_message: Option<LastMessage>,
    }

    /// A message that mentions the caller.
    pub struct InboxMention {
        /// The room.
        pub room_id: RoomId,
        /// Its name.
        pub room_name: String,
        /// The message.
        pub seq: i64,
        /// Who wrote it.
        pub sender_user_id: String,
        /// The name they had when they wrote it.
        pub sender_user_name: Option<String>,
        /// How it came into the room.
        pub via: Via,
        /// Its first 200 characters.
        pub preview: String,
        /// In unix seconds.
        pub created_at: i64,
        /// Whether the caller has not read so far yet.
        pub unread: bool,
    }

    /// `GET /inbox`.
    pub struct Inbox {
        /// The caller's rooms, those where something was said last first; 500 at most.
        pub rooms: Vec<InboxRoom>,
        /// What mentions the caller, newest first, over all rooms.
        pub mentions: Vec<InboxMention>,
        /// What to send as `cursor` for the mentions before these, where there may be more.
        pub next_cursor: Option<String>,
    }
}
