//! What is counted since the start, for whoever watches an organism.

use super::ids::IdMap;
use super::machine::Core;
use crate::trace::{Handling, HopKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a pump does now, and has done since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Conversations that are kept.
    pub conversations: usize,
    /// Threads that are kept, those of conversations included.
    pub threads: usize,
    /// To-dos that are open.
    pub todos: usize,
    /// Hops by what became of them: [`HopKind::name`].
    pub hops: BTreeMap<&'static str, u64>,
    /// Refusals and failures by the code that their sender or caller was told.
    pub errors: BTreeMap<&'static str, u64>,
    /// Work that a budget has ended, by the budget's key in a file.
    pub budget_ends: BTreeMap<&'static str, u64>,
    /// The listeners, by name.
    pub listeners: BTreeMap<Arc<str>, ListenerStats>,
}

/// What one listener does, and has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// Messages that wait for it.
    pub waiting: usize,
    /// Messages that its handler works on.
    pub running: usize,
    /// Messages that its handler is done with.
    pub handled: u64,
    /// What they took together.
    pub took: Duration,
    /// How long they waited for their turn, together.
    pub waited: Duration,
    /// Calls of models.
    pub model_calls: u64,
    /// Tokens that models read and wrote.
    pub tokens: u64,
    /// Millionths of the currency.
    pub money: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub struct Counts {
    hops: Tally,
    errors: Tally,
    budget_ends: Tally,
    listeners: IdMap<Arc<str>, ListenerStats>,
}

/// Counts by name. There are few names, so a look at each is the quickest way.
#[derive(Debug, Default)]
struct Tally(Vec<(&'static str, u64)>);

impl Tally {
    fn add_one(&mut self, name: &'static str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.0.push((name, 1)),
        }
    }

    fn by_name(&self) -> BTreeMap<&'static str, u64> {
        self.0.iter().copied().collect()
    }
}

impl Counts {
    pub fn hop(&mut self, kind: &HopKind) {
        self.hops.add_one(kind.name());
        match kind {
            HopKind::Refused { fault, .. } | HopKind::Failed { fault, .. } => {
                self.errors.add_one(fault.code());
            }
            HopKind::Exhausted { limit, .. } => self.budget_ends.add_one(limit),
            _ => {}
        }
    }

    pub fn handled(&mut self, listener: &Arc<str>, handling: Handling) {
        if !self.listeners.contains_key(listener) {
            self.listeners.insert(listener.clone(), Default::default());
        }
        if let Some(stats) = self.listeners.get_mut(listener) {
            stats.handled += 1;
            stats.took += handling.took;
            stats.waited += handling.waited;
            stats.model_calls += handling.model_calls;
            stats.tokens += handling.tokens;
            stats.money += handling.money;
        }
    }
}

impl Core {
    /// Counts a hop that the rules did not see.
    pub(crate) fn count_hop(&mut self, kind: &HopKind) {
        self.counts.hop(kind);
    }

    /// Tells only what an operator should know of; the rest is counted.
    pub(crate) fn tell_few_hops(&mut self) {
        self.tells_all_hops = false;
    }

    /// What is done, and was.
    pub(crate) fn stats(&self) -> Stats {
        let (threads, conversations) = self.counts();
        let mut listeners: BTreeMap<Arc<str>, ListenerStats> = self
            .organism
            .entries()
            .map(|entry| (entry.listener.name.clone(), ListenerStats::default()))
            .collect();
        for (name, stats) in &self.counts.listeners {
            listeners.insert(name.clone(), *stats);
        }
        let behind = self.behind.values().chain(self.calls.values()).flatten();
        for job in behind.chain(self.queues.iter()) {
            let name = job.entry.listener.name.clone();
            listeners.entry(name).or_default().waiting += 1;
        }
        for running in self.running.values() {
            let name = running.job.entry.listener.name.clone();
            listeners.entry(name).or_default().running += 1;
        }
        Stats {
            conversations,
            threads,
            todos: self.todos.len(),
            hops: self.counts.hops.by_name(),
            errors: self.counts.errors.by_name(),
            budget_ends: self.counts.budget_ends.by_name(),
            listeners,
        }
    }
}
