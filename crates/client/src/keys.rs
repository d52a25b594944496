//! Room keys and the short links to them.

use crate::{Client, ClientError, Result, RoomId, UserId};
use protocol::{CreateRoomKey, KeysRevoked, Ok, RoomKeyCreated, RoomKeys, Scope};
use reqwest::header::LOCATION;

impl Client {
    /// Issues a room key for the caller, `user`.
    pub async fn create_room_key(
        &self,
        room: &RoomId,
        user: &UserId,
        scope: Option<Scope>,
    ) -> Result<RoomKeyCreated> {
        let for_user_id = user.to_string();
        self.post(&["rooms", room.as_str(), "room-keys"])
            .json(&CreateRoomKey { for_user_id, scope })
            .send()
            .await
    }

    /// The caller's active room keys, without the keys.
    pub async fn room_keys(&self, room: &RoomId) -> Result<RoomKeys> {
        self.get(&["rooms", room.as_str(), "room-keys"])
            .send()
            .await
    }

    /// Revokes all of the caller's room keys.
    pub async fn revoke_room_keys(&self, room: &RoomId) -> Result<KeysRevoked> {
        self.delete(&["rooms", room.as_str(), "room-keys"])
            .send()
            .await
    }

    /// Revokes one of the caller's room keys.
    pub async fn revoke_room_key(&self, room: &RoomId, jti: &str) -> Result<Ok> {
        self.delete(&["rooms", room.as_str(), "room-keys", jti])
            .send()
            .await
    }

    /// Where a short link leads. The address carries a room key.
    pub async fn short_link(&self, code: &str) -> Result<String> {
        let reply = self.get(&["k", code]).open().await?;
        let target = reply
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok());
        target
            .map(str::to_owned)
            .ok_or_else(|| ClientError::Protocol("the short link leads nowhere".into()))
    }

    /// Revokes a short link. The key behind it stays valid.
    pub async fn revoke_short_link(&self, code: &str) -> Result<Ok> {
        self.delete(&["share-keys", code]).send().await
    }
}
