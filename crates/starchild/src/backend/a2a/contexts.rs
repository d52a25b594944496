//! Which conversation with the agent belongs to which room. It is kept over restarts: the agent
//! remembers it too.

use crate::home::files;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// The longest name that is kept; an agent that gives longer ones gets no second message of a
/// conversation.
const MAX_ID_BYTES: usize = 1024;
/// The most rooms.
const MAX_ROOMS: usize = 1000;

/// A2A's name for a conversation with the agent (a context), and the task in it that waits for
/// another message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteContext {
    pub context_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The message that it was told last.
    #[serde(default)]
    pub seq: i64,
    /// The version of the room's rules that it was told.
    #[serde(default)]
    pub rules_version: Option<i64>,
}

/// The contexts of all rooms.
pub struct Contexts {
    path: PathBuf,
    known: Mutex<BTreeMap<String, RemoteContext>>,
}

impl Contexts {
    /// Those in this file. One that cannot be read is no more than forgotten.
    pub fn open(path: PathBuf) -> Self {
        let known = files::read_json(&path).ok().flatten().unwrap_or_default();
        Self {
            path,
            known: Mutex::new(known),
        }
    }

    /// The context of a room.
    pub fn get(&self, room: &str) -> RemoteContext {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(room).cloned().unwrap_or_default()
    }

    /// Remembers it.
    pub fn keep(&self, room: &str, mut context: RemoteContext) {
        let fits = |id: &String| id.len() <= MAX_ID_BYTES;
        context.context_id = context.context_id.filter(fits);
        context.task_id = context.task_id.filter(fits);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(room) == Some(&context) {
            return;
        }
        if known.len() >= MAX_ROOMS {
            known.pop_first();
        }
        known.insert(room.to_owned(), context);
        if let Err(error) = files::write_json(&self.path, &*known) {
            tracing::warn!(%error, "conversations with the agent are not kept over a restart");
        }
    }
}
