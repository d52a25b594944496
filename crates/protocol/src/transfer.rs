//! Rooms on their way out of a server and into one. An export in JSONL is one [`ExportLine`] a line: the
//! room, its messages in order, and the end.

use crate::{Message, RoomId, UserId, Visibility, room::wire, words};
use serde::{Deserialize, Serialize};

/// The name of the form, in the first line.
pub const EXPORT_FORMAT: &str = "starchild-room";
/// Its version.
pub const EXPORT_VERSION: i64 = 1;
/// The most bytes of UTF-8 of a message that is imported.
pub const MAX_IMPORTED_BYTES: usize = 64 * 1024;
/// The most messages that are imported at once.
pub const MAX_IMPORTED_MESSAGES: usize = 500;

words! {
    /// As what a room is exported.
    ExportFormat {
        /// A line for each message, for programs.
        Jsonl = "jsonl",
        /// A text to read.
        Markdown = "markdown",
    }
}

wire! {
    /// A line of an export.
    #[serde(rename_all = "snake_case")]
    pub enum ExportLine {
        /// The first line.
        Room(Box<ExportedRoom>),
        /// A message.
        Message(Box<Message>),
        /// The last line. Where it is missing, the export broke off.
        End(ExportEnd),
    }

    /// The room, as the first line tells of it.
    pub struct ExportedRoom {
        /// `starchild-room`.
        pub format: String,
        /// The form's version.
        pub version: i64,
        /// The room's id where it was exported.
        pub room_id: RoomId,
        /// Its name.
        pub name: String,
        /// What it is about.
        #[serde(default)]
        pub topic: String,
        /// Who might read it.
        pub visibility: Visibility,
        /// In unix seconds.
        pub created_at: i64,
        /// In unix seconds.
        pub exported_at: i64,
        /// The rules; for members alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rules: Option<String>,
        /// The reference text; for members alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub data: Option<String>,
    }

    /// How an export ends.
    pub struct ExportEnd {
        /// How many messages came before.
        pub messages: i64,
    }

    /// `POST /internal/admin/imports`.
    pub struct BeginImport {
        /// The new room's name.
        pub name: String,
        /// Its owner, who is its only member.
        pub owner_user_id: UserId,
    }

    /// A room that is being filled. It is archived until the last messages have come.
    pub struct ImportBegun {
        /// The new room.
        pub room_id: RoomId,
    }

    /// `POST /internal/admin/imports/{id}`: the next messages, in order.
    pub struct ImportMessages {
        /// The seq of the last message that the room has, which the first of these follows.
        pub after_seq: i64,
        /// At most 500.
        pub messages: Vec<ImportedMessage>,
        /// Whether these are the last: the room is opened.
        #[serde(default)]
        pub done: bool,
        /// What the room is about, with the last ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub topic: Option<String>,
    }

    /// A message that was written elsewhere.
    pub struct ImportedMessage {
        /// The id that its author had there.
        pub author_id: String,
        /// The author's name there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub author_name: Option<String>,
        /// The text; empty where it was deleted.
        pub content: String,
        /// When it was written, in unix seconds.
        pub created_at: i64,
        /// When it was last edited, in unix seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub edited_at: Option<i64>,
        /// The message that it answers, by its seq in the new room.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reply_to_seq: Option<i64>,
        /// Whether its author took it back.
        #[serde(default)]
        pub deleted: bool,
    }

    /// How far an import has come.
    pub struct Imported {
        /// The seq of the last message that the room has.
        pub latest_seq: i64,
    }
}
