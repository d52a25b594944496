//! The state machine: what it holds, and what can be seen of it. What happens in
//! it is in its neighbours: what comes from outside, from handlers, and with time.

use super::accounts::Accounts;
use super::asks::{Asked, Asks};
use super::counts::Counts;
use super::ids::IdMap;
use super::input::{Input, Record, Records};
use super::limits::CoreLimits;
use super::message::{Effect, HopId, Job};
use super::outbox::Outbox;
use super::outline::Outline;
use super::queues::Queues;
use super::threads::{Ended, ThreadId, Threads};
use super::time::Time;
use super::todo::Todos;
use crate::organism::{Organism, RegisteredListener};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The state machine.
pub struct Core {
    pub(super) organism: Arc<Organism>,
    /// Listeners that a reload took away while threads of theirs live.
    pub(super) retired: HashMap<Arc<str>, Arc<RegisteredListener>>,
    pub(super) limits: CoreLimits,
    pub(super) threads: Threads,
    pub(super) accounts: Accounts,
    pub(super) queues: Queues<Job>,
    /// Messages whose thread is busy with another of the same call.
    pub(super) behind: IdMap<ThreadId, VecDeque<Job>>,
    /// Calls whose thread is busy with another call.
    pub(super) calls: IdMap<ThreadId, VecDeque<Job>>,
    pub(super) running: IdMap<HopId, Running>,
    pub(super) todos: Todos,
    pub(super) asks: Asks,
    /// The keys of messages from outside that are worked on, where they have any.
    pub(super) keys: IdMap<HopId, Arc<str>>,
    /// Answers that were not acknowledged, where they are kept.
    pub(super) outbox: Option<Outbox>,
    pub(super) ended: Vec<Ended>,
    pub(super) effects: Vec<Effect>,
    pub(super) hops: u64,
    /// The message that what happens now follows from.
    pub(super) parent: Option<HopId>,
    pub(super) counts: Counts,
    /// Whether every hop is told, or only those that an operator should know of.
    pub(super) tells_all_hops: bool,
    /// The time of the last input.
    pub(super) now: Time,
    /// Inputs since they were last taken, where they are kept.
    pub(super) records: Option<Records>,
}

/// Limits with which something can be done.
fn usable(limits: CoreLimits) -> CoreLimits {
    // A chain of no listener would swallow what comes from outside.
    CoreLimits {
        depth: limits.depth.max(1),
        in_flight: limits.in_flight.max(1),
        backlog: limits.backlog.max(1),
        // Far enough off.
        nudge: limits.nudge.min(Duration::from_secs(366 * 24 * 3600)),
        ..limits
    }
}

/// A handler's run that has not been reported yet.
pub(super) struct Running {
    pub job: Arc<Job>,
    /// When it was begun; after a crash, when it was begun again.
    pub begun: Time,
    pub model_calls: u64,
    /// Questions of its own that are open; while there are any, it holds no place.
    pub asks: usize,
    /// What it has asked, where that is kept.
    pub asked: Vec<Asked>,
}

impl Core {
    /// A pump's rules for one organism.
    pub fn new(organism: Arc<Organism>, limits: CoreLimits) -> Self {
        Self {
            organism,
            retired: HashMap::new(),
            limits: usable(limits),
            threads: Threads::default(),
            accounts: Accounts::default(),
            queues: Queues::default(),
            behind: IdMap::default(),
            calls: IdMap::default(),
            running: IdMap::default(),
            todos: Todos::default(),
            asks: Asks::default(),
            keys: IdMap::default(),
            outbox: None,
            ended: Vec::new(),
            effects: Vec::new(),
            hops: 0,
            parent: None,
            counts: Counts::default(),
            tells_all_hops: true,
            now: Time::default(),
            records: None,
        }
    }

    /// An input comes: it is noted before anything follows from it.
    pub(super) fn take_in(&mut self, now: Time, input: Input<'_>) {
        self.now = now;
        self.parent = None;
        if let Some(records) = &mut self.records {
            records.push(&Record { at: now, input });
        }
    }

    pub(super) fn next_hop(&mut self) -> HopId {
        self.hops += 1;
        HopId(self.hops)
    }

    /// What is to be carried out since the last time.
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        self.process_ended();
        std::mem::take(&mut self.effects)
    }

    /// Threads and conversations that are kept.
    pub fn counts(&self) -> (usize, usize) {
        self.threads.counts()
    }

    /// Whether nothing waits or runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.threads.conversations.is_idle()
    }

    /// Whether nothing of one conversation waits, runs or is a to-do.
    pub(crate) fn is_resting(&self, root: ThreadId) -> bool {
        self.threads.conversations.is_resting(root)
    }

    /// How often a conversation has come to rest.
    pub(crate) fn epoch(&self, root: ThreadId) -> u64 {
        self.threads.conversations.epoch(root)
    }

    /// Whether a conversation whose answers are read but for `unread` may send.
    pub(crate) fn has_room(&self, root: ThreadId, unread: usize) -> bool {
        self.threads
            .conversations
            .in_flight(root)
            .saturating_add(unread)
            < self.limits.in_flight
    }

    /// Messages of one conversation that wait or run.
    pub(crate) fn in_flight(&self, root: ThreadId) -> usize {
        self.threads.conversations.in_flight(root)
    }

    /// The key of the gateway that began a conversation.
    pub(crate) fn gateway_of(&self, root: ThreadId) -> Option<Arc<str>> {
        self.threads.owner(root)
    }

    /// Other listeners from now on. Threads live on; a listener that is gone
    /// still gets the answers it waits for, and nothing new.
    pub(crate) fn reload(&mut self, organism: Arc<Organism>, limits: CoreLimits, now: Time) {
        let limits = usable(limits);
        if self.records.is_some() {
            let outline = Outline::of(&organism, limits);
            self.take_in(now, Input::Reload(Box::new(Cow::Owned(outline))));
        }
        self.limits = limits;
        let old = std::mem::replace(&mut self.organism, organism);
        for entry in old.entries() {
            self.retired.insert(entry.key.clone(), entry.clone());
        }
        let (organism, threads) = (&self.organism, &self.threads);
        self.retired
            .retain(|key, _| organism.get(key).is_none() && threads.owns_any(key));
    }

    pub(super) fn owner(&self, thread: ThreadId) -> Option<Arc<RegisteredListener>> {
        self.lookup(&self.threads.owner(thread)?)
    }

    /// The listener of a job as it is now; as it was, if it is gone.
    pub(super) fn current(&self, job: &Job) -> Arc<RegisteredListener> {
        let current = self.lookup(&job.entry.key);
        current.unwrap_or_else(|| job.entry.clone())
    }

    pub(super) fn lookup(&self, key: &str) -> Option<Arc<RegisteredListener>> {
        self.entry(key).cloned()
    }

    pub(super) fn entry(&self, key: &str) -> Option<&Arc<RegisteredListener>> {
        self.organism.get(key).or_else(|| self.retired.get(key))
    }

    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        self.counts() == (0, 0)
            && self.queues.is_empty()
            && self.behind.is_empty()
            && self.calls.is_empty()
            && self.running.is_empty()
            && self.accounts.is_empty()
            && self.todos.is_empty()
            && self.asks.is_empty()
            && self.keys.is_empty()
            && self.outbox.as_ref().is_none_or(Outbox::is_empty)
            && self.ended.is_empty()
    }
}
