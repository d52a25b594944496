//! Calls that wait for a yes, and the answers to them. In a folder they outlive
//! the process, and any process that can reach the folder may answer.

use super::{Answer, Consent};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

const MAX_FILE: u64 = 16 << 20;
/// How often a folder is looked at for an answer from another process.
const LOOK: Duration = Duration::from_millis(250);

/// Why a question could not be kept or answered.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// Nothing waits under this id.
    #[error("no call waits under {0:?}")]
    Unknown(String),
    /// Someone was faster.
    #[error("{0} is answered already")]
    Answered(String),
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The questions of an agent. Clones are the same.
#[derive(Clone)]
pub struct Consents {
    storage: Arc<Storage>,
    answered: Arc<Notify>,
}

enum Storage {
    Memory(Mutex<BTreeMap<String, (Consent, Option<Answer>)>>),
    Folder(PathBuf),
}

impl Default for Consents {
    fn default() -> Self {
        Self::at(Storage::Memory(Mutex::default()))
    }
}

impl Consents {
    /// Questions that are kept in a folder.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self::at(Storage::Folder(folder.into())))
    }

    fn at(storage: Storage) -> Self {
        Self {
            storage: Arc::new(storage),
            answered: Arc::default(),
        }
    }

    /// The questions of a session that have no answer yet, the oldest first.
    pub fn pending(&self, session: &str) -> Vec<Consent> {
        let mut pending = self.all_pending();
        pending.retain(|consent| consent.session == session);
        pending
    }

    /// The questions of all sessions that have no answer yet, the oldest first.
    pub fn all_pending(&self) -> Vec<Consent> {
        let mut pending: Vec<Consent> = match self.storage.as_ref() {
            Storage::Memory(map) => {
                let map = map.lock().unwrap_or_else(PoisonError::into_inner);
                let open = map.values().filter(|(_, answer)| answer.is_none());
                open.map(|(consent, _)| consent.clone()).collect()
            }
            Storage::Folder(folder) => questions(folder)
                .filter(|path| !path.with_extension("answer").exists())
                .filter_map(|path| read(&path))
                .collect(),
        };
        pending.sort_by(|a, b| (&a.asked_at, &a.id).cmp(&(&b.asked_at, &b.id)));
        pending
    }

    /// Answers a question. The first answer counts.
    pub fn answer(&self, id: &str, answer: Answer) -> Result<(), ConsentError> {
        let unknown = || ConsentError::Unknown(crate::pain::excerpt(id, 64).into());
        match self.storage.as_ref() {
            Storage::Memory(map) => {
                let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
                let (_, slot) = map.get_mut(id).ok_or_else(unknown)?;
                if slot.is_some() {
                    return Err(ConsentError::Answered(id.into()));
                }
                *slot = Some(answer);
            }
            Storage::Folder(folder) => {
                if !is_id(id) || !question(folder, id).exists() {
                    return Err(unknown());
                }
                let text = serde_json::to_vec(&answer).map_err(io::Error::from)?;
                let mut draft = tempfile::NamedTempFile::new_in(folder)?;
                draft.write_all(&text)?;
                draft.as_file().sync_all()?;
                match draft.persist_noclobber(reply(folder, id)) {
                    Ok(_) => {}
                    Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(ConsentError::Answered(id.into()));
                    }
                    Err(error) => return Err(error.error.into()),
                }
            }
        }
        self.answered.notify_waiters();
        Ok(())
    }

    /// Keeps a question until it is withdrawn. One that is kept already stays,
    /// with its answer.
    pub(super) fn keep(&self, consent: &Consent) -> Result<(), ConsentError> {
        match self.storage.as_ref() {
            Storage::Memory(map) => {
                let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
                map.entry(consent.id.clone())
                    .or_insert_with(|| (consent.clone(), None));
            }
            Storage::Folder(folder) => {
                let text = serde_json::to_vec(consent).map_err(io::Error::from)?;
                let mut draft = tempfile::NamedTempFile::new_in(folder)?;
                draft.write_all(&text)?;
                draft.as_file().sync_all()?;
                let kept = draft.persist_noclobber(question(folder, &consent.id));
                if let Err(error) = kept
                    && error.error.kind() != io::ErrorKind::AlreadyExists
                {
                    return Err(error.error.into());
                }
            }
        }
        Ok(())
    }

    /// Waits for the answer to a question that is kept.
    pub(super) async fn answered(&self, id: &str) -> Answer {
        loop {
            let told = self.answered.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if let Some(answer) = self.look(id) {
                return answer;
            }
            // An answer from another process tells nobody here.
            let _ = tokio::time::timeout(LOOK, told).await;
        }
    }

    fn look(&self, id: &str) -> Option<Answer> {
        match self.storage.as_ref() {
            Storage::Memory(map) => {
                let map = map.lock().unwrap_or_else(PoisonError::into_inner);
                map.get(id)?.1.clone()
            }
            Storage::Folder(folder) => read(&reply(folder, id)),
        }
    }

    /// Forgets a question and its answer.
    pub(crate) fn withdraw(&self, id: &str) {
        match self.storage.as_ref() {
            Storage::Memory(map) => {
                let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
                map.remove(id);
            }
            Storage::Folder(folder) => {
                // The question first: without it nobody can answer any more.
                let _ = fs::remove_file(question(folder, id));
                let _ = fs::remove_file(reply(folder, id));
            }
        }
    }

    /// Forgets all questions of a session, answered or not: its turn was given
    /// up.
    pub(crate) fn withdraw_all(&self, session: &str) {
        match self.storage.as_ref() {
            Storage::Memory(map) => {
                let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
                map.retain(|_, (consent, _)| consent.session != session);
            }
            Storage::Folder(folder) => {
                let all = questions(folder).filter_map(|path| read::<Consent>(&path));
                all.filter(|consent| consent.session == session)
                    .for_each(|consent| self.withdraw(&consent.id));
            }
        }
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn question(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

fn reply(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.answer"))
}

fn questions(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "json"))
}

/// A file that was written whole or not at all.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    let mut text = Vec::new();
    let file = OpenOptions::new().read(true).open(path).ok()?;
    file.take(MAX_FILE).read_to_end(&mut text).ok()?;
    let read = serde_json::from_slice(&text);
    read.inspect_err(|error| tracing::warn!(path = %path.display(), %error, "left unread"))
        .ok()
}
