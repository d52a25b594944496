//! What must hold when work ends: what nobody waits for any more is cancelled and
//! does not go on, and a conversation is at rest when nothing of it is left.

use super::super::threads::ThreadId;
use super::super::{HopId, Job};
use super::World;
use std::collections::{HashMap, HashSet};
use std::mem::take;

/// The test's own account of what has ended.
#[derive(Default)]
pub struct Ends {
    threads: HashSet<ThreadId>,
    /// The threads that a run's own had called when the run ended.
    called: HashMap<HopId, Vec<ThreadId>>,
    /// Runs whose answers have come since the last look.
    answered: Vec<HopId>,
    /// How often each conversation came to rest.
    rests: HashMap<ThreadId, u64>,
}

impl Ends {
    pub fn begin(&mut self, job: &Job) {
        let is_over = self.threads.contains(&job.thread);
        assert!(!is_over, "a thread that ended goes on");
    }

    /// A run ends, and may have answered.
    pub fn finish(&mut self, job: &Job, parents: &HashMap<ThreadId, ThreadId>) {
        let called = parents.iter().filter(|(_, caller)| **caller == job.thread);
        let called = called.map(|(thread, _)| *thread).collect();
        self.called.insert(job.id, called);
    }

    /// An answer has come, that the test wrote this run into.
    pub fn answered(&mut self, run: &str) {
        self.answered.extend(HopId::parse(run));
    }

    pub fn ended(&mut self, thread: ThreadId) {
        self.threads.insert(thread);
    }
}

impl World {
    /// Whoever answers has no more use for what it asked others to do.
    pub(super) fn check_pruned(&mut self) {
        let has_ended = |thread: &ThreadId| self.ends.threads.contains(thread);
        for run in take(&mut self.ends.answered) {
            let called = self.ends.called.get(&run);
            let all = called.is_none_or(|called| called.iter().all(has_ended));
            assert!(all, "an answer ends what was asked for it");
        }
        for (thread, caller) in &self.parents {
            let is_well = !has_ended(caller) || has_ended(thread);
            assert!(is_well, "a thread outlives its caller");
        }
        for job in self.running.iter().filter(|job| has_ended(&job.thread)) {
            assert!(job.cancellation.is_cancelled(), "pruned work is told");
            self.reached.insert("a run is pruned");
        }
    }

    /// At rest is where nothing waits, runs or is a to-do, and it is told
    /// each time.
    pub(super) fn check_rest(&mut self, rested: &[ThreadId]) {
        for root in rested {
            *self.ends.rests.entry(*root).or_default() += 1;
        }
        for root in &self.roots {
            let runs = self.running.iter().any(|job| job.root == *root);
            let todos = self.core.todos.overview();
            let mut threads = todos.iter().map(|todo| todo.thread);
            let has_todo = threads.any(|thread| self.core.threads.root(thread) == Some(*root));
            let is_resting = self.core.is_resting(*root);
            assert!(!(runs || has_todo) || !is_resting, "at rest too early");
            let is_left = !self.running.is_empty() || has_todo;
            assert!(
                is_left || is_resting,
                "nothing is left, and it is not at rest"
            );
            let epoch = self.core.epoch(*root);
            let told = self.ends.rests.get(root).copied().unwrap_or(0);
            assert!(
                epoch == told || epoch == u64::MAX,
                "a rest that was not told"
            );
        }
    }
}
