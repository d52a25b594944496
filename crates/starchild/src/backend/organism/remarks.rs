//! What an organism says without being asked: the answers to its schedules. Each is on the disk from
//! before the organism may forget it until every room has it.

use super::payload;
use crate::{
    backend::{Remark, Reply},
    home::{FileError, files},
};
use agentserver::{
    Pump,
    gateway::{Answer, DeliveryError, Outlet},
    system,
};
use futures_util::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeSet, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Remarks that wait for rooms; the oldest gives way.
const MAX_WAITING: usize = 100;

/// The remarks of an organism. Clones are the same.
#[derive(Clone)]
pub struct Remarks(Arc<RemarksInner>);

struct RemarksInner {
    path: PathBuf,
    kept: Mutex<RemarksFile>,
    changed: Notify,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct RemarksFile {
    /// The rooms that it speaks in.
    rooms: BTreeSet<String>,
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Waiting {
    id: String,
    text: String,
    /// Those that do not have it yet.
    rooms: BTreeSet<String>,
}

impl Remarks {
    /// Those that are kept.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        let path = folder.join("remarks.json");
        let kept = files::read_json(&path)?.unwrap_or_default();
        Ok(Self(Arc::new(RemarksInner {
            path,
            kept: Mutex::new(kept),
            changed: Notify::new(),
        })))
    }

    /// Waits for the next one of a room. It stays until it is removed.
    pub async fn next(&self, room: &str) -> Remark {
        loop {
            let changed = self.0.changed.notified();
            let is_new = !self.lock().rooms.contains(room);
            if is_new && let Err(error) = self.change(|kept| kept.rooms.insert(room.to_owned())) {
                tracing::error!(%error, "the room is not kept");
            }
            let mut waiting = self.lock().waiting.clone().into_iter();
            if let Some(first) = waiting.find(|one| one.rooms.contains(room)) {
                return Remark {
                    reply_to_seq: None,
                    id: first.id,
                    text: first.text,
                };
            }
            changed.await;
        }
    }

    /// A room has it.
    pub fn remove(&self, room: &str, id: &str) -> Result<(), FileError> {
        self.change(|kept| {
            for one in kept.waiting.iter_mut().filter(|one| one.id == id) {
                one.rooms.remove(room);
            }
            kept.waiting.retain(|one| !one.rooms.is_empty());
        })
    }

    fn add(&self, id: String, text: String) -> Result<(), FileError> {
        self.change(|kept| {
            let rooms = kept.rooms.clone();
            if rooms.is_empty() || kept.waiting.iter().any(|one| one.id == id) {
                return;
            }
            if kept.waiting.len() >= MAX_WAITING {
                tracing::warn!("too much waits to be said; the oldest is left out");
                kept.waiting.pop_front();
            }
            kept.waiting.push_back(Waiting { id, text, rooms });
        })?;
        self.0.changed.notify_waiters();
        Ok(())
    }

    /// Changes what is kept, on the disk first.
    fn change<T>(&self, change: impl FnOnce(&mut RemarksFile) -> T) -> Result<(), FileError> {
        let mut kept = self.lock();
        let mut changed = kept.clone();
        change(&mut changed);
        files::write_json(&self.0.path, &changed)?;
        *kept = changed;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, RemarksFile> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the answers to schedules go: into every room that the organism is in.
#[derive(Clone)]
pub struct ToRooms {
    pub pump: Pump,
    pub remarks: Remarks,
}

impl Outlet for ToRooms {
    fn deliver<'a>(&'a self, answer: &'a Answer) -> BoxFuture<'a, Result<(), DeliveryError>> {
        let said = &answer.message;
        let words = payload::words(&self.pump.organism(), &said.payload);
        let delivered = if *said.from == *system::NAME {
            tracing::warn!("a scheduled part of the organism failed: {words}");
            Ok(())
        } else {
            match Reply::from_output(&words) {
                Reply::Text(text) => self.remarks.add(format!("schedule-{}", said.id), text),
                Reply::Silent => Ok(()),
            }
        };
        let delivered = delivered.map_err(|error| DeliveryError::Retry(error.to_string()));
        std::future::ready(delivered).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_room_gets_a_remark_once_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let remarks = Remarks::open(folder.path()).unwrap();
        remarks.add("0".into(), "to nobody".into()).unwrap();
        for room in ["a", "b"] {
            assert!(remarks.next(room).now_or_never().is_none());
        }
        remarks.add("1".into(), "one".into()).unwrap();
        remarks.add("1".into(), "one again".into()).unwrap();
        assert_eq!(remarks.next("a").await.text, "one");
        remarks.remove("a", "1").unwrap();
        let remarks = Remarks::open(folder.path()).unwrap();
        assert!(remarks.next("a").now_or_never().is_none());
        assert!(remarks.next("c").now_or_never().is_none(), "it came later");
        assert_eq!(remarks.next("b").await.text, "one");
        remarks.remove("b", "1").unwrap();
        assert!(remarks.next("b").now_or_never().is_none());
        for n in 0..2 * MAX_WAITING {
            remarks.add(format!("many-{n}"), "x".into()).unwrap();
        }
        assert_eq!(remarks.lock().waiting.len(), MAX_WAITING);
    }
}
