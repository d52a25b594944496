//! Tasks of A2A clients: which were taken back, and where their changes are sent.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
};
use protocol::{RoomId, UserId};

row_struct! {
    /// Where a task's changes are sent.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PushRow {
        pub room_id: RoomId,
        pub seq: i64,
        pub user_id: UserId,
        pub jti: Option<String>,
        pub issued_at: Option<i64>,
        pub id: String,
        pub sealed: String,
        pub trusted: bool,
        pub older: bool,
        pub told: String,
        pub attempt: i64,
        pub due_ms: i64,
        pub expires_at: i64,
    }
}

macro_rules! select_push {
    ($rest:literal) => {
        concat!(
            "SELECT room_id, seq, user_id, jti, issued_at, id, sealed, trusted, older, told, attempt, due_ms, expires_at \
             FROM a2a_pushes ",
            $rest
        )
    };
}

impl Conn {
    /// When a task was taken back.
    pub async fn a2a_canceled_at(&mut self, room: &RoomId, seq: i64) -> DbResult<Option<i64>> {
        let found = row!(
            self,
            (i64,),
            "SELECT at FROM a2a_cancels WHERE room_id = $1 AND seq = $2",
            room,
            seq
        )?;
        Ok(found.map(|(at,)| at))
    }

    pub async fn insert_a2a_cancel(
        &mut self,
        room: &RoomId,
        seq: i64,
        by: &UserId,
        at: i64,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO a2a_cancels (room_id, seq, by_user_id, at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (room_id, seq) DO NOTHING",
            room,
            seq,
            by,
            at
        )?;
        Ok(())
    }

    /// Stores where changes are sent, in the place of what had the same name.
    pub async fn save_a2a_push(&mut self, push: &PushRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO a2a_pushes (room_id, seq, user_id, jti, id, sealed, trusted, older, told, attempt, due_ms, \
             expires_at, issued_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
             ON CONFLICT (room_id, seq, user_id, id) DO UPDATE SET jti = excluded.jti, sealed = excluded.sealed, \
             trusted = excluded.trusted, older = excluded.older, told = excluded.told, attempt = excluded.attempt, \
             due_ms = excluded.due_ms, expires_at = excluded.expires_at, issued_at = excluded.issued_at",
            &push.room_id,
            push.seq,
            &push.user_id,
            &push.jti,
            &push.id,
            &push.sealed,
            push.trusted,
            push.older,
            &push.told,
            push.attempt,
            push.due_ms,
            push.expires_at,
            push.issued_at
        )?;
        Ok(())
    }

    /// Where a member has a task's changes sent.
    pub async fn a2a_pushes_of(
        &mut self,
        room: &RoomId,
        seq: i64,
        user: &UserId,
    ) -> DbResult<Vec<PushRow>> {
        rows!(
            self,
            PushRow,
            select_push!("WHERE room_id = $1 AND seq = $2 AND user_id = $3 ORDER BY id"),
            room,
            seq,
            user
        )
    }

    pub async fn delete_a2a_push(
        &mut self,
        room: &RoomId,
        seq: i64,
        user: &UserId,
        id: &str,
    ) -> DbResult<bool> {
        let gone = exec!(
            self,
            "DELETE FROM a2a_pushes WHERE room_id = $1 AND seq = $2 AND user_id = $3 AND id = $4",
            room,
            seq,
            user,
            id
        )?;
        Ok(gone == 1)
    }

    /// Those that may be sent something now.
    pub async fn due_a2a_pushes(&mut self, now_ms: i64, limit: i64) -> DbResult<Vec<PushRow>> {
        rows!(
            self,
            PushRow,
            select_push!("WHERE due_ms <= $1 ORDER BY due_ms LIMIT $2"),
            now_ms,
            limit
        )
    }

    /// Leases one by putting off when it is due, if nobody else has since it was read: then it is the caller's to
    /// deal with until that time.
    pub async fn lease_a2a_push(&mut self, push: &PushRow, until_ms: i64) -> DbResult<bool> {
        let leased = exec!(
            self,
            "UPDATE a2a_pushes SET due_ms = $6 WHERE room_id = $1 AND seq = $2 AND user_id = $3 AND id = $4 \
             AND due_ms = $5",
            &push.room_id,
            push.seq,
            &push.user_id,
            &push.id,
            push.due_ms,
            until_ms
        )?;
        Ok(leased == 1)
    }

    /// What came of a notification, if the configuration is still the one that was leased.
    pub async fn settle_a2a_push(
        &mut self,
        push: &PushRow,
        leased_until_ms: i64,
        told: &str,
        attempt: i64,
        due_ms: i64,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE a2a_pushes SET told = $6, attempt = $7, due_ms = $8 \
             WHERE room_id = $1 AND seq = $2 AND user_id = $3 AND id = $4 AND due_ms = $5",
            &push.room_id,
            push.seq,
            &push.user_id,
            &push.id,
            leased_until_ms,
            told,
            attempt,
            due_ms
        )?;
        Ok(())
    }

    pub async fn forget_a2a_pushes(&mut self, before: i64) -> DbResult<()> {
        exec!(self, "DELETE FROM a2a_pushes WHERE expires_at < $1", before)?;
        Ok(())
    }
}
