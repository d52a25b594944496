//! What an owner allowed for good, in a file of the agent's folder: it outlives the agent's process.

use crate::home::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How many calls an owner may allow for good.
const MAX_GRANTS: usize = 1000;
/// How much of a call the file shows to people.
const MAX_SHOWN: usize = 200;

/// Calls that need no further yes, each in one room.
#[derive(Debug)]
pub struct Grants {
    path: PathBuf,
    all: Mutex<Vec<Grant>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Grant {
    room: String,
    /// What it is about, for whoever reads the file.
    what: String,
    /// Of all that it is about.
    sha256: String,
}

impl Grants {
    /// Those that are kept. A file that cannot be read grants nothing.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join("granted.json");
        let all = files::read_json(&path).unwrap_or_else(|error| {
            tracing::warn!(%error, "what was allowed for good is asked for again");
            None
        });
        Self {
            path,
            all: Mutex::new(all.unwrap_or_default()),
        }
    }

    /// Whether the owner allowed this in this room.
    pub fn contains(&self, room: &str, subject: &str) -> bool {
        let hash = hash(subject);
        let all = self.lock();
        all.iter().any(|one| one.room == room && one.sha256 == hash)
    }

    /// Keeps one.
    pub fn add(&self, room: &str, subject: &str) {
        let mut all = self.lock();
        if all.len() >= MAX_GRANTS {
            tracing::warn!(
                "more than {MAX_GRANTS} calls are allowed for good; this one only this once"
            );
            return;
        }
        let what = subject.replace('\0', " ");
        all.push(Grant {
            room: room.to_owned(),
            what: what.trim_end().chars().take(MAX_SHOWN).collect(),
            sha256: hash(subject),
        });
        if let Err(error) = files::write_json(&self.path, &*all) {
            tracing::error!(%error, "what was allowed for good is forgotten with this process");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(subject: &str) -> String {
    let hash = Sha256::digest(subject.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_for_one_call_in_one_room_and_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let grants = Grants::open(folder.path());
        grants.add("rm_a", "execute\0ls\0");
        let grants = Grants::open(folder.path());
        assert!(grants.contains("rm_a", "execute\0ls\0"));
        assert!(!grants.contains("rm_b", "execute\0ls\0"));
        assert!(!grants.contains("rm_a", "execute\0ls -a\0"));
        std::fs::write(folder.path().join("granted.json"), "[").unwrap();
        assert!(!Grants::open(folder.path()).contains("rm_a", "execute\0ls\0"));
    }
}
