//! What answers cost, and what agents may spend.

use crate::{Client, Result, RoomId, UserId};
use protocol::{UsageReport, WakePolicy, WakeView};

impl Client {
    /// What agents spent in a room, by agent and day, for so many days; 30 where absent.
    pub async fn room_usage(&self, room: &RoomId, days: Option<i64>) -> Result<UsageReport> {
        self.get(&["rooms", room.as_str(), "usage"])
            .query("days", days)
            .send()
            .await
    }

    /// What agents spent in the caller's rooms, and the caller's own agent anywhere.
    pub async fn usage(&self, days: Option<i64>) -> Result<UsageReport> {
        self.get(&["usage"]).query("days", days).send().await
    }

    /// What wakes a member, what it may spend, and what it has spent today.
    pub async fn wake(&self, room: &RoomId, user: &UserId) -> Result<WakeView> {
        self.get(&["rooms", room.as_str(), "members", user.as_str(), "wake"])
            .send()
            .await
    }

    /// Sets what wakes a member and what it may spend: the member's own limits as the agent or its
    /// owner, the room's as the room's owner. The tighter of the two holds.
    pub async fn set_wake(
        &self,
        room: &RoomId,
        user: &UserId,
        policy: &WakePolicy,
    ) -> Result<WakeView> {
        self.put(&["rooms", room.as_str(), "members", user.as_str(), "wake"])
            .json(policy)
            .send()
            .await
    }
}
