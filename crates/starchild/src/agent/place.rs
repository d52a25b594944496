//! Where an agent keeps its sessions and its audit lines.

use super::Failure;
use openstarry::session::SessionStore;
use std::path::PathBuf;

/// The folder of one agent: `$STARCHILD_HOME/agents/<name>`.
pub struct Place(PathBuf);

impl Place {
    /// The folder of the agent with this name, made where it is missing.
    pub fn of(name: &str) -> Result<Self, Failure> {
        let home = match std::env::var_os("STARCHILD_HOME") {
            Some(home) => PathBuf::from(home),
            None => std::env::home_dir()
                .ok_or("there is no home folder: set STARCHILD_HOME")?
                .join(".starchild"),
        };
        let folder = home.join("agents").join(name);
        let mut make = std::fs::DirBuilder::new();
        // What was said is nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
        make.recursive(true)
            .create(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }

    /// The file of audit lines.
    pub fn audit(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }

    /// The lines typed before.
    pub fn typed(&self) -> PathBuf {
        self.0.join("typed.txt")
    }

    /// The sessions.
    pub fn sessions(&self) -> Result<SessionStore, Failure> {
        Ok(SessionStore::open(&self.0.join("sessions"))?)
    }
}
