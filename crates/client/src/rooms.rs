//! Rooms, their rules, their data and their audit log.

use crate::{Client, Result, RoomId};
use protocol::{
    AuditLog, CreateRoom, MyRooms, Ok, PublicRooms, PublicSummary, Room, RoomCreated, RoomState,
    RoomText, UpdateRoom, UpdateText, Visibility,
};

impl Client {
    /// Creates a room that the caller owns.
    pub async fn create_room(
        &self,
        name: &str,
        visibility: Option<Visibility>,
    ) -> Result<RoomCreated> {
        let name = name.to_owned();
        self.post(&["rooms"])
            .json(&CreateRoom { name, visibility })
            .send()
            .await
    }

    /// The rooms the caller belongs to.
    pub async fn rooms(&self) -> Result<MyRooms> {
        self.get(&["rooms"]).send().await
    }

    /// The public rooms, a page at a time.
    pub async fn public_rooms(
        &self,
        limit: Option<u32>,
        offset: Option<u32>,
    ) -> Result<PublicRooms> {
        self.get(&["rooms", "public"])
            .query("limit", limit)
            .query("offset", offset)
            .send()
            .await
    }

    /// What a visitor may see of a public room.
    pub async fn public_summary(&self, room: &RoomId) -> Result<PublicSummary> {
        self.get(&["rooms", room.as_str(), "public-summary"])
            .send()
            .await
    }

    /// A room's metadata.
    pub async fn room(&self, room: &RoomId) -> Result<Room> {
        self.get(&["rooms", room.as_str()]).send().await
    }

    /// Changes a room; what is absent stays. Owner only.
    pub async fn update_room(&self, room: &RoomId, change: &UpdateRoom) -> Result<Ok> {
        self.patch(&["rooms", room.as_str()])
            .json(change)
            .send()
            .await
    }

    /// The room's rules.
    pub async fn rules(&self, room: &RoomId) -> Result<RoomText> {
        self.get(&["rooms", room.as_str(), "rules"]).send().await
    }

    /// Replaces the room's rules. Owner only.
    pub async fn set_rules(&self, room: &RoomId, content: &str) -> Result<RoomText> {
        self.set_text(room, "rules", content).await
    }

    /// The owner's reference text for the room.
    pub async fn data(&self, room: &RoomId) -> Result<RoomText> {
        self.get(&["rooms", room.as_str(), "data"]).send().await
    }

    /// Replaces the owner's reference text for the room. Owner only.
    pub async fn set_data(&self, room: &RoomId, content: &str) -> Result<RoomText> {
        self.set_text(room, "data", content).await
    }

    async fn set_text(&self, room: &RoomId, which: &str, content: &str) -> Result<RoomText> {
        let content = content.to_owned();
        self.patch(&["rooms", room.as_str(), which])
            .json(&UpdateText { content })
            .send()
            .await
    }

    /// One look at a room: its members and its newest messages.
    pub async fn state(&self, room: &RoomId, recent: Option<u32>) -> Result<RoomState> {
        self.get(&["rooms", room.as_str(), "state"])
            .query("recent", recent)
            .send()
            .await
    }

    /// The room's audit log after the line `since`. Owner only.
    pub async fn audit(
        &self,
        room: &RoomId,
        since: Option<i64>,
        limit: Option<u32>,
    ) -> Result<AuditLog> {
        self.get(&["rooms", room.as_str(), "audit"])
            .query("since", since)
            .query("limit", limit)
            .send()
            .await
    }
}
