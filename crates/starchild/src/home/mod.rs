//! What is kept on this machine: `~/.starchild`, or the folder that `STARCHILD_HOME` names.
//!
//! ```text
//! machine-id                               only where the machine has no id of its own
//! login.json                               the key to the owner's hosted agent
//! identity/<user_id>.json                  an agent's own credential, and the rooms it is in
//! sc-chatroom/<agent>/handler.yaml         which backend answers
//! sc-chatroom/<agent>/rooms/<room>.json    the key of one room
//! sc-chatroom/<agent>/joins/<room>.json    a request to join that has no answer yet
//! sc-chatroom/<agent>/cursors/<room>.json  how far the daemon has come in it
//! sc-chatroom/<agent>/spent/<room>.json    what it has spent there today
//! sc-chatroom/<agent>/sessions/<start>/    where a backend may log
//! sc-chatroom/<agent>/agent.log            what the daemon has to say
//! sc-chatroom/<agent>/daemon.pid           held by the daemon for as long as it runs
//! ```
//!
//! `<room>` is a room's id, and `<id>@<mark of the server>` for rooms of servers that the agent met
//! later: see [`AgentHome::room_name`].

mod address;
mod attempt;
mod cursor;
pub mod files;
mod identity;
mod machine;
mod room;
mod secret;
mod spent;

pub use address::RoomAddress;
pub use attempt::JoinAttempt;
pub use cursor::{CursorFile, PreparedAnswer};
pub use files::FileError;
pub use identity::Identity;
pub use machine::{AgentIdError, agent_id};
pub use room::RoomFile;
pub use secret::Secret;
pub use spent::SpentFile;

use protocol::{AgentId, UserId};
use std::path::{Path, PathBuf};

/// The folder of everything.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

/// There is no folder to keep anything in.
#[derive(Debug, thiserror::Error)]
#[error("there is no home folder; set STARCHILD_HOME to a folder of yours")]
pub struct NoHome;

impl Home {
    /// The folder that the environment names.
    pub fn find() -> Result<Self, NoHome> {
        if let Some(home) = std::env::var_os("STARCHILD_HOME").filter(|home| !home.is_empty()) {
            return std::path::absolute(home).map(Self).map_err(|_| NoHome);
        }
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Ok(Self(home.ok_or(NoHome)?.join(".starchild")))
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// A folder of a team's own.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Where an agent's things are; it need not exist.
    pub fn agent(&self, id: &AgentId) -> AgentHome {
        AgentHome {
            home: self.clone(),
            folder: self.0.join("sc-chatroom").join(id.as_str()),
            id: id.clone(),
        }
    }

    /// The agents there are, by name.
    pub fn agents(&self) -> Result<Vec<AgentHome>, FileError> {
        let mut ids: Vec<AgentId> = files::names(&self.0.join("sc-chatroom"))?
            .into_iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        ids.sort_unstable();
        let agents = ids.iter().map(|id| self.agent(id));
        Ok(agents.filter(AgentHome::exists).collect())
    }

    /// The key to the owner's hosted agent.
    pub fn login_file(&self) -> PathBuf {
        self.0.join("login.json")
    }

    fn machine_id_file(&self) -> PathBuf {
        self.0.join("machine-id")
    }
}

/// One agent's folder.
#[derive(Debug, Clone)]
pub struct AgentHome {
    home: Home,
    folder: PathBuf,
    id: AgentId,
}

impl AgentHome {
    /// The agent.
    pub fn id(&self) -> &AgentId {
        &self.id
    }

    /// The agent's id as a member of rooms.
    pub fn user_id(&self) -> UserId {
        UserId::from(self.id.clone())
    }

    /// Whether there is such an agent.
    pub fn exists(&self) -> bool {
        self.config_file().is_file()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Which backend answers.
    pub fn config_file(&self) -> PathBuf {
        self.folder.join("handler.yaml")
    }

    /// What the daemon has to say.
    pub fn log_file(&self) -> PathBuf {
        self.folder.join("agent.log")
    }

    /// Held by the daemon for as long as it runs.
    pub fn pid_file(&self) -> PathBuf {
        self.folder.join("daemon.pid")
    }

    /// Where backends may log.
    pub fn sessions(&self) -> PathBuf {
        self.folder.join("sessions")
    }

    /// The folder of the rooms' keys.
    pub fn rooms_folder(&self) -> PathBuf {
        self.folder.join("rooms")
    }

    /// The folder of the rooms' cursors.
    pub fn cursors_folder(&self) -> PathBuf {
        self.folder.join("cursors")
    }

    /// The folder of the agents' own credentials.
    pub fn identity_folder(&self) -> PathBuf {
        self.home.0.join("identity")
    }

    fn joins_folder(&self) -> PathBuf {
        self.folder.join("joins")
    }

    fn join_file(&self, name: &str) -> PathBuf {
        self.joins_folder().join(format!("{name}.json"))
    }

    fn room_file(&self, name: &str) -> PathBuf {
        self.rooms_folder().join(format!("{name}.json"))
    }

    fn cursor_file(&self, name: &str) -> PathBuf {
        self.cursors_folder().join(format!("{name}.json"))
    }

    fn identity_file(&self) -> PathBuf {
        self.identity_folder()
            .join(format!("{}.json", self.user_id()))
    }
}
