//! Where an agent keeps its sessions and its audit lines.

use super::Failure;
use openstarry::session::SessionStore;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Holds the path of the project that a state folder belongs to.
const PROJECT_FILE: &str = "folder";

/// The folder of one agent of one project:
/// `$STARCHILD_HOME/agents/<name>/<project>-<hash of its path>`. Two projects
/// whose agents have the same name share nothing.
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// The state folder of the agent with this name whose file is in `project`, made
    /// where it is missing.
    pub fn open(name: &str, project: &Path) -> Result<Self, Failure> {
        let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let project = project.canonicalize().map_err(|e| failed(project, e))?;
        let hash = Sha256::digest(project.as_os_str().as_encoded_bytes());
        let hash: String = hash
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let last = project.file_name().unwrap_or_default().to_string_lossy();
        let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let last: String = last.chars().filter(fits).take(40).collect();
        let folder = agents()?.join(name).join(format!("{last}-{hash}"));
        let mut make = std::fs::DirBuilder::new();
        // What was said is nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
        make.recursive(true)
            .create(&folder)
            .map_err(|e| failed(&folder, e))?;
        let of = folder.join(PROJECT_FILE);
        if !of.exists() {
            let path = project.as_os_str().as_encoded_bytes();
            std::fs::write(&of, path).map_err(|e| failed(&of, e))?;
        }
        Ok(Self(folder))
    }

    /// All state folders of this machine, with the folders they belong to.
    pub fn all() -> Result<Vec<(Self, String)>, Failure> {
        let mut folders = Vec::new();
        for name in subfolders(&agents()?) {
            for folder in subfolders(&name) {
                if let Ok(of) = std::fs::read(folder.join(PROJECT_FILE)) {
                    let of = String::from_utf8_lossy(&of).into_owned();
                    folders.push((Self(folder), of));
                }
            }
        }
        Ok(folders)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
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

fn agents() -> Result<PathBuf, Failure> {
    let home = match std::env::var_os("STARCHILD_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir()
            .ok_or("there is no home folder: set STARCHILD_HOME")?
            .join(".starchild"),
    };
    Ok(home.join("agents"))
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    let mut folders: Vec<_> = folders.collect();
    folders.sort();
    folders
}
