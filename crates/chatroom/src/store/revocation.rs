//! Revoking keys and identity tokens with everything that was derived from them.

use super::{
    Conn, DbResult,
    db::{Sql, exec, rows},
    posting::json,
    rooms::{RoomIdRow, ids},
};
use protocol::RoomId;

/// A statement on `chain`: the credentials `$1` and all that were derived from them, but for `$2`
/// and what was derived from that.
macro_rules! on_chain {
    ($statement:literal) => {
        Sql {
            sqlite: concat!(
                "WITH RECURSIVE chain (jti) AS (SELECT value FROM json_each($1) \
                 UNION SELECT k.jti FROM chain JOIN room_keys k ON k.derived_from = chain.jti WHERE k.jti <> $2 \
                 UNION SELECT i.jti FROM chain JOIN identities i ON i.derived_from = chain.jti WHERE i.jti <> $2) ",
                $statement
            ),
            postgres: concat!(
                "WITH RECURSIVE chain (jti) AS (SELECT jsonb_array_elements_text($1::jsonb) \
                 UNION SELECT made.jti FROM chain CROSS JOIN LATERAL ( \
                 SELECT k.jti FROM room_keys k WHERE k.derived_from = chain.jti \
                 UNION ALL SELECT i.jti FROM identities i WHERE i.derived_from = chain.jti) AS made \
                 WHERE made.jti <> $2) ",
                $statement
            ),
        }
    };
}

impl Conn {
    /// Revokes the room keys among these credentials and what was derived from them; the rooms
    /// that they opened.
    pub async fn revoke_key_chain(
        &mut self,
        roots: &[&str],
        spared: &str,
    ) -> DbResult<Vec<RoomId>> {
        const REVOKE: Sql = on_chain!(
            "UPDATE room_keys SET revoked = TRUE WHERE revoked = FALSE \
             AND jti IN (SELECT jti FROM chain) RETURNING room_id"
        );
        let opened = rows!(self, RoomIdRow, REVOKE, json(roots), spared)?;
        Ok(ids(opened))
    }

    /// Revokes the identity tokens among these credentials and what was derived from them; how
    /// many.
    pub async fn revoke_identity_chain(&mut self, roots: &[&str], spared: &str) -> DbResult<u64> {
        const REVOKE: Sql = on_chain!(
            "UPDATE identities SET revoked = TRUE WHERE revoked = FALSE \
             AND jti IN (SELECT jti FROM chain)"
        );
        exec!(self, REVOKE, json(roots), spared)
    }
}
