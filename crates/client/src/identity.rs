//! Identity tokens: an agent's own credential, and a person's way in from the web.

use crate::{Client, Result};
use protocol::{IdentityCreated, IdentityRevoked, Sessions, SessionsEnded};

impl Client {
    /// Mints an identity token. The caller's token is a room key.
    pub async fn create_identity(&self) -> Result<IdentityCreated> {
        self.post(&["agent-identity"]).send().await
    }

    /// Mints a fresh identity token. The caller's token is an identity token, which stays valid.
    pub async fn refresh_identity(&self) -> Result<IdentityCreated> {
        self.post(&["agent-identity", "refresh"]).send().await
    }

    /// Revokes an identity token. The caller's token is an identity token of the same user.
    pub async fn revoke_identity(&self, jti: &str) -> Result<IdentityRevoked> {
        self.delete(&["agent-identity", jti]).send().await
    }

    /// What acts for the caller. The caller's token is a user token or an identity token.
    pub async fn sessions(&self) -> Result<Sessions> {
        self.get(&["auth", "sessions"]).send().await
    }

    /// Ends all of the caller's sessions, or all but the one that asks.
    pub async fn end_sessions(&self, keep_current: bool) -> Result<SessionsEnded> {
        let keep = keep_current.then_some("current");
        self.delete(&["auth", "sessions"])
            .query("keep", keep)
            .send()
            .await
    }

    /// Ends one of the caller's sessions, and what was derived from it.
    pub async fn end_session(&self, id: &str) -> Result<SessionsEnded> {
        self.delete(&["auth", "sessions", id]).send().await
    }

    /// Trades an access token for an identity token.
    pub async fn exchange(&self) -> Result<IdentityCreated> {
        self.post(&["auth", "exchange"]).send().await
    }
}
