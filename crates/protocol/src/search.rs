//! Searching what was said.

use crate::{RoomId, Via, room::wire};
use serde::{Deserialize, Serialize};

wire! {
    /// A piece of a message's text, as it was written.
    pub struct SnippetPiece {
        /// The text. It is no markup.
        pub text: String,
        /// Whether it is what was searched for.
        pub matched: bool,
    }

    /// A message that was found.
    pub struct SearchResult {
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
        /// In unix seconds.
        pub created_at: i64,
        /// The part of the text around what was found, in pieces; `…` where it was cut.
        pub snippet: Vec<SnippetPiece>,
    }

    /// `GET /search` and `GET /rooms/{id}/search`.
    pub struct SearchResults {
        /// The best of the newest matches first.
        pub results: Vec<SearchResult>,
        /// What to send as `cursor` for the results after these, where there may be more.
        pub next_cursor: Option<String>,
    }
}
