//! Identity tokens, and which lineage claimed an external id first.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row},
};
use protocol::UserId;

row_struct! {
    /// What is known of an identity token.
    #[derive(Debug, Clone)]
    pub struct IdentityRow {
        pub jti: String,
        pub user_id: UserId,
        pub lineage: Option<String>,
        /// The key or identity token that it was made with, and ends with.
        pub derived_from: Option<String>,
        pub issued_at: i64,
        pub expires_at: i64,
        pub revoked: bool,
    }
}

impl Conn {
    pub async fn insert_identity(&mut self, identity: &IdentityRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO identities (jti, user_id, lineage, derived_from, issued_at, expires_at, revoked) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &identity.jti,
            &identity.user_id,
            &identity.lineage,
            &identity.derived_from,
            identity.issued_at,
            identity.expires_at,
            identity.revoked
        )?;
        Ok(())
    }

    pub async fn identity(&mut self, jti: &str) -> DbResult<Option<IdentityRow>> {
        row!(
            self,
            IdentityRow,
            "SELECT jti, user_id, lineage, derived_from, issued_at, expires_at, revoked FROM identities \
             WHERE jti = $1",
            jti
        )
    }

    /// Whether the identity token holds. It is not revoked before the transaction ends.
    pub async fn lock_identity(&mut self, jti: &str) -> DbResult<bool> {
        const LOCK: Sql = Sql {
            sqlite: "SELECT jti FROM identities WHERE jti = $1 AND revoked = FALSE",
            postgres: "SELECT jti FROM identities WHERE jti = $1 AND revoked = FALSE FOR UPDATE",
        };
        Ok(row!(self, (String,), LOCK, jti)?.is_some())
    }

    /// Remembers that a lineage claims an id. The first claim stays.
    pub async fn claim_id(&mut self, user: &UserId, lineage: &str) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO id_claims (user_id, lineage) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            user,
            lineage
        )?;
        Ok(())
    }

    /// The lineage that claimed this id first.
    pub async fn first_lineage(&mut self, user: &UserId) -> DbResult<Option<String>> {
        let found = row!(
            self,
            (String,),
            "SELECT lineage FROM id_claims WHERE user_id = $1",
            user
        )?;
        Ok(found.map(|(lineage,)| lineage))
    }
}
