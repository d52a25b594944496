//! What people allowed MCP clients.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
};
use protocol::UserId;

row_struct! {
    /// A grant of a person to a client.
    #[derive(Debug, Clone)]
    pub struct GrantRow {
        pub id: String,
        pub user_id: UserId,
        pub user_name: Option<String>,
        pub client_hash: String,
        pub client_name: String,
        /// The code's, then the newest refresh token's.
        pub secret_hash: String,
        /// That of the secret before.
        pub prior_hash: Option<String>,
        /// While the secret is a code.
        pub challenge: Option<String>,
        pub redirect_uri: Option<String>,
        /// The identity that its tokens stand on, once the code was exchanged.
        pub jti: Option<String>,
        pub expires_at: i64,
    }
}

impl Conn {
    pub async fn insert_grant(&mut self, grant: &GrantRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO oauth_grants (id, user_id, user_name, client_hash, client_name, secret_hash, prior_hash, \
             challenge, redirect_uri, jti, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            &grant.id,
            &grant.user_id,
            &grant.user_name,
            &grant.client_hash,
            &grant.client_name,
            &grant.secret_hash,
            &grant.prior_hash,
            &grant.challenge,
            &grant.redirect_uri,
            &grant.jti,
            grant.expires_at
        )?;
        Ok(())
    }

    /// The grant whose secret this is. Nobody else uses it before the transaction ends.
    pub async fn lock_grant(&mut self, secret_hash: &str) -> DbResult<Option<GrantRow>> {
        const LOCK: Sql = Sql {
            sqlite: "SELECT id, user_id, user_name, client_hash, client_name, secret_hash, prior_hash, challenge, \
                     redirect_uri, jti, expires_at FROM oauth_grants WHERE secret_hash = $1",
            postgres: "SELECT id, user_id, user_name, client_hash, client_name, secret_hash, prior_hash, challenge, \
                       redirect_uri, jti, expires_at FROM oauth_grants WHERE secret_hash = $1 FOR UPDATE",
        };
        row!(self, GrantRow, LOCK, secret_hash)
    }

    /// The identity of the grant whose secret this was before the newest one.
    pub async fn robbed_grant(&mut self, prior_hash: &str) -> DbResult<Option<String>> {
        let found = row!(
            self,
            (Option<String>,),
            "SELECT jti FROM oauth_grants WHERE prior_hash = $1",
            prior_hash
        )?;
        Ok(found.and_then(|(jti,)| jti))
    }

    /// Puts a new secret in place of the one before.
    pub async fn rotate_grant(
        &mut self,
        id: &str,
        secret_hash: &str,
        jti: &str,
        expires_at: i64,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE oauth_grants SET prior_hash = secret_hash, secret_hash = $2, jti = $3, expires_at = $4, \
             challenge = NULL, redirect_uri = NULL WHERE id = $1",
            id,
            secret_hash,
            jti,
            expires_at
        )?;
        Ok(())
    }

    /// The identities that stand behind clients of a user, and the clients' names.
    pub async fn clients_of(&mut self, user: &UserId) -> DbResult<Vec<(String, String)>> {
        rows!(
            self,
            (String, String),
            "SELECT jti, client_name FROM oauth_grants WHERE user_id = $1 AND jti IS NOT NULL",
            user
        )
    }

    /// Forgets what a user allowed and no client has taken up yet.
    pub async fn forget_codes_of(&mut self, user: &UserId) -> DbResult<u64> {
        exec!(
            self,
            "DELETE FROM oauth_grants WHERE user_id = $1 AND jti IS NULL",
            user
        )
    }

    /// Forgets grants that are over.
    pub async fn forget_grants(&mut self, now: i64) -> DbResult<u64> {
        exec!(self, "DELETE FROM oauth_grants WHERE expires_at < $1", now)
    }
}
