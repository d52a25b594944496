//! Whose session is whose, and how many there may be. The sessions themselves are `rmcp`'s.

use super::resume::ResumableSessions;
use crate::error::{Error, Result};
use protocol::ErrorCode;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// When to look again whether a session has ended.
const FULL_WAIT_MS: i64 = 30_000;

/// The owners of the sessions that are open on this node.
#[derive(Default)]
pub struct McpSessions {
    owners: Mutex<HashMap<String, String>>,
    pub manager: Arc<ResumableSessions>,
}

impl McpSessions {
    pub fn new(manager: LocalSessionManager) -> Self {
        Self {
            owners: Mutex::default(),
            manager: Arc::new(ResumableSessions::new(manager)),
        }
    }

    /// Refuses whoever has as many sessions as there may be.
    pub async fn make_room(&self, owner: &str, per_owner: usize, in_all: usize) -> Result<()> {
        let open = self.manager.local.sessions.read().await;
        let mut owners = self.owners();
        owners.retain(|session, _| open.contains_key(session.as_str()));
        let own = owners.values().filter(|other| *other == owner).count();
        // Those that are only now being made are open already, and nobody's yet.
        if own >= per_owner || open.len() >= in_all {
            return Err(Error::limited(
                ErrorCode::RateLimited,
                "Too many MCP sessions are open; end one with DELETE, or let one expire",
                FULL_WAIT_MS,
            ));
        }
        Ok(())
    }

    /// Notes whose a new session is.
    pub fn opened(&self, session: &str, owner: String) {
        self.owners().insert(session.to_owned(), owner);
    }

    /// Whether the session is this owner's. Nobody else may even know of it.
    pub async fn is_of(&self, session: &str, owner: &str) -> bool {
        let is_own = self.owners().get(session).is_some_and(|of| of == owner);
        is_own
            && self
                .manager
                .local
                .sessions
                .read()
                .await
                .contains_key(session)
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
