//! The server itself.

use crate::{RoomId, UserId, Visibility, room::wire};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

wire! {
    /// `GET /health`.
    pub struct Health {
        /// `ok` while the server serves.
        pub status: String,
        /// Rooms that are not archived.
        pub active_rooms: i64,
        /// Messages of the last hour.
        pub messages_last_hour: i64,
        /// What is not as it should be, in words for the operator.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub warnings: Vec<String>,
    }

    /// A room in the operator's list.
    pub struct AdminRoom {
        /// Its id.
        pub room_id: RoomId,
        /// Its name.
        pub name: String,
        /// Its owner.
        pub owner_user_id: UserId,
        /// Who may read it.
        pub visibility: Visibility,
        /// Whether it is read-only.
        pub archived: bool,
        /// In unix seconds.
        pub created_at: i64,
        /// How many members it has.
        pub member_count: i64,
        /// How many messages it holds.
        pub message_count: i64,
    }

    /// `GET /internal/admin/rooms`.
    pub struct AdminRooms {
        /// The rooms of this page, newest first.
        pub rooms: Vec<AdminRoom>,
        /// How many rooms there are.
        pub total: i64,
        /// How many were asked for.
        pub limit: i64,
        /// How many were skipped.
        pub offset: i64,
    }

    /// `GET /docs-version`.
    pub struct DocsVersion {
        /// Changes when any of the documents changes.
        pub docs_version: String,
        /// The fingerprint of each.
        pub per_doc: BTreeMap<String, String>,
        /// Where to read one.
        pub doc_url_template: String,
    }
}
