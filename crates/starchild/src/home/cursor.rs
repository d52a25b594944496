//! `cursors/<room>.json`: how far the daemon has come in a room.

use super::{AgentHome, FileError, RoomAddress, files};
use protocol::Usage;
use serde::{Deserialize, Serialize};

/// How far the daemon has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CursorFile {
    /// Everything up to here is dealt with.
    pub seq: i64,
    /// An answer that may or may not have been posted when the daemon ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<PreparedAnswer>,
}

/// An answer from before it is posted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreparedAnswer {
    /// The message it answers.
    pub seq: i64,
    /// What it says.
    pub text: String,
    /// What it has cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl AgentHome {
    /// How far the daemon has come, if it was ever here.
    pub fn cursor(&self, room: &RoomAddress) -> Result<Option<CursorFile>, FileError> {
        files::read_json(&self.cursor_file(&self.room_name(room)))
    }

    /// Keeps how far the daemon has come.
    pub fn save_cursor(&self, room: &RoomAddress, cursor: &CursorFile) -> Result<(), FileError> {
        files::write_json(&self.cursor_file(&self.room_name(room)), cursor)
    }
}
