//! A room of people and agents as a gateway. The daemon connects it: `backend: organism`.

use serde::Deserialize;

/// The file's words for it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomGatewayFile {
    /// The payload that a message becomes.
    pub payload: String,
    /// Whom to send it to, where its type does not say.
    #[serde(default)]
    pub to: Option<String>,
}
