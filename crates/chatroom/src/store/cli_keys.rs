//! Short codes of the CLI bridge.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
};
use protocol::UserId;

row_struct! {
    /// A short code as it is stored.
    #[derive(Debug)]
    pub struct CliKeyRow {
        pub sealed_code: String,
        pub sealed_key: String,
        pub user_id: UserId,
        pub container_id: String,
        pub agent_endpoint: Option<String>,
        /// Whether a trusted caller named it.
        pub endpoint_trusted: bool,
        pub label: Option<String>,
        pub created_at: i64,
        pub expires_at: i64,
        pub revoked: bool,
        pub use_count: i64,
        pub last_used_at: Option<i64>,
    }
}

/// What a [`CliKeyRow`] is read from.
macro_rules! select_cli_key {
    ($rest:literal) => {
        concat!(
            "SELECT sealed_code, sealed_key, user_id, container_id, agent_endpoint, endpoint_trusted, label, \
             created_at, expires_at, revoked, use_count, last_used_at FROM cli_keys ",
            $rest
        )
    };
}

impl Conn {
    pub async fn insert_cli_key(&mut self, code_hash: &str, key: &CliKeyRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO cli_keys (code_hash, sealed_code, sealed_key, user_id, container_id, agent_endpoint, \
             label, created_at, expires_at, endpoint_trusted) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            code_hash,
            &key.sealed_code,
            &key.sealed_key,
            &key.user_id,
            &key.container_id,
            &key.agent_endpoint,
            &key.label,
            key.created_at,
            key.expires_at,
            key.endpoint_trusted
        )?;
        Ok(())
    }

    pub async fn cli_key(&mut self, code_hash: &str) -> DbResult<Option<CliKeyRow>> {
        row!(
            self,
            CliKeyRow,
            select_cli_key!("WHERE code_hash = $1"),
            code_hash
        )
    }

    /// A user's codes, newest first.
    pub async fn cli_keys_of(&mut self, user: &UserId) -> DbResult<Vec<CliKeyRow>> {
        rows!(
            self,
            CliKeyRow,
            select_cli_key!("WHERE user_id = $1 ORDER BY created_at DESC"),
            user
        )
    }

    /// Whether there was a code to revoke.
    pub async fn revoke_cli_key(&mut self, code_hash: &str) -> DbResult<bool> {
        let revoked = exec!(
            self,
            "UPDATE cli_keys SET revoked = TRUE WHERE code_hash = $1 AND revoked = FALSE",
            code_hash
        )?;
        Ok(revoked == 1)
    }

    pub async fn count_cli_key_use(&mut self, code_hash: &str, now: i64) -> DbResult<()> {
        exec!(
            self,
            "UPDATE cli_keys SET use_count = use_count + 1, last_used_at = $2 WHERE code_hash = $1",
            code_hash,
            now
        )?;
        Ok(())
    }

    /// From now on the code calls this endpoint, wherever its owner's membership points.
    pub async fn fix_cli_key_endpoint(
        &mut self,
        code_hash: &str,
        endpoint: &str,
        trusted: bool,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE cli_keys SET agent_endpoint = $2, endpoint_trusted = $3 \
             WHERE code_hash = $1 AND agent_endpoint IS NULL",
            code_hash,
            endpoint,
            trusted
        )?;
        Ok(())
    }

    /// Where the user's agent with this container is called, by its newest membership, and whether
    /// a trusted caller said so.
    pub async fn endpoint_of_container(
        &mut self,
        user: &UserId,
        container: &str,
    ) -> DbResult<Option<(String, bool)>> {
        row!(
            self,
            (String, bool),
            "SELECT agent_endpoint, endpoint_trusted FROM room_members WHERE user_id = $1 AND container_id = $2 \
             AND agent_endpoint IS NOT NULL ORDER BY joined_at DESC LIMIT 1",
            user,
            container
        )
    }
}
