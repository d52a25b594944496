//! Room keys and the short codes that stand for them. The keys themselves are not stored:
//! a row holds what is needed to check one, to revoke it, and to sign it again.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
};
use protocol::{RoomId, Scope, UserId, Via};

row_struct! {
    /// What is known of a room key.
    #[derive(Debug, Clone)]
    pub struct KeyRow {
        pub jti: String,
        pub room_id: RoomId,
        pub user_id: UserId,
        pub scope: Scope,
        pub posts_as: Via,
        pub shared: bool,
        pub lineage: Option<String>,
        /// The key or identity token that it was made with, and ends with.
        pub derived_from: Option<String>,
        pub issued_at: i64,
        pub expires_at: i64,
        pub revoked: bool,
    }
}

row_struct! {
    /// A short code of a room key.
    #[derive(Debug)]
    pub struct ShareCodeRow {
        pub room_id: RoomId,
        pub jti: String,
        pub created_by: UserId,
        pub expires_at: i64,
        pub revoked: bool,
    }
}

impl KeyRow {
    /// Whether its member got it for itself. The others were made to be given away, or may only
    /// read: they open their room and prove nothing.
    pub fn is_own(&self) -> bool {
        !self.shared && self.may_post()
    }

    pub fn may_post(&self) -> bool {
        self.scope == Scope::ViewPost
    }
}

/// What a [`KeyRow`] is read from.
macro_rules! select_key {
    ($rest:literal) => {
        concat!("SELECT jti, room_id, user_id, scope, posts_as, shared, lineage, derived_from, issued_at, expires_at, revoked \
             FROM room_keys ", $rest)
    };
}

impl Conn {
    pub async fn insert_key(&mut self, key: &KeyRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO room_keys (jti, room_id, user_id, scope, posts_as, shared, lineage, derived_from, issued_at, expires_at, revoked) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            &key.jti,
            &key.room_id,
            &key.user_id,
            &key.scope,
            &key.posts_as,
            key.shared,
            &key.lineage,
            &key.derived_from,
            key.issued_at,
            key.expires_at,
            key.revoked
        )?;
        Ok(())
    }

    pub async fn key(&mut self, jti: &str) -> DbResult<Option<KeyRow>> {
        row!(self, KeyRow, select_key!("WHERE jti = $1"), jti)
    }

    /// The user's shared keys for the room that still open it, newest first.
    pub async fn shared_keys(
        &mut self,
        room: &RoomId,
        user: &UserId,
        now: i64,
    ) -> DbResult<Vec<KeyRow>> {
        rows!(
            self,
            KeyRow,
            select_key!(
                "WHERE room_id = $1 AND user_id = $2 AND shared = TRUE AND revoked = FALSE \
             AND expires_at > $3 ORDER BY issued_at DESC, jti"
            ),
            room,
            user,
            now
        )
    }

    /// Every key that a user holds for a room and that was not revoked, of whatever kind.
    pub async fn keys_of_member(
        &mut self,
        room: &RoomId,
        user: &UserId,
    ) -> DbResult<Vec<(String,)>> {
        rows!(
            self,
            (String,),
            "SELECT jti FROM room_keys WHERE room_id = $1 AND user_id = $2 AND revoked = FALSE",
            room,
            user
        )
    }

    /// Whether the key holds. It is not revoked before the transaction ends.
    pub async fn lock_key(&mut self, jti: &str) -> DbResult<bool> {
        const LOCK: Sql = Sql {
            sqlite: "SELECT jti FROM room_keys WHERE jti = $1 AND revoked = FALSE",
            postgres: "SELECT jti FROM room_keys WHERE jti = $1 AND revoked = FALSE FOR UPDATE",
        };
        Ok(row!(self, (String,), LOCK, jti)?.is_some())
    }

    pub async fn insert_share_code(
        &mut self,
        code_hash: &str,
        code: &ShareCodeRow,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO share_codes (code_hash, room_id, jti, created_by, expires_at, revoked) \
             VALUES ($1, $2, $3, $4, $5, $6)",
            code_hash,
            &code.room_id,
            &code.jti,
            &code.created_by,
            code.expires_at,
            code.revoked
        )?;
        Ok(())
    }

    pub async fn share_code(&mut self, code_hash: &str) -> DbResult<Option<ShareCodeRow>> {
        row!(
            self,
            ShareCodeRow,
            "SELECT room_id, jti, created_by, expires_at, revoked FROM share_codes WHERE code_hash = $1",
            code_hash
        )
    }

    /// Whether there was a code to revoke.
    pub async fn revoke_share_code(&mut self, code_hash: &str) -> DbResult<bool> {
        let revoked = exec!(
            self,
            "UPDATE share_codes SET revoked = TRUE WHERE code_hash = $1 AND revoked = FALSE",
            code_hash
        )?;
        Ok(revoked == 1)
    }
}
