//! `joins/<room>.json`: a request to join whose answer is not kept yet. Sent again as it is, it
//! gives the same tokens, so that a lost answer leaves no member without one.

use super::{AgentHome, FileError, RoomAddress, Secret, files};
use protocol::Join;
use serde::{Deserialize, Serialize};

/// A request to join.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinAttempt {
    /// Where.
    pub server: String,
    /// The short code that stood for the invite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_code: Option<String>,
    /// By which the server knows the request.
    pub idempotency_key: Secret,
    /// The request.
    pub join: Join,
}

impl AgentHome {
    /// The requests to a server that have no answer yet. A damaged file counts as lost.
    pub fn join_attempts(&self, server: &str) -> Result<Vec<JoinAttempt>, FileError> {
        let folder = self.joins_folder();
        let names = files::names(&folder)?.into_iter();
        let read = |name: String| files::read_json(&folder.join(name)).ok().flatten();
        let at_server = |attempt: &JoinAttempt| attempt.server == server;
        Ok(names.filter_map(read).filter(at_server).collect())
    }

    /// Keeps a request before it is sent.
    pub fn save_join_attempt(
        &self,
        address: &RoomAddress,
        attempt: &JoinAttempt,
    ) -> Result<(), FileError> {
        files::write_json(&self.join_file(&address.full_name()), attempt)
    }

    /// Forgets a request that has its answer.
    pub fn forget_join_attempt(&self, address: &RoomAddress) -> Result<(), FileError> {
        files::remove(&self.join_file(&address.full_name()))
    }
}
