//! Sessions in files. A file is replaced in one step, so that a crash leaves
//! the old session or the new one.

use super::state::SessionState;
use crate::segment::{ContentSegment, joined_text};
use serde::Deserialize;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const MAX_FILE: u64 = 64 << 20;

/// Why a session could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The id could not be a file's name.
    #[error("{0:?} is no id of a session")]
    Id(String),
    /// There is none.
    #[error("there is no session to resume")]
    None,
    /// There is none with this id.
    #[error("there is no session {0} here")]
    Unknown(String),
    /// Another process has it open.
    #[error("the session {0} is open elsewhere")]
    Busy(String),
    /// The file cannot be read.
    #[error("the session file {path} cannot be read: {why}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A folder of sessions.
#[derive(Clone, Debug)]
pub struct SessionStore(PathBuf);

/// What a list tells of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The id.
    pub id: String,
    /// When it was saved last.
    pub changed: SystemTime,
    /// How many turns it has.
    pub turns: usize,
    /// What the user said first.
    pub first: String,
    /// Whether calls wait for a yes.
    pub waits: bool,
}

/// As much of a session's file as a list needs.
#[derive(Default, Deserialize)]
struct Outline {
    #[serde(default)]
    history: OutlineHistory,
    #[serde(default)]
    deciding: bool,
}

#[derive(Default, Deserialize)]
struct OutlineHistory {
    #[serde(default)]
    turns: Vec<OutlineTurn>,
}

#[derive(Deserialize)]
struct OutlineTurn {
    input: Vec<ContentSegment>,
}

/// A session that is open here, and nowhere else.
#[derive(Debug)]
pub struct OpenSession {
    folder: PathBuf,
    path: PathBuf,
    _lock: File,
}

impl SessionStore {
    /// Opens the folder, and makes it where it is missing.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder)?;
        Ok(Self(folder.into()))
    }

    /// A new session.
    pub fn create(&self, id: &str) -> Result<(SessionState, OpenSession), StoreError> {
        Ok((SessionState::new(id), self.lock(id)?))
    }

    /// A session that was saved: this one, or the latest.
    pub fn resume(&self, id: Option<&str>) -> Result<(SessionState, OpenSession), StoreError> {
        let id = match id {
            Some(id) => id.to_owned(),
            None => self.latest()?,
        };
        let open = self.lock(&id)?;
        let unreadable = |why: String| StoreError::Unreadable {
            path: open.path.clone(),
            why,
        };
        let file = match File::open(&open.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The lock made a file where nothing was.
                let _ = fs::remove_file(open.path.with_extension("lock"));
                return Err(StoreError::Unknown(id));
            }
            file => file?,
        };
        let mut text = String::new();
        file.take(MAX_FILE + 1)
            .read_to_string(&mut text)
            .map_err(|error| unreadable(error.to_string()))?;
        if text.len() as u64 > MAX_FILE {
            return Err(unreadable(format!("over {MAX_FILE} bytes")));
        }
        let mut state: SessionState =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        state.id = id;
        state.recover();
        Ok((state, open))
    }

    /// All sessions, the latest first. One that cannot be read has no words.
    pub fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let mut list = Vec::new();
        for (changed, id) in self.files()? {
            let file = File::open(self.0.join(format!("{id}.json")))?;
            let outline: Outline = serde_json::from_reader(io::BufReader::new(file.take(MAX_FILE)))
                .unwrap_or_default();
            let turns = &outline.history.turns;
            let first = turns.first().map(|turn| joined_text(&turn.input));
            list.push(SessionInfo {
                id,
                changed,
                turns: turns.len(),
                first: first.unwrap_or_default(),
                waits: outline.deciding,
            });
        }
        list.sort_by_key(|info| std::cmp::Reverse(info.changed));
        Ok(list)
    }

    fn latest(&self) -> Result<String, StoreError> {
        let latest = self.files()?.into_iter().max();
        latest.map(|(_, id)| id).ok_or(StoreError::None)
    }

    fn files(&self) -> Result<Vec<(SystemTime, String)>, StoreError> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            let id = path.file_stem().and_then(|stem| stem.to_str());
            if let (Some("json"), Some(id)) = (path.extension().and_then(|end| end.to_str()), id) {
                files.push((fs::metadata(&path)?.modified()?, id.to_owned()));
            }
        }
        Ok(files)
    }

    fn lock(&self, id: &str) -> Result<OpenSession, StoreError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || id.len() > 64 || !id.chars().all(fits) {
            return Err(StoreError::Id(crate::pain::excerpt(id, 64).into()));
        }
        let lock = File::create(self.0.join(format!("{id}.lock")))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy(id.into())),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        Ok(OpenSession {
            folder: self.0.clone(),
            path: self.0.join(format!("{id}.json")),
            _lock: lock,
        })
    }
}

impl OpenSession {
    /// Saves the state that was written as `json`. Waits for the disk.
    pub fn save(&self, json: &[u8]) -> Result<(), StoreError> {
        let mut draft = tempfile::NamedTempFile::new_in(&self.folder)?;
        draft.write_all(json)?;
        draft.as_file().sync_all()?;
        draft.persist(&self.path).map_err(|error| error.error)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_session_is_resumed_and_open_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::open(folder.path()).unwrap();
        assert!(matches!(store.resume(None), Err(StoreError::None)));
        let (mut state, open) = store.create("one").unwrap();
        state.history.begin(vec![ContentSegment::text("hello")]);
        open.save(&serde_json::to_vec(&state).unwrap()).unwrap();
        assert!(matches!(
            store.resume(Some("one")),
            Err(StoreError::Busy(_))
        ));
        drop(open);
        let (back, _open) = store.resume(None).unwrap();
        assert_eq!(back.id, "one");
        assert_eq!(back.history, state.history);
    }

    #[test]
    fn a_list_tells_how_each_session_began() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::open(folder.path()).unwrap();
        let (mut state, open) = store.create("one").unwrap();
        state.history.begin(vec![ContentSegment::text("hello")]);
        open.save(&serde_json::to_vec(&state).unwrap()).unwrap();
        fs::write(folder.path().join("bad.json"), "{").unwrap();
        let mut list = store.list().unwrap();
        list.sort_by(|a, b| a.id.cmp(&b.id));
        let told = list
            .iter()
            .map(|info| (info.id.as_str(), info.turns, info.first.as_str()));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [("bad", 0, ""), ("one", 1, "hello")]
        );
        assert!(matches!(
            store.resume(Some("two")),
            Err(StoreError::Unknown(_))
        ));
    }

    #[test]
    fn ids_that_leave_the_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::open(folder.path()).unwrap();
        for id in ["", "../x", "a/b", "a.b", &"x".repeat(65)] {
            assert!(matches!(store.create(id), Err(StoreError::Id(_))), "{id}");
        }
    }

    #[test]
    fn a_broken_file_is_told_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::open(folder.path()).unwrap();
        let deep = format!("{{\"id\":\"x\",\"history\":{}", "[".repeat(100_000));
        for text in ["", "{", "[]", deep.as_str()] {
            fs::write(folder.path().join("bad.json"), text).unwrap();
            assert!(matches!(
                store.resume(Some("bad")),
                Err(StoreError::Unreadable { .. })
            ));
            assert_eq!(
                fs::read_to_string(folder.path().join("bad.json")).unwrap(),
                text
            );
        }
    }
}
