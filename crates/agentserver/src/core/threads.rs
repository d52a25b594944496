//! Threads: opaque ids over private call chains.
//!
//! A conversation is a tree. Its root is whoever began it; every other thread
//! is one listener called by the thread above it, so the path from the root is
//! the call chain. Nothing outside this file sees a path. Calling the same peer
//! again from the same thread finds the same sub-thread; answering ends the
//! sub-threads; a listener that calls itself stays where it is.

use super::account::AccountId;
use super::conversations::Conversations;
use super::ids::{IdMap, Ids, opaque_id};
use super::notes::{Note, Notes};
use super::overview::OpenThread;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[cfg(test)]
mod tests;

opaque_id! {
    /// A thread's id: opaque, unguessable, unique over all conversations.
    pub struct ThreadId;
}

impl ThreadId {
    /// The id as a number.
    pub fn number(self) -> u128 {
        self.0.as_u128()
    }

    /// The id as it is written.
    pub(crate) fn text(self) -> Arc<str> {
        Arc::from(&*self.0.hyphenated().encode_lower(&mut [0; 36]))
    }
}

/// A thread that ended, and whose it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub owner: Arc<str>,
    pub thread: ThreadId,
    /// Whether messages of it wait or run.
    pub was_busy: bool,
}

#[derive(Default, Serialize, Deserialize)]
pub struct Threads {
    ids: Ids,
    threads: IdMap<ThreadId, Thread>,
    #[serde(flatten)]
    pub conversations: Conversations,
}

#[derive(Serialize, Deserialize)]
struct Thread {
    root: ThreadId,
    parent: Option<ThreadId>,
    /// The key of the listener, or of the gateway at the root.
    owner: Arc<str>,
    depth: usize,
    children: Vec<ThreadId>,
    /// Messages of this thread that wait or are being handled.
    busy: usize,
    /// Whether one of them has its turn; the others wait for it.
    has_turn: bool,
    /// The call that is being worked on; the next one waits for its end.
    call: Option<AccountId>,
    /// Refusals since a message of this thread last went through.
    refusals: u32,
    /// What its listener keeps for it, where it keeps anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notes: Option<Arc<Notes>>,
}

impl Threads {
    /// Begins a conversation; the root thread is the caller's own.
    pub fn open(&mut self, owner: Arc<str>) -> ThreadId {
        let root = ThreadId::from(self.ids.next());
        self.conversations.open(root);
        self.threads.insert(root, Thread::new(root, None, owner, 0));
        root
    }

    /// The thread in which `target` works for `thread`: the one it had before,
    /// unless each call is to have its own. `None` over the depth limit.
    pub fn call(
        &mut self,
        thread: ThreadId,
        target: &Arc<str>,
        is_shared: bool,
        max_depth: usize,
    ) -> Option<ThreadId> {
        let caller = self.threads.get(&thread)?;
        if caller.owner == *target && caller.parent.is_some() {
            return Some(thread);
        }
        let known = caller
            .children
            .iter()
            .find(|id| is_shared && self.is_owned_by(**id, target))
            .copied();
        if known.is_some() {
            return known;
        }
        self.call_apart(thread, target, max_depth)
    }

    /// A new thread in which `target` works for `thread`; `None` over the depth
    /// limit.
    pub fn call_apart(
        &mut self,
        thread: ThreadId,
        target: &Arc<str>,
        max_depth: usize,
    ) -> Option<ThreadId> {
        let caller = self.threads.get(&thread)?;
        let (root, depth) = (caller.root, caller.depth + 1);
        if depth > max_depth {
            return None;
        }
        let id = ThreadId::from(self.ids.next());
        self.threads
            .insert(id, Thread::new(root, Some(thread), target.clone(), depth));
        if let Some(caller) = self.threads.get_mut(&thread) {
            caller.children.push(id);
        }
        Some(id)
    }

    /// Ends the sub-threads of a thread that answers, and gives its caller's thread.
    pub fn answer(&mut self, thread: ThreadId, ended: &mut Vec<Ended>) -> Option<ThreadId> {
        let children = std::mem::take(&mut self.threads.get_mut(&thread)?.children);
        for child in children {
            self.end(child, ended);
        }
        self.parent(thread)
    }

    fn end(&mut self, thread: ThreadId, ended: &mut Vec<Ended>) {
        let mut open = vec![thread];
        while let Some(thread) = open.pop() {
            if let Some(Thread {
                owner,
                children,
                busy,
                ..
            }) = self.threads.remove(&thread)
            {
                open.extend(children);
                ended.push(Ended {
                    owner,
                    thread,
                    was_busy: busy > 0,
                });
            }
        }
    }

    /// The beginner of a conversation wants no more answers.
    pub fn close(&mut self, root: ThreadId, ended: &mut Vec<Ended>) {
        if self.conversations.close(root) {
            self.end(root, ended);
        }
    }

    /// A message of this thread is on its way.
    pub fn enter(&mut self, thread: ThreadId) -> Option<()> {
        let thread = self.threads.get_mut(&thread)?;
        self.conversations.enter(thread.root)?;
        thread.busy += 1;
        Some(())
    }

