//! The server itself.

use crate::{Client, Result};
use protocol::{AdminRooms, DocsVersion, Health};

impl Client {
    /// Whether the server serves.
    pub async fn health(&self) -> Result<Health> {
        self.get(&["health"]).send().await
    }

    /// The fingerprints of the documents that define the protocol.
    pub async fn docs_version(&self) -> Result<DocsVersion> {
        self.get(&["docs-version"]).send().await
    }

    /// Every room there is, a page at a time. For an admin token alone.
    pub async fn admin_rooms(&self, limit: Option<u32>, offset: Option<u32>) -> Result<AdminRooms> {
        self.get(&["internal", "admin", "rooms"])
            .query("limit", limit)
            .query("offset", offset)
            .send()
            .await
    }

    /// The server's figures, as Prometheus reads them.
    pub async fn metrics(&self) -> Result<String> {
        self.get(&["metrics"]).send_for_text().await
    }
}
