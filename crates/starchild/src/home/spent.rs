//! `spent/<room>.json`: what the agent has spent in a room today.

use super::{AgentHome, FileError, RoomAddress, files};
use protocol::Spent;
use serde::{Deserialize, Serialize};

/// What was spent on one day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpentFile {
    /// The day, counted from 1970-01-01 in UTC.
    pub day: i64,
    /// What was spent on it.
    pub spent: Spent,
}

impl AgentHome {
    /// What was spent in a room, if anything was.
    pub fn spent(&self, room: &RoomAddress) -> Result<Option<SpentFile>, FileError> {
        files::read_json(&self.spent_file(room))
    }

    /// Keeps what was spent.
    pub fn save_spent(&self, room: &RoomAddress, spent: &SpentFile) -> Result<(), FileError> {
        let path = self.spent_file(room);
        if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        files::write_json(&path, spent)
    }

    fn spent_file(&self, room: &RoomAddress) -> std::path::PathBuf {
        let name = format!("{}.json", self.room_name(room));
        self.folder().join("spent").join(name)
    }
}
