//! The undo journal: what files held before they were changed, so that a change can be undone.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The most that is kept; the oldest goes first.
const MAX_CHANGES: usize = 100;
const MAX_BYTES: usize = 32 << 20;

/// One change of one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    /// Under which it is kept.
    pub(super) id: String,
    pub(super) session: String,
    /// The file, from the workspace.
    pub(super) path: String,
    /// What it held, as text or base64; nothing where there was no file.
    pub(super) before: Option<Held>,
    /// A hash of what it held after.
    pub(super) after: u64,
}

/// What a file held.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Held {
    #[serde(with = "base64_bytes")]
    pub(super) bytes: Vec<u8>,
    /// Its permissions.
    pub(super) mode: u32,
}

/// The latest changes, the newest last.
#[derive(Default)]
pub(super) struct UndoJournal {
    changes: Mutex<VecDeque<Change>>,
    folder: Option<PathBuf>,
}

impl UndoJournal {
    /// The changes that are kept in a folder.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut names: Vec<PathBuf> = fs::read_dir(folder)?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        // Their names begin with the time.
        names.sort();
        let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
        let newest = names.iter().skip(names.len().saturating_sub(MAX_CHANGES));
        Ok(Self {
            changes: Mutex::new(newest.filter_map(read).collect()),
            folder: Some(folder.into()),
        })
    }

    /// Keeps a change. It is on the disk before the file is touched.
    pub(super) fn push(&self, change: Change) -> io::Result<()> {
        if let Some(folder) = &self.folder {
            let mut draft = tempfile::NamedTempFile::new_in(folder)?;
            draft.write_all(&serde_json::to_vec(&change)?)?;
            draft
                .persist(file(folder, &change.id))
                .map_err(|error| error.error)?;
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.push_back(change);
        let size = |change: &Change| change.before.as_ref().map_or(0, |held| held.bytes.len());
        while changes.len() > MAX_CHANGES || changes.iter().map(size).sum::<usize>() > MAX_BYTES {
            match changes.pop_front() {
                Some(old) => self.forget(&old.id),
                None => break,
            }
        }
        Ok(())
    }

    /// The latest change of a session.
    pub(super) fn last(&self, session: &str) -> Option<Change> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latest = changes.iter().rev();
        latest.find(|change| change.session == session).cloned()
    }

    /// Forgets a change that was undone, or that was not made after all.
    pub(super) fn remove(&self, id: &str) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.retain(|change| change.id != id);
        self.forget(id);
    }

    fn forget(&self, id: &str) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_file(file(folder, id));
        }
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}
