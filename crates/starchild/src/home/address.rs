//! Which room is meant. Two servers may use the same id, and one may do so on purpose, so the
//! server is a part of it, and each has files of its own.

use super::AgentHome;
use protocol::RoomId;
use sha2::{Digest, Sha256};
use std::fmt;

/// A room, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomAddress {
    /// The server.
    pub server: String,
    /// The room's id there.
    pub room: RoomId,
}

impl RoomAddress {
    /// The room with this id on this server.
    pub fn new(server: &str, room: &RoomId) -> Self {
        Self {
            server: server.to_owned(),
            room: room.clone(),
        }
    }

    /// A name that no room of another server has.
    pub(super) fn full_name(&self) -> String {
        let hash = Sha256::digest(self.server.as_bytes());
        let tag: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
        format!("{}@{tag}", self.room)
    }
}

impl fmt::Display for RoomAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.room, self.server)
    }
}

impl AgentHome {
    /// What a room is called on this machine, its files included: its id for rooms of the agent's
    /// first server, and an id with the server's mark for rooms of the others.
    pub fn room_name(&self, address: &RoomAddress) -> String {
        let short = address.room.to_string();
        let full = address.full_name();
        // A file from before servers were told apart stays where it is.
        let holder = self.read_room(&short).ok().flatten();
        match holder {
            Some(file) if file.server == address.server => short,
            None if !self.has_room_file(&full) && self.is_first_server(&address.server) => short,
            _ => full,
        }
    }

    fn is_first_server(&self, server: &str) -> bool {
        let known = self.identities().ok().flatten();
        known.is_none_or(|known| known.first_server() == server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::{CursorFile, Home, Identity, RoomFile};

    fn agent(folder: &std::path::Path) -> AgentHome {
        Home::at(folder).agent(&"curious_otter-3a9f1c20".parse().unwrap())
    }

    fn address(server: &str) -> RoomAddress {
        RoomAddress::new(server, &"rm_bugs".parse().unwrap())
    }

    fn file(agent: &AgentHome, server: &str) -> RoomFile {
        RoomFile {
            room_id: "rm_bugs".parse().unwrap(),
            server: server.into(),
            user_id: agent.user_id(),
            user_name: None,
            member_token: format!("key of {server}").into(),
            issued_at: 0,
            expires_at: 1,
            joined_with: None,
            answer: None,
            left: None,
        }
    }

    fn meet(agent: &AgentHome, server: &str) {
        let identity = Identity {
            server: server.into(),
            identity_token: "x".to_owned().into(),
            issued_at: 0,
            expires_at: 1,
            rooms: Default::default(),
            left: Default::default(),
        };
        agent.save_identity(identity).unwrap();
    }

    #[test]
    fn a_room_of_the_same_id_on_another_server_has_files_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let agent = agent(folder.path());
        for server in ["http://a", "http://b"] {
            meet(&agent, server);
            // A reserved room has a cursor before it has a key.
            let seq = server.len() as i64 + i64::from(server.ends_with('b'));
            let cursor = CursorFile { seq, answer: None };
            agent.save_cursor(&address(server), &cursor).unwrap();
        }
        for server in ["http://b", "http://a"] {
            agent.save_room(&file(&agent, server)).unwrap();
        }
        for (server, seq) in [("http://a", 8), ("http://b", 9)] {
            let kept = agent.room(&address(server)).unwrap().unwrap();
            assert_eq!(kept.server, server);
            let cursor = agent.cursor(&address(server)).unwrap().unwrap();
            assert_eq!(cursor.seq, seq, "{server}");
        }
        assert_eq!(agent.room_name(&address("http://a")), "rm_bugs");
        assert_eq!(agent.rooms().unwrap().len(), 2);

        agent.forget_room(&address("http://a")).unwrap();
        assert!(agent.room(&address("http://a")).unwrap().is_none());
        assert!(agent.room(&address("http://b")).unwrap().is_some());
    }

    #[test]
    fn a_file_from_before_servers_were_told_apart_is_kept_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let agent = agent(folder.path());
        meet(&agent, "http://a");
        meet(&agent, "http://b");
        let path = agent.rooms_folder().join("rm_bugs.json");
        super::super::files::write_json(&path, &file(&agent, "http://b")).unwrap();
        assert_eq!(agent.room_name(&address("http://b")), "rm_bugs");
        agent.save_room(&file(&agent, "http://a")).unwrap();
        agent.forget_room(&address("http://b")).unwrap();
        let kept = agent.room(&address("http://a")).unwrap().unwrap();
        assert_eq!(kept.server, "http://a");
    }
}
