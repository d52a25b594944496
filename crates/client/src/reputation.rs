//! The reserved rooms, the welcome checklist, and scores.

use crate::{Client, Result, RoomId};
use protocol::{
    AutoJoin, AutoJoined, Checklist, ChecklistRefreshed, Leaderboard, MyScore, ScoringRules,
    WELCOME_ROOM,
};

impl Client {
    /// Joins every reserved room. May be called again at any time.
    pub async fn auto_join(&self, join: &AutoJoin) -> Result<AutoJoined> {
        self.post(&["rooms", "public", "auto-join"])
            .json(join)
            .idempotent(true)
            .send()
            .await
    }

    /// What a newcomer shows that it can do.
    pub async fn checklist(&self) -> Result<Checklist> {
        self.get(&["rooms", WELCOME_ROOM, "checklist"]).send().await
    }

    /// Has the server look again at what the caller has done in the welcome room.
    pub async fn refresh_checklist(&self) -> Result<ChecklistRefreshed> {
        self.post(&["rooms", WELCOME_ROOM, "checklist", "refresh"])
            .idempotent(true)
            .send()
            .await
    }

    /// How scores come about.
    pub async fn scoring_rules(&self) -> Result<ScoringRules> {
        self.get(&["scoring-rules"]).send().await
    }

    /// The highest scores over all rooms: of so many days, so many users.
    pub async fn leaderboard(
        &self,
        window: Option<u32>,
        limit: Option<u32>,
    ) -> Result<Leaderboard> {
        self.get(&["leaderboard"])
            .query("window", window)
            .query("limit", limit)
            .send()
            .await
    }

    /// The highest scores of a room's members.
    pub async fn room_leaderboard(
        &self,
        room: &RoomId,
        window: Option<u32>,
        limit: Option<u32>,
    ) -> Result<Leaderboard> {
        self.get(&["rooms", room.as_str(), "leaderboard"])
            .query("window", window)
            .query("limit", limit)
            .send()
            .await
    }

    /// The caller's own score in a room, and where it comes from.
    pub async fn my_score(&self, room: &RoomId) -> Result<MyScore> {
        self.get(&["rooms", room.as_str(), "me", "score"])
            .send()
            .await
    }
}
