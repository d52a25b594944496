//! Identity tokens, and who has invited which lineage of an external id.

use super::{
    Conn, DbResult,
    db::{exec, row},
};

row_struct! {
    /// What is known of an identity token.
    #[derive(Debug, Clone)]
    pub struct IdentityRow {
        pub jti: String,
        pub user_id: String,
        pub lineage: Option<String>,
        pub issued_at: i64,
        pub expires_at: i64,
        pub revoked: bool,
    }
}

impl Conn {
    pub async fn insert_identity(&mut self, identity: &IdentityRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO identities (jti, user_id, lineage, issued_at, expires_at, revoked) \
             VALUES ($1, $2, $3, $4, $5, $6)",
            &identity.jti,
            &identity.user_id,
            &identity.lineage,
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
            "SELECT jti, user_id, lineage, issued_at, expires_at, revoked FROM identities WHERE jti = $1",
            jti
        )
    }

    pub async fn revoke_identity(&mut self, jti: &str) -> DbResult<()> {
        exec!(
            self,
            "UPDATE identities SET revoked = TRUE WHERE jti = $1",
            jti
        )?;
        Ok(())
    }

    /// The lineage that had this id first.
    pub async fn first_lineage(&mut self, user: &str) -> DbResult<Option<String>> {
        let found = row!(
            self,
            (Option<String>,),
            "SELECT MIN(lineage) FROM identities WHERE user_id = $1 AND issued_at = \
             (SELECT MIN(issued_at) FROM identities WHERE user_id = $1)",
            user
        )?;
        Ok(found.and_then(|(lineage,)| lineage))
    }

    pub async fn remember_invited(&mut self, lineage: &str, owner: &str) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO lineage_invites (lineage, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            lineage,
            owner
        )?;
        Ok(())
    }

    /// Whether this owner has invited this lineage into a room of theirs.
    pub async fn was_invited_by(&mut self, lineage: &str, owner: &str) -> DbResult<bool> {
        let found = row!(
            self,
            (String,),
            "SELECT owner FROM lineage_invites WHERE lineage = $1 AND owner = $2",
            lineage,
            owner
        )?;
        Ok(found.is_some())
    }
}
