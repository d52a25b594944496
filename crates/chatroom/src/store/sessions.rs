//! What acts for a user: identity tokens and room keys together.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
    members::{UserIdRow, user_ids},
};
use protocol::{RoomId, Scope, UserId};

row_struct! {
    /// An identity token, or a room key, which has a room.
    #[derive(Debug)]
    pub struct SessionRow {
        pub jti: String,
        pub lineage: Option<String>,
        pub room_id: Option<RoomId>,
        pub scope: Option<Scope>,
        pub shared: bool,
        pub issued_at: i64,
        pub expires_at: i64,
    }
}

impl Conn {
    /// The user's identity tokens and room keys that hold, so many of each.
    pub async fn sessions_of(
        &mut self,
        user: &UserId,
        now: i64,
        limit: i64,
    ) -> DbResult<Vec<SessionRow>> {
        let mut sessions: Vec<SessionRow> = rows!(
            self,
            SessionRow,
            "SELECT jti, lineage, NULL AS room_id, NULL AS scope, FALSE AS shared, issued_at, expires_at \
             FROM identities WHERE user_id = $1 AND revoked = FALSE AND expires_at > $2 LIMIT $3",
            user,
            now,
            limit
        )?;
        sessions.extend(rows!(
            self,
            SessionRow,
            "SELECT jti, lineage, room_id, scope, shared, issued_at, expires_at FROM room_keys \
             WHERE user_id = $1 AND revoked = FALSE AND expires_at > $2 LIMIT $3",
            user,
            now,
            limit
        )?);
        Ok(sessions)
    }

    /// Revokes all short codes of a user; how many.
    pub async fn revoke_cli_keys_of(&mut self, user: &UserId) -> DbResult<u64> {
        exec!(
            self,
            "UPDATE cli_keys SET revoked = TRUE WHERE user_id = $1 AND revoked = FALSE",
            user
        )
    }

    /// The ids of so many users after this one: members of rooms, and whoever holds an identity.
    pub async fn users_after(&mut self, after: &str, limit: i64) -> DbResult<Vec<UserId>> {
        let found = rows!(
            self,
            UserIdRow,
            "SELECT user_id FROM room_members WHERE user_id > $1 \
             UNION SELECT user_id FROM identities WHERE user_id > $1 ORDER BY user_id LIMIT $2",
            after,
            limit
        )?;
        Ok(user_ids(found))
    }

    /// In how many rooms a user is, and a name they have in one.
    pub async fn rooms_and_name_of(&mut self, user: &UserId) -> DbResult<(i64, Option<String>)> {
        let found = row!(
            self,
            (i64, Option<String>),
            "SELECT COUNT(*), MAX(user_name) FROM room_members WHERE user_id = $1",
            user
        )?;
        Ok(found.unwrap_or_default())
    }
}
