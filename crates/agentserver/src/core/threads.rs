//! Threads: opaque ids over private call chains.
//!
//! A conversation is a tree. Its root is whoever began it; every other thread
//! is one listener called by the thread above it, so the path from the root is
//! the call chain. Nothing outside this file sees a path. Calling the same peer
//! again from the same thread finds the same sub-thread; answering ends the
//! sub-threads; a listener that calls itself stays where it is.

use super::accounts::AccountId;
use super::ids::{IdMap, Ids, opaque_id};
use super::notes::{Note, Notes};
use super::overview::OpenThread;
use super::seen::Seen;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

opaque_id! {
    /// A thread's id: opaque, unguessable, unique over all conversations.
    pub struct ThreadId;
}

impl ThreadId {
    /// The id as a number.
    pub fn number(self) -> u128 {
        self.0.as_u128()
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
    /// By root thread.
    conversations: IdMap<ThreadId, Conversation>,
    /// Messages of all conversations that wait or run.
    in_flight: usize,
    /// Conversations that came to rest since the last look.
    rested: Vec<ThreadId>,
    /// Accounts of conversations that are over.
    closed: Vec<AccountId>,
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

#[derive(Default, Serialize, Deserialize)]
struct Conversation {
    is_open: bool,
    in_flight: usize,
    /// Watchers keep a conversation alive while nothing moves.
    watchers: usize,
    /// How often it came to rest.
    epoch: u64,
    /// What it may use in all, where that is bounded.
    account: Option<AccountId>,
    /// What its gateway calls it.
    name: Option<Arc<str>>,
    /// Keys of messages that were accepted, where they have any.
    seen: Option<Box<Seen>>,
}

impl Conversation {
    fn is_resting(&self) -> bool {
        self.in_flight == 0 && self.watchers == 0
    }
}

impl Threads {
    /// Begins a conversation; the root thread is the caller's own.
    pub fn open(&mut self, owner: Arc<str>) -> ThreadId {
        let root = ThreadId::from(self.ids.next());
        self.conversations.insert(
            root,
            Conversation {
                is_open: true,
                ..Conversation::default()
            },
        );
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
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.is_open = false;
        }
        self.free_if_over(root, ended);
    }

    /// A message of this thread is on its way.
    pub fn enter(&mut self, thread: ThreadId) -> Option<()> {
        let thread = self.threads.get_mut(&thread)?;
        let conversation = self.conversations.get_mut(&thread.root)?;
        thread.busy += 1;
        conversation.in_flight += 1;
        self.in_flight += 1;
        Some(())
    }

    /// A message of this thread was dealt with.
    pub fn leave(&mut self, thread: ThreadId, root: ThreadId, ended: &mut Vec<Ended>) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.busy = thread.busy.saturating_sub(1);
        }
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.in_flight = conversation.in_flight.saturating_sub(1);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.settle(root, ended);
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

    /// Whether a message with this key was accepted before.
    pub fn has_seen(&self, root: ThreadId, key: &str) -> bool {
        let seen = self.conversations.get(&root).map(|c| &c.seen);
        seen.is_some_and(|seen| seen.as_ref().is_some_and(|seen| seen.contains(key)))
    }

