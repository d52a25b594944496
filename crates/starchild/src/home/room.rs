//! `rooms/<room>.json`: what it takes to read and write in one room.

use super::{AgentHome, FileError, RoomAddress, Secret, files};
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
    /// Whether the owner joined the room and wants the agent to answer in it; nothing where nobody
    /// was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<bool>,
    /// Why the agent is not in the room any more; the daemon follows those without a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

impl RoomFile {
    /// Which room it is about.
    pub fn address(&self) -> RoomAddress {
        RoomAddress::new(&self.server, &self.room_id)
    }

    /// Whether the owner wants the agent to answer here. Every agent is in the reserved rooms
    /// without its owner's doing, so being there says nothing.
    pub fn wants_answers(&self) -> bool {
        self.answer.unwrap_or(!self.room_id.is_reserved())
    }
}

impl AgentHome {
    /// The rooms with a file that can be read, by name. A damaged file counts as lost.
    pub fn rooms(&self) -> Result<Vec<RoomFile>, FileError> {
        let mut rooms = Vec::new();
        for name in files::names(&self.rooms_folder())? {
            let name = name.strip_suffix(".json");
            if let Some(name) = name
                && let Ok(Some(room)) = self.read_room(name)
                && self.room_name(&room.address()) == name
            {
                rooms.push(room);
            }
        }
        rooms.sort_by_key(|room| (room.room_id.clone(), room.server.clone()));
        Ok(rooms)
    }

    /// One room, if its file is there.
    pub fn room(&self, address: &RoomAddress) -> Result<Option<RoomFile>, FileError> {
        let name = self.room_name(address);
        match self.read_room(&name)? {
            Some(file) if file.address() != *address => Err(FileError::Damaged {
                path: self.room_file(&name),
                why: format!("it is about {}", file.address()),
            }),
            file => Ok(file),
        }
    }

    /// Keeps a room.
    pub fn save_room(&self, room: &RoomFile) -> Result<(), FileError> {
        files::write_json(&self.room_file(&self.room_name(&room.address())), room)
    }

    /// Forgets a room, and how far the daemon had come in it.
    pub fn forget_room(&self, address: &RoomAddress) -> Result<(), FileError> {
        let name = self.room_name(address);
        files::remove(&self.room_file(&name))?;
        files::remove(&self.cursor_file(&name))
    }

    /// The file with this name, whatever it is about.
    pub(super) fn read_room(&self, name: &str) -> Result<Option<RoomFile>, FileError> {
        files::read_json(&self.room_file(name))
    }

    pub(super) fn has_room_file(&self, name: &str) -> bool {
        self.room_file(name).exists()
    }
}
