//! Room keys and the short codes that stand for them. The keys themselves are not stored:
//! a row holds what is needed to check one, to revoke it, and to sign it again.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
};

row_struct! {
    /// What is known of a room key.
    #[derive(Debug, Clone)]
    pub struct KeyRow {
        pub jti: String,
        pub room_id: String,
        pub user_id: String,
        pub scope: String,
        pub posts_as: String,
        pub shared: bool,
        pub lineage: Option<String>,
        pub issued_at: i64,
        pub expires_at: i64,
        pub revoked: bool,
    }
}

row_struct! {
    /// A short code of a room key.
    #[derive(Debug)]
    pub struct ShareCodeRow {
        pub room_id: String,
        pub jti: String,
        pub created_by: String,
        pub expires_at: i64,
        pub revoked: bool,
    }
}

/// What a [`KeyRow`] is read from.
macro_rules! select_key {
    ($rest:literal) => {
        concat!("SELECT jti, room_id, user_id, scope, posts_as, shared, lineage, issued_at, expires_at, revoked \
             FROM room_keys ", $rest)
    };
}

impl Conn {
    pub async fn insert_key(&mut self, key: &KeyRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO room_keys (jti, room_id, user_id, scope, posts_as, shared, lineage, issued_at, expires_at, revoked) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            &key.jti,
            &key.room_id,
            &key.user_id,
            &key.scope,
            &key.posts_as,
            key.shared,
            &key.lineage,
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
    pub async fn shared_keys(&mut self, room: &str, user: &str, now: i64) -> DbResult<Vec<KeyRow>> {
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

    /// Revokes one of the user's shared keys; whether there was one to revoke.
    pub async fn revoke_shared_key(&mut self, room: &str, user: &str, jti: &str) -> DbResult<bool> {
        let revoked = exec!(
            self,
            "UPDATE room_keys SET revoked = TRUE WHERE jti = $3 AND room_id = $1 AND user_id = $2 \
             AND shared = TRUE AND revoked = FALSE",
            room,
            user,
            jti
        )?;
        Ok(revoked == 1)
    }

    /// Revokes all of the user's shared keys for the room; how many still opened it.
    pub async fn revoke_shared_keys(&mut self, room: &str, user: &str, now: i64) -> DbResult<i64> {
        let revoked = exec!(
            self,
            "UPDATE room_keys SET revoked = TRUE WHERE room_id = $1 AND user_id = $2 AND shared = TRUE \
             AND revoked = FALSE AND expires_at > $3",
            room,
            user,
            now
        )?;
        Ok(i64::try_from(revoked).unwrap_or(i64::MAX))
    }

    /// Revokes every key a user holds for a room, of whatever kind.
    pub async fn revoke_all_keys(&mut self, room: &str, user: &str) -> DbResult<()> {
        exec!(
            self,
            "UPDATE room_keys SET revoked = TRUE WHERE room_id = $1 AND user_id = $2 AND revoked = FALSE",
            room,
            user
        )?;
        Ok(())
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