    /// A message with this key was accepted.
    pub fn see(&mut self, root: ThreadId, key: &str) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.seen.get_or_insert_default().insert(key);
        }
    }

    pub fn set_name(&mut self, root: ThreadId, name: &str) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.name = Some(name.into());
        }
    }

    pub fn name(&self, root: ThreadId) -> Option<Arc<str>> {
        self.conversations.get(&root)?.name.clone()
    }

    /// The conversations that are open, and whose they are.
    pub fn open_conversations(&self) -> impl Iterator<Item = (ThreadId, &Arc<str>)> {
        let open = self.conversations.iter().filter(|(_, c)| c.is_open);
        open.filter_map(|(root, _)| Some((*root, &self.threads.get(root)?.owner)))
    }

    pub fn watch(&mut self, root: ThreadId) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.watchers += 1;
        }
    }

    pub fn unwatch(&mut self, root: ThreadId, ended: &mut Vec<Ended>) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.watchers = conversation.watchers.saturating_sub(1);
        }
        self.settle(root, ended);
    }

    /// Notes that a conversation came to rest, where it did.
    fn settle(&mut self, root: ThreadId, ended: &mut Vec<Ended>) {
        if let Some(conversation) = self.conversations.get_mut(&root)
            && conversation.is_resting()
        {
            conversation.epoch += 1;
            self.rested.push(root);
            self.free_if_over(root, ended);
        }
    }

    /// A conversation that came to rest.
    pub fn pop_rested(&mut self) -> Option<ThreadId> {
        self.rested.pop()
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

    /// The account of a conversation that is over.
    pub fn pop_closed(&mut self) -> Option<AccountId> {
        self.closed.pop()
    }

    fn free_if_over(&mut self, root: ThreadId, ended: &mut Vec<Ended>) {
        let is_over = |c: &Conversation| !c.is_open && c.is_resting();
        if self.conversations.get(&root).is_some_and(is_over) {
            let conversation = self.conversations.remove(&root);
            self.closed.extend(conversation.and_then(|c| c.account));
            self.end(root, ended);
        }
    }

    pub fn is_alive(&self, thread: ThreadId) -> bool {
        self.threads.contains_key(&thread)
    }

    pub fn is_busy(&self, thread: ThreadId) -> bool {
        self.threads.get(&thread).is_some_and(|t| t.busy > 0)
    }

    pub fn is_open(&self, root: ThreadId) -> bool {
        self.conversations.get(&root).is_some_and(|c| c.is_open)
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

    /// Whether no message waits or runs anywhere.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether nothing of this conversation waits, runs or is watched for.
    pub fn is_resting(&self, root: ThreadId) -> bool {
        self.conversations
            .get(&root)
            .is_none_or(Conversation::is_resting)
    }

    /// Messages of this conversation that wait or run.
    pub fn in_flight(&self, root: ThreadId) -> usize {
        self.conversations.get(&root).map_or(0, |c| c.in_flight)
    }

    /// How often this conversation has come to rest; more than ever, once it is over.
    pub fn epoch(&self, root: ThreadId) -> u64 {
        self.conversations.get(&root).map_or(u64::MAX, |c| c.epoch)
    }

    /// The threads that live, each after the one that called it.
    pub fn overview(&self) -> Vec<OpenThread> {
        let mut roots: Vec<_> = self.conversations.keys().copied().collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn calling_extends_and_answering_prunes() {
        let mut threads = Threads::default();
        let root = threads.open(name("console"));
        let router = threads.call(root, &name("router"), true, 9).unwrap();
        let greeter = threads.call(router, &name("greeter"), true, 9).unwrap();
        let shouter = threads.call(greeter, &name("shouter"), true, 9).unwrap();
        assert_eq!(threads.counts().0, 4);

        let mut ended = Vec::new();
        assert_eq!(threads.answer(router, &mut ended), Some(root));
        assert!(threads.is_alive(router), "the answerer may be called again");
        assert!(!threads.is_alive(greeter) && !threads.is_alive(shouter));
        assert_eq!(ended.len(), 2);
    }

    #[test]
    fn the_same_peer_is_found_in_the_same_thread_until_the_caller_answers() {
        let mut threads = Threads::default();
        let root = threads.open(name("console"));
        let agent = threads.call(root, &name("agent"), true, 9).unwrap();
        let first = threads.call(agent, &name("calculator"), true, 9).unwrap();
        assert_eq!(threads.answer(first, &mut Vec::new()), Some(agent));
        assert_eq!(
            threads.call(agent, &name("calculator"), true, 9),
            Some(first)
        );
        threads.answer(agent, &mut Vec::new());
        assert_ne!(
            threads.call(agent, &name("calculator"), true, 9),
            Some(first)
        );
    }

    #[test]
    fn two_conversations_on_one_path_share_nothing() {
        let mut threads = Threads::default();
        let (one, two) = (threads.open(name("console")), threads.open(name("console")));
        let in_one = threads.call(one, &name("a.b"), true, 9).unwrap();
        let in_two = threads.call(two, &name("a.b"), true, 9).unwrap();
        assert_ne!(in_one, in_two);
        assert_eq!(threads.parent(in_one), Some(one));
        assert_eq!(threads.parent(in_two), Some(two));
    }

    #[test]
    fn dots_in_names_do_not_make_chains_collide() {
        let mut threads = Threads::default();
        let root = threads.open(name("console"));
        let dotted = threads.call(root, &name("a.b"), true, 9).unwrap();
        let a = threads.call(root, &name("a"), true, 9).unwrap();
        let below = threads.call(a, &name("b"), true, 9).unwrap();
        assert_ne!(dotted, below);
    }

    #[test]
    fn a_self_call_stays_in_its_thread() {
        let mut threads = Threads::default();
        let root = threads.open(name("console"));
        let agent = threads.call(root, &name("agent"), true, 9).unwrap();
        assert_eq!(threads.call(agent, &name("agent"), true, 9), Some(agent));
        assert_eq!(threads.parent(agent), Some(root));
    }

    #[test]
    fn a_closed_conversation_is_freed_when_its_last_message_is() {
        let mut threads = Threads::default();
        let mut ended = Vec::new();
        let root = threads.open(name("console"));
        let tool = threads.call(root, &name("tool"), true, 9).unwrap();
        threads.enter(tool);
        threads.close(root, &mut ended);
        assert!(threads.is_alive(tool));
        threads.leave(tool, root, &mut ended);
        assert_eq!(threads.counts(), (0, 0));
        assert_eq!(ended.len(), 2);
    }

    #[test]
    fn chains_have_a_depth_limit() {
        let mut threads = Threads::default();
        let root = threads.open(name("console"));
        let a = threads.call(root, &name("a"), true, 2).unwrap();
        let b = threads.call(a, &name("b"), true, 2).unwrap();
        assert_eq!(threads.call(b, &name("c"), true, 2), None);
    }
}
