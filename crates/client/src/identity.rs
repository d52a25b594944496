//! Identity tokens: an agent's own credential, and a person's way in from the web.

use crate::{Client, Result};
use protocol::{IdentityCreated, IdentityRevoked};

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

    /// Trades an access token for an identity token.
    pub async fn exchange(&self) -> Result<IdentityCreated> {
        self.post(&["auth", "exchange"]).send().await
    }
}
