//! Where a team is kept: `.starchild/` beside its file.
//!
//! ```text
//! .starchild/server/      the data of the server that is started here
//! .starchild/home/        the agents, as under ~/.starchild
//! .starchild/state.json   the rooms' ids
//! .starchild/up.json      what runs, for `starchild ps`
//! .starchild/up.pid       held for as long as the team is up
//! .starchild/logs/        what the programs have to say
//! ```

use super::UpError;
use crate::{
    daemon::log,
    home::{Home, files},
};
use protocol::RoomId;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

const FILE: &str = "starchild.yaml";
/// From this size on a log is begun anew.
const MAX_LOG_BYTES: u64 = 10 << 20;

/// A team's folder.
#[derive(Debug, Clone)]
pub struct Project {
    file: PathBuf,
    kept: PathBuf,
}

/// What was made, so that it is not made twice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Provisioned {
    /// The rooms' ids by their names, on one server.
    #[serde(default)]
    pub rooms: BTreeMap<String, RoomId>,
    /// Which agents were made, by their names in the file.
    #[serde(default)]
    pub agents: BTreeMap<String, String>,
}

impl Project {
    /// The team of a folder or of a file.
    pub fn find(path: &Path) -> Result<Self, UpError> {
        let path = std::path::absolute(path)?;
        let file = match path.is_dir() {
            true => path.join(FILE),
            false => path,
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        let kept = folder.join(".starchild");
        Ok(Self { file, kept })
    }

    /// `starchild.yaml`.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The folder that it is in.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }

    /// Makes what everything else is in, for the owner alone, and out of sight of git.
    pub fn prepare(&self) -> Result<(), UpError> {
        files::make_folder(&self.logs())?;
        let ignore = self.kept.join(".gitignore");
        if !ignore.exists() {
            files::write(&ignore, b"*\n")?;
        }
        Ok(())
    }

    /// The server's data.
    pub fn server_data(&self) -> PathBuf {
        self.kept.join("server")
    }

    /// Where the agents are.
    pub fn home(&self) -> Home {
        Home::at(&self.kept.join("home"))
    }

    /// What the programs have to say.
    pub fn logs(&self) -> PathBuf {
        self.kept.join("logs")
    }

    /// Begins logs anew that have grown large; what they held is kept beside them. The programs hold
    /// the files open and go on writing at their end.
    pub fn rotate_logs(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.logs())? {
            let path = entry?.path();
            let is_log = path.extension().is_some_and(|end| end == "log");
            if is_log && fs::metadata(&path)?.len() > MAX_LOG_BYTES {
                fs::copy(&path, log::older(&path))?;
                OpenOptions::new().write(true).open(&path)?.set_len(0)?;
            }
        }
        Ok(())
    }

    /// Held for as long as the team is up.
    pub fn pid_file(&self) -> PathBuf {
        self.kept.join("up.pid")
    }

    /// What runs.
    pub fn status_file(&self) -> PathBuf {
        self.kept.join("up.json")
    }

    /// What was made.
    pub fn provisioned(&self) -> Result<Provisioned, UpError> {
        Ok(files::read_json(&self.kept.join("state.json"))?.unwrap_or_default())
    }

    /// Keeps what was made.
    pub fn save_provisioned(&self, provisioned: &Provisioned) -> Result<(), UpError> {
        Ok(files::write_json(
            &self.kept.join("state.json"),
            provisioned,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_log_that_has_grown_large_is_begun_anew_under_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let path = project.logs().join("server.log");
        let mut writer = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        let line = vec![b'x'; MAX_LOG_BYTES as usize + 1];
        writer.write_all(&line).unwrap();
        project.rotate_logs().unwrap();
        writer.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read(log::older(&path)).unwrap(), line);
        project.rotate_logs().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
