//! Conversations: which are open, how much of each waits or runs, and when one
//! comes to rest. Their threads are in [`super::threads`].

use super::account::AccountId;
use super::dedup_keys::DedupKeys;
use super::ids::IdMap;
use super::threads::ThreadId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All conversations, by root thread.
#[derive(Default, Serialize, Deserialize)]
pub struct Conversations {
    conversations: IdMap<ThreadId, Conversation>,
    /// Messages of all conversations that wait or run.
    in_flight: usize,
    /// Conversations that came to rest since the last look.
    rested: Vec<ThreadId>,
    /// Accounts of conversations that are over.
    closed: Vec<AccountId>,
}

#[derive(Default, Serialize, Deserialize)]
struct Conversation {
    is_open: bool,
    in_flight: usize,
    /// Open to-dos keep a conversation alive while nothing moves.
    #[serde(rename = "watchers")]
    open_todos: usize,
    /// How often it came to rest.
    epoch: u64,
    /// What it may use in all, where that is bounded.
    account: Option<AccountId>,
    /// What its gateway calls it.
    name: Option<Arc<str>>,
    /// Dedup keys of messages that were accepted, where they have any.
    #[serde(rename = "seen")]
    dedup_keys: Option<Box<DedupKeys>>,
}

impl Conversation {
    fn is_resting(&self) -> bool {
        self.in_flight == 0 && self.open_todos == 0
    }
}

impl Conversations {
    pub(super) fn open(&mut self, root: ThreadId) {
        let conversation = Conversation {
            is_open: true,
            ..Conversation::default()
        };
        self.conversations.insert(root, conversation);
    }

    /// Its beginner wants no more answers. Says whether it is over.
    pub(super) fn close(&mut self, root: ThreadId) -> bool {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.is_open = false;
        }
        self.free_if_over(root)
    }

    /// A message of it is on its way.
    pub(super) fn enter(&mut self, root: ThreadId) -> Option<()> {
        self.conversations.get_mut(&root)?.in_flight += 1;
        self.in_flight += 1;
        Some(())
    }

    /// A message of it was dealt with. Says whether it is over.
    pub(super) fn leave(&mut self, root: ThreadId) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.update_and_check_idle(root, |conversation| {
            conversation.in_flight = conversation.in_flight.saturating_sub(1);
        })
    }

    pub fn open_todo(&mut self, root: ThreadId) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.open_todos += 1;
        }
    }

    /// One to-do less. Says whether it is over.
    pub(super) fn close_todo(&mut self, root: ThreadId) -> bool {
        self.update_and_check_idle(root, |conversation| {
            conversation.open_todos = conversation.open_todos.saturating_sub(1);
        })
    }

    /// Makes a change after which it may have come to rest, and be over.
    fn update_and_check_idle(
        &mut self,
        root: ThreadId,
        change: impl FnOnce(&mut Conversation),
    ) -> bool {
        let Some(conversation) = self.conversations.get_mut(&root) else {
            return false;
        };
        change(conversation);
        if !conversation.is_resting() {
            return false;
        }
        conversation.epoch += 1;
        self.rested.push(root);
        self.free_if_over(root)
    }

    fn free_if_over(&mut self, root: ThreadId) -> bool {
        let is_over = |c: &Conversation| !c.is_open && c.is_resting();
        if !self.conversations.get(&root).is_some_and(is_over) {
            return false;
        }
        let conversation = self.conversations.remove(&root);
        self.closed.extend(conversation.and_then(|c| c.account));
        true
    }

    /// A conversation that came to rest.
    pub fn pop_rested(&mut self) -> Option<ThreadId> {
        self.rested.pop()
    }

    /// The account of a conversation that is over.
    pub fn pop_closed(&mut self) -> Option<AccountId> {
        self.closed.pop()
    }

    /// Gives a conversation an account of its own.
    pub fn set_account(&mut self, root: ThreadId, account: AccountId) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.account = Some(account);
        }
    }

    pub fn account(&self, root: ThreadId) -> Option<AccountId> {
        self.conversations.get(&root)?.account
    }

    pub fn set_name(&mut self, root: ThreadId, name: &str) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.name = Some(name.into());
        }
    }

    pub fn name(&self, root: ThreadId) -> Option<Arc<str>> {
        self.conversations.get(&root)?.name.clone()
    }

    /// Whether a message with this dedup key was accepted before.
    pub fn has_dedup_key(&self, root: ThreadId, key: &str) -> bool {
        let conversation = self.conversations.get(&root);
        let known = conversation.and_then(|c| c.dedup_keys.as_ref());
        known.is_some_and(|known| known.contains(key))
    }

    /// A message with this dedup key was accepted.
    pub fn record_dedup_key(&mut self, root: ThreadId, key: &str) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.dedup_keys.get_or_insert_default().insert(key);
        }
    }

    pub fn is_open(&self, root: ThreadId) -> bool {
        self.conversations.get(&root).is_some_and(|c| c.is_open)
    }

    /// Those that are open.
    pub fn open_roots(&self) -> impl Iterator<Item = ThreadId> {
        let open = self.conversations.iter().filter(|(_, c)| c.is_open);
        open.map(|(root, _)| *root)
    }

    /// All of them.
    pub fn roots(&self) -> impl Iterator<Item = ThreadId> {
        self.conversations.keys().copied()
    }

    pub fn len(&self) -> usize {
        self.conversations.len()
    }

    /// Whether no message waits or runs anywhere.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether nothing of it waits, runs or is a to-do.
    pub fn is_resting(&self, root: ThreadId) -> bool {
        let conversation = self.conversations.get(&root);
        conversation.is_none_or(Conversation::is_resting)
    }

    /// Messages of it that wait or run.
    pub fn in_flight(&self, root: ThreadId) -> usize {
        self.conversations.get(&root).map_or(0, |c| c.in_flight)
    }

    /// How often it has come to rest; more than ever, once it is over.
    pub fn epoch(&self, root: ThreadId) -> u64 {
        self.conversations.get(&root).map_or(u64::MAX, |c| c.epoch)
    }
}