    /// A message of this thread was dealt with.
    pub fn leave(&mut self, thread: ThreadId, root: ThreadId, ended: &mut Vec<Ended>) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.busy = thread.busy.saturating_sub(1);
        }
        if self.conversations.leave(root) {
            self.end(root, ended);
        }
    }

    /// A to-do of this conversation is closed.
    pub fn close_todo(&mut self, root: ThreadId, ended: &mut Vec<Ended>) {
        if self.conversations.close_todo(root) {
            self.end(root, ended);
        }
    }

    /// Takes the thread's turn for one message; not while another has it.
    pub fn take_turn(&mut self, thread: ThreadId) -> bool {
        let thread = self.threads.get_mut(&thread);
        thread.is_none_or(|thread| !std::mem::replace(&mut thread.has_turn, true))
    }

    /// The message that had the turn is done with.
    pub fn end_turn(&mut self, thread: ThreadId) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.has_turn = false;
        }
    }

    /// Begins a call, or goes on with it; not while another is worked on.
    pub fn begin_call(&mut self, thread: ThreadId, call: AccountId) -> bool {
        let thread = self.threads.get_mut(&thread);
        thread.is_none_or(|thread| *thread.call.get_or_insert(call) == call)
    }

    /// The call is done with.
    pub fn end_call(&mut self, thread: ThreadId) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.call = None;
        }
    }

    /// Ends one thread and all below it.
    pub fn end_thread(&mut self, thread: ThreadId, ended: &mut Vec<Ended>) {
        if let Some(parent) = self.parent(thread).and_then(|id| self.threads.get_mut(&id)) {
            parent.children.retain(|child| *child != thread);
        }
        self.end(thread, ended);
    }

    /// An id for something else that belongs to a thread.
    pub fn next_id(&mut self) -> uuid::Uuid {
        self.ids.next()
    }

    /// The conversations that are open, and whose they are.
    pub fn open_conversations(&self) -> impl Iterator<Item = (ThreadId, &Arc<str>)> {
        let open = self.conversations.open_roots();
        open.filter_map(|root| Some((root, &self.threads.get(&root)?.owner)))
    }

    pub fn is_alive(&self, thread: ThreadId) -> bool {
        self.threads.contains_key(&thread)
    }

    pub fn is_busy(&self, thread: ThreadId) -> bool {
        self.threads.get(&thread).is_some_and(|t| t.busy > 0)
    }

    pub fn is_owned_by(&self, thread: ThreadId, owner: &str) -> bool {
        self.threads
            .get(&thread)
            .is_some_and(|t| *t.owner == *owner)
    }

    pub fn owns_any(&self, owner: &str) -> bool {
        self.threads.values().any(|t| *t.owner == *owner)
    }

    pub fn owner(&self, thread: ThreadId) -> Option<Arc<str>> {
        self.threads.get(&thread).map(|t| t.owner.clone())
    }

    pub fn parent(&self, thread: ThreadId) -> Option<ThreadId> {
        self.threads.get(&thread)?.parent
    }

    pub fn root(&self, thread: ThreadId) -> Option<ThreadId> {
        self.threads.get(&thread).map(|t| t.root)
    }

    /// Counts a refusal, and says whether the thread has had too many in a row;
    /// the next call of it begins anew.
    pub fn refuse(&mut self, thread: ThreadId, limit: u32) -> bool {
        self.threads.get_mut(&thread).is_none_or(|thread| {
            thread.refusals += 1;
            let is_too_many = thread.refusals > limit;
            if is_too_many {
                thread.refusals = 0;
            }
            is_too_many
        })
    }

    /// Keeps something for a thread, while it lives.
    pub fn note(&mut self, thread: ThreadId, notes: &[Note]) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            for note in notes {
                Arc::make_mut(thread.notes.get_or_insert_default()).add(note);
            }
        }
    }

    /// What is kept for a thread.
    pub fn notes(&self, thread: ThreadId) -> Option<Arc<Notes>> {
        self.threads.get(&thread)?.notes.clone()
    }

    pub fn went_through(&mut self, thread: ThreadId) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.refusals = 0;
        }
    }

    /// The threads that live, each after the one that called it.
    pub fn overview(&self) -> Vec<OpenThread> {
        let mut roots: Vec<_> = self.conversations.roots().collect();
        roots.sort_unstable_by(|a, b| b.cmp(a));
        let mut threads = Vec::new();
        while let Some(id) = roots.pop() {
            if let Some(thread) = self.threads.get(&id) {
                roots.extend(thread.children.iter().rev());
                threads.push(OpenThread {
                    id,
                    conversation: thread.root,
                    owner: thread.owner.clone(),
                    depth: thread.depth,
                    busy: thread.busy,
                });
            }
        }
        threads
    }

    /// How many threads and conversations are kept.
    pub fn counts(&self) -> (usize, usize) {
        (self.threads.len(), self.conversations.len())
    }
}

impl Thread {
    fn new(root: ThreadId, parent: Option<ThreadId>, owner: Arc<str>, depth: usize) -> Self {
        Self {
            root,
            parent,
            owner,
            depth,
            children: Vec::new(),
            busy: 0,
            has_turn: false,
            call: None,
            refusals: 0,
            notes: None,
        }
    }
}
