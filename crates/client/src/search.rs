//! Searching what was said.

use crate::{Client, Result, RoomId};
use protocol::SearchResults;

/// What to search for.
#[derive(Debug, Clone, Default)]
pub struct SearchQuery {
    /// Words, `"phrases"`, and `from:`, `in:`, `has:`, `is:`, `before:`, `after:`.
    pub text: String,
    /// What a page before gave as `next_cursor`.
    pub cursor: Option<String>,
    /// At most so many; 20 where absent, 50 at most.
    pub limit: Option<u32>,
}

impl Client {
    /// Searches all rooms of the caller.
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchResults> {
        self.find(&["search"], query).await
    }

    /// Searches one room.
    pub async fn search_room(&self, room: &RoomId, query: &SearchQuery) -> Result<SearchResults> {
        self.find(&["rooms", room.as_str(), "search"], query).await
    }

    async fn find(&self, path: &[&str], query: &SearchQuery) -> Result<SearchResults> {
        self.get(path)
            .query("q", Some(query.text.as_str()))
            .query("cursor", query.cursor.as_deref())
            .query("limit", query.limit)
            .send()
            .await
    }
}
