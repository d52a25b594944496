//! Whose turn it is. A thread works on one call at a time, and within it on one
//! message at a time, in the order in which they came; a listener runs as many
//! threads as it may.

use super::account::Exhausted;
use super::machine::{Core, Running};
use super::message::{Effect, Job};
use super::threads::{Ended, ThreadId};
use crate::trace::HopKind;
use std::sync::Arc;

impl Core {
    /// A message waits for its call's turn, then for its own.
    pub(super) fn queue(&mut self, job: Job) {
        let call = self.accounts.call_of(job.thread, job.cause.account);
        if call.is_none_or(|call| self.threads.begin_call(job.thread, call)) {
            self.queue_in_call(job);
        } else {
            self.calls.entry(job.thread).or_default().push_back(job);
        }
    }

    fn queue_in_call(&mut self, job: Job) {
        if self.threads.take_turn(job.thread) {
            let owner = job.entry.key.clone();
            if self.queues.try_start(&owner, self.concurrency(&owner)) {
                return self.start(job);
            }
            self.queues.push(&owner, job.from.clone(), job);
            self.dispatch(&owner);
        } else {
            self.behind.entry(job.thread).or_default().push_back(job);
        }
    }

    /// Starts what may start at one listener.
    pub(super) fn dispatch(&mut self, listener: &Arc<str>) {
        let concurrency = self.concurrency(listener);
        while let Some(job) = self.queues.pop(listener, concurrency) {
            self.start(job);
        }
    }

    /// How many messages a listener handles at once.
    fn concurrency(&self, listener: &str) -> usize {
        let entry = self.entry(listener);
        entry.map_or(usize::MAX, |entry| entry.listener.concurrency)
    }

    /// Starts a message that has a place at its listener, unless nobody waits for
    /// it any more.
    fn start(&mut self, mut job: Job) {
        if self.threads.is_alive(job.thread) && !self.accounts.is_over(job.cause.account) {
            job.reminder = self.todos.reminder(job.thread);
            job.notes = self.threads.notes(job.thread);
            let job = Arc::new(job);
            let running = Running {
                job: job.clone(),
                begun: self.now,
                model_calls: 0,
                asks: 0,
                asked: Vec::new(),
            };
            self.running.insert(job.id, running);
            self.effects.push(Effect::Run(job));
        } else {
            self.queues.done(&job.entry.key);
            self.dropped(&job);
            self.done(&job);
        }
    }

    /// A message that had its turn is done with.
    pub(super) fn done(&mut self, job: &Job) {
        self.threads.end_turn(job.thread);
        let next = self.behind.get_mut(&job.thread);
        if let Some(next) = next.and_then(std::collections::VecDeque::pop_front) {
            self.queue_in_call(next);
        }
        if self
            .behind
            .get(&job.thread)
            .is_some_and(|jobs| jobs.is_empty())
        {
            self.behind.remove(&job.thread);
        }
        self.leave(job);
        self.dispatch(&job.entry.key);
    }

    /// A message that will not be handled, for the trace.
    fn dropped(&mut self, job: &Job) {
        let (from, to) = (&job.from, &job.entry.listener.name);
        self.hop(job.root, from, to, &job.payload, HopKind::Ended);
    }

    /// Gives back what a message held.
    fn leave(&mut self, job: &Job) {
        self.threads.leave(job.thread, job.root, &mut self.ended);
        self.accounts.leave(job.cause.account);
        self.begin_next_calls();
    }

    /// Calls that waited for one that is now done with.
    pub(super) fn begin_next_calls(&mut self) {
        while let Some(thread) = self.accounts.pop_done() {
            // A question whose work is done without an answer has none.
            if self.resolve(thread, None) {
                continue;
            }
            self.threads.end_call(thread);
            let waiting = self.calls.get_mut(&thread);
            let next = waiting.and_then(std::collections::VecDeque::pop_front);
            if self.calls.get(&thread).is_some_and(|jobs| jobs.is_empty()) {
                self.calls.remove(&thread);
            }
            match next {
                Some(job) => self.queue(job),
                None => self.end_if_of_one_call(thread),
            }
        }
    }

    /// A listener that handles calls side by side has a thread for each.
    fn end_if_of_one_call(&mut self, thread: ThreadId) {
        let is_of_one_call = self
            .owner(thread)
            .is_some_and(|entry| entry.listener.is_concurrent);
        if is_of_one_call && self.todos.count(thread) == 0 {
            self.threads.end_thread(thread, &mut self.ended);
        }
    }

    /// Work has used up its budget: it ends, and whoever asked for it is told.
    pub(super) fn exhaust(&mut self, exhausted: Exhausted, root: ThreadId) {
        self.accounts.end(exhausted.account);
        let over: Vec<_> = self
            .running
            .values()
            .filter(|running| self.accounts.is_over(running.job.cause.account))
            .map(|running| running.job.cancellation.clone())
            .collect();
        self.effects.extend(over.into_iter().map(Effect::Cancel));
        self.tell_of_budget(exhausted, root);
    }

    /// Sees to what ended: threads with their to-dos, their owners' state and
    /// the messages that waited for them; conversations that came to rest.
    pub(super) fn process_ended(&mut self) {
        while let Some(Ended {
            owner,
            thread,
            was_busy,
        }) = self.ended.pop()
        {
            for todo in self.todos.end_thread(thread) {
                self.threads.close_todo(todo.root, &mut self.ended);
            }
            if was_busy {
                self.cancel(thread);
            }
            // Nobody waits for it any more.
            self.resolve(thread, None);
            if let Some(entry) = self.entry(&owner)
                && entry.listener.keeps_state()
            {
                let entry = entry.clone();
                self.effects.push(Effect::Ended { entry, thread });
            }
        }
        while let Some(account) = self.threads.conversations.pop_closed() {
            self.accounts.leave(account);
        }
        while let Some(root) = self.threads.conversations.pop_rested() {
            self.effects.push(Effect::Rest(root));
        }
        let mut finished = 0;
        while let Some(request) = self.accounts.pop_finished() {
            self.keys.remove(&request);
            finished += 1;
        }
        if finished > 0 {
            self.effects.push(Effect::Finished(finished));
        }
    }

    /// What waits for a thread that ended is dropped; what runs is told.
    fn cancel(&mut self, thread: ThreadId) {
        let behind = self.behind.remove(&thread).into_iter().flatten();
        let calls = self.calls.remove(&thread).into_iter().flatten();
        for job in behind.chain(calls).collect::<Vec<_>>() {
            self.dropped(&job);
            self.leave(&job);
        }
        let running = self.running.values();
        let running = running.filter(|running| running.job.thread == thread);
        let cancelled: Vec<_> = running.map(|r| r.job.cancellation.clone()).collect();
        self.effects
            .extend(cancelled.into_iter().map(Effect::Cancel));
    }
}
