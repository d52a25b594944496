//! Agents' turns: which were stopped, and which messages agents are called for once more.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
    deliveries::{Held, REPLIES_WINDOW_MS, SKEW_MS},
    members::{UserIdRow, user_ids},
};
use protocol::{RoomId, UserId};

row_struct! {
    /// What somebody said to stop.
    #[derive(Debug)]
    pub struct StopRow {
        pub reply_to_seq: Option<i64>,
        pub by_user_id: UserId,
        pub at: i64,
    }
}

row_struct! {
    /// How far an agent that is called has come.
    #[derive(Debug)]
    pub struct DeliveryRow {
        pub next_seq: i64,
        pub attempt: i64,
        pub answer_anew_seq: Option<i64>,
    }
}

impl Conn {
    /// The newest word to an agent to stop.
    pub async fn stop_of(&mut self, room: &RoomId, user: &UserId) -> DbResult<Option<StopRow>> {
        row!(
            self,
            StopRow,
            "SELECT reply_to_seq, by_user_id, at FROM stops WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )
    }

    pub async fn save_stop(
        &mut self,
        room: &RoomId,
        user: &UserId,
        stop: &StopRow,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO stops (room_id, user_id, reply_to_seq, by_user_id, at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (room_id, user_id) DO UPDATE SET reply_to_seq = excluded.reply_to_seq, \
             by_user_id = excluded.by_user_id, at = excluded.at",
            room,
            user,
            stop.reply_to_seq,
            &stop.by_user_id,
            stop.at
        )?;
        Ok(())
    }

    /// The agent may go on.
    pub async fn forget_stop(&mut self, room: &RoomId, user: &UserId) -> DbResult<()> {
        exec!(
            self,
            "DELETE FROM stops WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(())
    }

    /// Forgets what was said before this time.
    pub async fn forget_stops_before(&mut self, at: i64) -> DbResult<()> {
        exec!(self, "DELETE FROM stops WHERE at < $1", at)?;
        Ok(())
    }

    /// How far an agent that is called has come.
    pub async fn delivery(
        &mut self,
        room: &RoomId,
        user: &UserId,
    ) -> DbResult<Option<DeliveryRow>> {
        row!(
            self,
            DeliveryRow,
            "SELECT next_seq, attempt, retry_seq AS answer_anew_seq FROM deliveries WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )
    }

    /// Moves an agent past a message that somebody stopped it at, whichever node calls it; whether
    /// it was still before it. What its call comes to afterwards counts for nothing.
    pub async fn stop_delivery(
        &mut self,
        room: &RoomId,
        user: &UserId,
        seq: i64,
    ) -> DbResult<bool> {
        let moved = exec!(
            self,
            "UPDATE deliveries SET \
             next_seq = CASE WHEN next_seq <= $3 THEN $3 + 1 ELSE next_seq END, \
             retry_seq = CASE WHEN retry_seq = $3 THEN NULL ELSE retry_seq END, \
             attempt = 0, due_ms = 0, last_error = NULL \
             WHERE room_id = $1 AND user_id = $2 AND (next_seq <= $3 OR retry_seq = $3)",
            room,
            user,
            seq
        )?;
        Ok(moved == 1)
    }

    /// Has an agent called once more for a message; whether it is not about to be for another.
    pub async fn request_answer_anew(
        &mut self,
        room: &RoomId,
        user: &UserId,
        seq: i64,
    ) -> DbResult<bool> {
        let noted = exec!(
            self,
            "UPDATE deliveries SET retry_seq = $3 WHERE room_id = $1 AND user_id = $2 \
             AND retry_seq IS NULL AND next_seq > $3",
            room,
            user,
            seq
        )?;
        Ok(noted == 1)
    }

    /// The message that an agent was called for once more is dealt with, and its answer counted;
    /// whether it was still to be and the lane still ours.
    pub async fn finish_answer_anew(
        &mut self,
        held: Held<'_>,
        seq: i64,
        now_ms: i64,
    ) -> DbResult<bool> {
        let done = exec!(
            self,
            "UPDATE deliveries SET retry_seq = NULL, \
             replies = CASE WHEN replies_since_ms > $7 AND replies_since_ms <= $8 THEN replies + 1 ELSE 1 END, \
             replies_since_ms = CASE WHEN replies_since_ms > $7 AND replies_since_ms <= $8 \
             THEN replies_since_ms ELSE $6 END \
             WHERE room_id = $1 AND user_id = $2 AND generation >= $3 AND retry_seq = $5 \
             AND COALESCE(claimed_by, $4) = $4",
            held.room,
            held.user,
            held.generation,
            held.node,
            seq,
            now_ms,
            now_ms - REPLIES_WINDOW_MS,
            now_ms + SKEW_MS
        )?;
        Ok(done == 1)
    }

    /// The members whom a message mentions.
    pub async fn mentioned_by(&mut self, room: &RoomId, seq: i64) -> DbResult<Vec<UserId>> {
        let found = rows!(
            self,
            UserIdRow,
            "SELECT user_id FROM mentions WHERE room_id = $1 AND seq = $2",
            room,
            seq
        )?;
        Ok(user_ids(found))
    }

    /// Who made the invite that a member came with.
    pub async fn inviter_of(&mut self, room: &RoomId, user: &UserId) -> DbResult<Option<UserId>> {
        let found = row!(
            self,
            UserIdRow,
            "SELECT i.created_by AS user_id FROM room_members m JOIN invites i ON i.jti = m.invite_jti \
             WHERE m.room_id = $1 AND m.user_id = $2",
            room,
            user
        )?;
        Ok(found.map(|row| row.user_id))
    }
}
