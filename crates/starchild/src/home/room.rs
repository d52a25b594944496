//! `rooms/<room>.json`: what it takes to read and write in one room.

use super::{AgentHome, FileError, Secret, files};
use protocol::{RoomId, UserId};
use serde::{Deserialize, Serialize};

/// The agent's place in one room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoomFile {
    /// The room.
    pub room_id: RoomId,
    /// Where it is.
    pub server: String,
    /// Who the agent is in it.
    pub user_id: UserId,
    /// The name it goes by.
    #[serde(default)]
    pub user_name: Option<String>,
    /// The key of the room.
    pub member_token: Secret,
    /// When the key was made, in unix seconds.
    #[serde(default)]
    pub issued_at: i64,
    /// When it ends, in unix seconds.
    pub expires_at: i64,
    /// The short code it came in with, so that the same again is known for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_with: Option<String>,
    /// Why the agent is not in the room any more; the daemon follows those without a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

impl AgentHome {
    /// The rooms with a file that can be read, by name. A damaged file counts as lost.
    pub fn rooms(&self) -> Result<Vec<RoomFile>, FileError> {
        let mut rooms = Vec::new();
        for name in files::names(&self.rooms_folder())? {
            let id = name.strip_suffix(".json").and_then(|id| id.parse().ok());
            if let Some(id) = id
                && let Ok(Some(room)) = self.room(&id)
            {
                rooms.push(room);
            }
        }
        rooms.sort_by(|a, b| a.room_id.cmp(&b.room_id));
        Ok(rooms)
    }

    /// One room, if its file is there.
    pub fn room(&self, room: &RoomId) -> Result<Option<RoomFile>, FileError> {
        let path = self.room_file(room);
        let file: Option<RoomFile> = files::read_json(&path)?;
        match file {
            Some(file) if file.room_id != *room => Err(FileError::Damaged {
                path,
                why: format!("it is about {}", file.room_id),
            }),
            file => Ok(file),
        }
    }

    /// Keeps a room.
    pub fn save_room(&self, room: &RoomFile) -> Result<(), FileError> {
        files::write_json(&self.room_file(&room.room_id), room)
    }

    /// Forgets a room, and how far the daemon had come in it.
    pub fn forget_room(&self, room: &RoomId) -> Result<(), FileError> {
        files::remove(&self.room_file(room))?;
        files::remove(&self.cursor_file(room))
    }
}
