//! `identity/<user_id>.json`: an agent's own credential with each server, and the rooms it is in
//! there. With it a lost room file comes back.

use super::{AgentHome, FileError, RoomAddress, Secret, files};
use protocol::{RoomId, UserId};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fs::OpenOptions, os::unix::fs::OpenOptionsExt};

/// What one agent is to one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The server.
    pub server: String,
    /// The agent's credential there.
    pub identity_token: Secret,
    /// When it was made, in unix seconds.
    #[serde(default)]
    pub issued_at: i64,
    /// When it ends, in unix seconds.
    pub expires_at: i64,
    /// The rooms the agent is in.
    #[serde(default)]
    pub rooms: BTreeSet<RoomId>,
    /// The reserved rooms that it was taken out of on purpose.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub left: BTreeSet<RoomId>,
}

/// What one agent is to every server it knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdentityFile {
    /// The agent, as servers know it.
    pub user_id: UserId,
    /// The first server it met.
    #[serde(flatten)]
    first: Identity,
    /// The other ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<Identity>,
}

impl IdentityFile {
    /// Every server's part.
    pub fn all(&self) -> impl Iterator<Item = &Identity> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The first server it met.
    pub fn first_server(&self) -> &str {
        &self.first.server
    }

    /// One server's part.
    pub fn of(&self, server: &str) -> Option<&Identity> {
        self.all().find(|identity| identity.server == server)
    }

    fn of_mut(&mut self, server: &str) -> Option<&mut Identity> {
        let mut all = std::iter::once(&mut self.first).chain(&mut self.others);
        all.find(|identity| identity.server == server)
    }
}

impl AgentHome {
    /// What the agent is to its servers, if anything is known.
    pub fn identities(&self) -> Result<Option<IdentityFile>, FileError> {
        files::read_json(&self.identity_file())
    }

    /// What the agent is to one server.
    pub fn identity(&self, server: &str) -> Result<Option<Identity>, FileError> {
        Ok(self.identities()?.and_then(|file| file.of(server).cloned()))
    }

    /// Keeps a new credential; the rooms that are known stay known.
    pub fn save_identity(&self, identity: Identity) -> Result<(), FileError> {
        self.change_identities(|file| match file {
            None => Some(IdentityFile {
                user_id: self.user_id(),
                first: identity,
                others: Vec::new(),
            }),
            Some(mut file) => {
                match file.of_mut(&identity.server) {
                    None => file.others.push(identity),
                    Some(known) => {
                        let known_before = std::mem::replace(known, identity);
                        known.rooms.extend(known_before.rooms);
                        known.left.extend(known_before.left);
                    }
                }
                Some(file)
            }
        })
    }

    /// Remembers that the agent is in a room, so that its file can be lost.
    pub fn remember_room(&self, address: &RoomAddress) -> Result<(), FileError> {
        let RoomAddress { server, room } = address;
        self.change_identity(server, |known| {
            let came_back = known.left.remove(room);
            known.rooms.insert(room.clone()) || came_back
        })
    }

    /// Forgets that the agent was in a room.
    pub fn unremember_room(&self, address: &RoomAddress) -> Result<(), FileError> {
        let RoomAddress { server, room } = address;
        self.change_identity(server, |known| known.rooms.remove(room))
    }

    /// Forgets that the agent was in a reserved room, and does not bring it there again.
    pub fn leave_behind(&self, address: &RoomAddress) -> Result<(), FileError> {
        let RoomAddress { server, room } = address;
        self.change_identity(server, |known| {
            let was_in = known.rooms.remove(room);
            known.left.insert(room.clone()) || was_in
        })
    }

    /// Changes one server's part; the change says whether there is one.
    fn change_identity(
        &self,
        server: &str,
        change: impl FnOnce(&mut Identity) -> bool,
    ) -> Result<(), FileError> {
        self.change_identities(|file| {
            let mut file = file?;
            let changed = change(file.of_mut(server)?);
            changed.then_some(file)
        })
    }

    /// Changes the file while nobody else does; nothing is written where there is no change.
    fn change_identities(
        &self,
        change: impl FnOnce(Option<IdentityFile>) -> Option<IdentityFile>,
    ) -> Result<(), FileError> {
        let path = self.identity_file();
        if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        let lock = path.with_extension("lock");
        let held = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&lock)
            .map_err(FileError::io("open", &lock))?;
        held.lock().map_err(FileError::io("lock", &lock))?;
        match change(files::read_json(&path)?) {
            Some(file) => files::write_json(&path, &file),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;

    fn identity(server: &str, token: &str) -> Identity {
        Identity {
            server: server.into(),
            identity_token: token.to_owned().into(),
            issued_at: 0,
            expires_at: 1,
            rooms: BTreeSet::new(),
            left: BTreeSet::new(),
        }
    }

    #[test]
    fn a_new_credential_keeps_the_rooms_and_the_other_servers() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home(folder.path().to_owned());
        let agent = home.agent(&"curious_otter-3a9f1c20".parse().unwrap());
        let room: RoomId = "rm_8f3kz2".parse().unwrap();
        agent.save_identity(identity("http://a", "1")).unwrap();
        agent
            .remember_room(&RoomAddress::new("http://a", &room))
            .unwrap();
        agent.save_identity(identity("http://b", "2")).unwrap();
        let bugs: RoomId = "rm_bugs".parse().unwrap();
        agent
            .leave_behind(&RoomAddress::new("http://a", &bugs))
            .unwrap();
        agent.save_identity(identity("http://a", "3")).unwrap();

        let a = agent.identity("http://a").unwrap().unwrap();
        assert_eq!(a.identity_token.expose(), "3");
        assert!(a.rooms.contains(&room));
        assert!(a.left.contains(&bugs));
        assert!(
            agent
                .identity("http://b")
                .unwrap()
                .unwrap()
                .rooms
                .is_empty()
        );

        let text = std::fs::read_to_string(agent.identity_file()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["identity_token"], "3");
        assert_eq!(json["user_id"], "ext_curious_otter-3a9f1c20");
    }
}
