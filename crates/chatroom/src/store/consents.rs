//! Requests for consent.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
};
use protocol::{ConsentState, RoomId, UserId};

row_struct! {
    /// A request for consent as it is stored.
    #[derive(Debug, Clone)]
    pub struct ConsentRow {
        pub consent_id: String,
        pub room_id: RoomId,
        pub user_id: UserId,
        pub state: ConsentState,
        pub tool: String,
        pub summary: String,
        pub detail: Option<String>,
        pub reply_to_seq: Option<i64>,
        pub created_at: i64,
        pub expires_at: i64,
        pub closed_at: Option<i64>,
        pub decided_by: Option<UserId>,
        pub reason: Option<String>,
    }
}

row_struct! {
    /// Which request, and in which room.
    #[derive(Debug)]
    pub struct ConsentIdRow {
        pub consent_id: String,
        pub room_id: RoomId,
    }
}

macro_rules! select_consent {
    ($rest:literal) => {
        concat!(
            "SELECT consent_id, room_id, user_id, state, tool, summary, detail, reply_to_seq, created_at, \
             expires_at, closed_at, decided_by, reason FROM consents ",
            $rest
        )
    };
}

impl Conn {
    pub async fn insert_consent(&mut self, consent: &ConsentRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO consents (consent_id, room_id, user_id, state, tool, summary, detail, reply_to_seq, \
             created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            &consent.consent_id,
            &consent.room_id,
            &consent.user_id,
            &consent.state,
            &consent.tool,
            &consent.summary,
            &consent.detail,
            consent.reply_to_seq,
            consent.created_at,
            consent.expires_at
        )?;
        Ok(())
    }

    pub async fn consent(&mut self, id: &str) -> DbResult<Option<ConsentRow>> {
        row!(
            self,
            ConsentRow,
            select_consent!("WHERE consent_id = $1"),
            id
        )
    }

    /// The newest requests of a room.
    pub async fn consents(&mut self, room: &RoomId, limit: i64) -> DbResult<Vec<ConsentRow>> {
        rows!(
            self,
            ConsentRow,
            select_consent!(
                "WHERE room_id = $1 ORDER BY created_at DESC, consent_id DESC LIMIT $2"
            ),
            room,
            limit
        )
    }

    /// The requests of a room that wait and have not ended by this time. There are few.
    pub async fn open_consents(&mut self, room: &RoomId, now: i64) -> DbResult<Vec<ConsentRow>> {
        rows!(
            self,
            ConsentRow,
            select_consent!("WHERE room_id = $1 AND state = 'open' AND expires_at > $2"),
            room,
            now
        )
    }

    /// How many requests an agent has open in a room.
    pub async fn open_consent_count(
        &mut self,
        room: &RoomId,
        user: &UserId,
        now: i64,
    ) -> DbResult<i64> {
        let found = row!(
            self,
            (i64,),
            "SELECT COUNT(*) FROM consents \
             WHERE room_id = $1 AND user_id = $2 AND state = 'open' AND expires_at > $3",
            room,
            user,
            now
        )?;
        Ok(found.map_or(0, |(count,)| count))
    }

    /// Closes a request that is open; whether it was.
    pub async fn close_consent(
        &mut self,
        id: &str,
        state: &ConsentState,
        at: i64,
        decided_by: Option<&UserId>,
        reason: Option<&str>,
    ) -> DbResult<bool> {
        let closed = exec!(
            self,
            "UPDATE consents SET state = $2, closed_at = $3, decided_by = $4, reason = $5 \
             WHERE consent_id = $1 AND state = 'open'",
            id,
            state,
            at,
            decided_by,
            reason
        )?;
        Ok(closed == 1)
    }

    /// The requests that have waited too long, the oldest first.
    pub async fn consents_to_expire(
        &mut self,
        now: i64,
        limit: i64,
    ) -> DbResult<Vec<ConsentIdRow>> {
        rows!(
            self,
            ConsentIdRow,
            "SELECT consent_id, room_id FROM consents WHERE state = 'open' AND expires_at <= $1 \
             ORDER BY expires_at LIMIT $2",
            now,
            limit
        )
    }

    /// The requests that a member has open in a room.
    pub async fn open_consents_of(
        &mut self,
        room: &RoomId,
        user: &UserId,
    ) -> DbResult<Vec<ConsentRow>> {
        rows!(
            self,
            ConsentRow,
            select_consent!("WHERE room_id = $1 AND user_id = $2 AND state = 'open'"),
            room,
            user
        )
    }
}
