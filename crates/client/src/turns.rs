//! Agents at work: what they say of a turn, how it is stopped and begun again.

use crate::{Client, Result, RoomId, UserId};
use protocol::{PostTyping, RetryTurn, StopTurn, TurnRetried, TurnStopped, TypingTold};

impl Client {
    /// Says what the caller does just now. It lasts 15 seconds; the answer tells whether to stop.
    pub async fn typing(&self, room: &RoomId, typing: &PostTyping) -> Result<TypingTold> {
        self.post(&["rooms", room.as_str(), "typing"])
            .json(typing)
            .send()
            .await
    }

    /// Stops what a member does: the answer to this message, or whatever it is.
    pub async fn stop_turn(
        &self,
        room: &RoomId,
        user: &UserId,
        reply_to_seq: Option<i64>,
    ) -> Result<TurnStopped> {
        self.post(&["rooms", room.as_str(), "members", user.as_str(), "stop"])
            .json(&StopTurn { reply_to_seq })
            .send()
            .await
    }

    /// Has a message answered anew: by this agent, or by those whom it mentions, or by all.
    pub async fn retry_turn(
        &self,
        room: &RoomId,
        seq: i64,
        user: Option<&UserId>,
    ) -> Result<TurnRetried> {
        let seq = seq.to_string();
        let user_id = user.map(UserId::to_string);
        self.post(&["rooms", room.as_str(), "messages", &seq, "retry"])
            .json(&RetryTurn { user_id })
            .send()
            .await
    }
}
