//! Carrying out what the rules say: at once, or, where there is a journal, when
//! the input that it follows from is safe on the disk.

use super::{Shared, State, run};
use crate::core::{Effect, Job, ThreadId};
use crate::journal::Commits;
use crate::trace::{self, Hop};
use std::mem::take;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Weak};

impl Shared {
    /// Changes the state and sees to what follows from it.
    pub(super) fn step<R>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> R) -> R {
        let (result, next) = self.step_and_follow(change);
        self.spawn(next);
        result
    }

    /// The same, and gives a run that follows to whoever can see to it at once: to
    /// go on in the same task is cheaper than to begin another.
    pub(super) fn step_and_follow<R>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut State) -> R,
    ) -> (R, Option<Arc<Job>>) {
        let mut state = self.lock();
        let result = change(&mut state);
        let effects = state.core.effects();
        let due = state.core.next_due();
        let is_earlier = due.is_some_and(|due| state.wakes_at.is_none_or(|at| due < at));
        if is_earlier {
            state.wakes_at = due;
            self.timer.notify_one();
        }
        let next = match &self.journal {
            None => self.carry_out_all(state, effects),
            Some(journal) => {
                let records = state.core.take_records();
                if !records.is_empty() || !effects.is_empty() {
                    let number = journal.append(records);
                    state.hold(number, effects);
                }
                if journal.is_long() {
                    match state.core.snapshot() {
                        Ok(snapshot) => journal.compact(snapshot),
                        Err(error) => {
                            tracing::error!(%error, "the state has no form to be kept in")
                        }
                    }
                }
                state.unlock_and_notify();
                None
            }
        };
        (result, next)
    }

    /// Carries out effects, but for the run that it gives back. Answers reach their
    /// mailboxes while the state is locked, so that they keep their order; whoever
    /// waits for them is woken when it is free.
    fn carry_out_all(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        mut effects: Vec<Effect>,
    ) -> Option<Arc<Job>> {
        let mut cut_off = Vec::new();
        for effect in effects.extract_if(.., |effect| effect.is_for_mailboxes()) {
            cut_off.extend(deliver(&mut state, effect));
        }
        let is_idle = state.is_idle();
        state.unlock_and_notify();
        if is_idle {
            self.idle.notify_waiters();
        }
        let mut next = None;
        for effect in effects {
            match effect {
                Effect::Run(job) => self.spawn(next.replace(job)),
                effect => self.carry_out(effect),
            }
        }
        for root in cut_off {
            let now = self.now();
            self.step(|state| state.core.close(root, now));
        }
        next
    }

    /// Begins a run in a task of its own.
    pub(super) fn spawn(self: &Arc<Self>, job: Option<Arc<Job>>) {
        if let Some(job) = job {
            self.runtime.spawn(run::run(self.clone(), job));
        }
    }

    fn carry_out(self: &Arc<Self>, effect: Effect) {
        match effect {
            Effect::Run(job) => self.spawn(Some(job)),
            Effect::Ended { entry, thread } => run::thread_ended(&entry, thread),
            Effect::Finished(permits) => self.admission.release(permits),
            Effect::Cancel(cancellation) => cancellation.cancel(),
            Effect::Hop(hop) => self.trace(*hop),
            Effect::Deliver(_) | Effect::Rest(_) | Effect::Answered { .. } => {}
        }
    }

    pub(super) fn trace(&self, hop: Hop) {
        trace::log(&hop);
        if hop.kind.is_failure() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(trace) = &self.settings.trace
            && trace.try_send(hop).is_err()
        {
            tracing::warn!("a hop is missing from the trace");
        }
    }
}

impl State {
    /// Keeps effects until their input is safe.
    fn hold(&mut self, number: u64, effects: Vec<Effect>) {
        for root in effects.iter().filter_map(concerned) {
            if let Some(mailbox) = self.mailboxes.get_mut(&root) {
                mailbox.held += 1;
            }
        }
        self.held.push_back((number, effects));
    }

    /// The effects of all inputs up to this number.
    fn released(&mut self, number: u64) -> Vec<Effect> {
        let mut released = Vec::new();
        while self.held.front().is_some_and(|(held, _)| *held <= number) {
            let effects = self.held.pop_front().map(|(_, effects)| effects);
            released.extend(effects.into_iter().flatten());
        }
        for root in released.iter().filter_map(concerned) {
            if let Some(mailbox) = self.mailboxes.get_mut(&root) {
                mailbox.held = mailbox.held.saturating_sub(1);
            }
        }
        released
    }

    /// Whether nothing waits, runs or is held.
    pub(super) fn is_idle(&self) -> bool {
        self.core.is_idle() && self.held.is_empty()
    }
}

/// The conversation whose gateway learns of this.
fn concerned(effect: &Effect) -> Option<ThreadId> {
    match effect {
        Effect::Deliver(arrival) => Some(arrival.root),
        Effect::Rest(root) => Some(*root),
        _ => None,
    }
}

/// Gives a conversation that does not read, and is cut off.
fn deliver(state: &mut State, effect: Effect) -> Option<ThreadId> {
    match effect {
        Effect::Deliver(arrival) => {
            let root = arrival.root;
            if let Some(mailbox) = state.mailboxes.get_mut(&root) {
                let is_put = mailbox.put(arrival);
                mailbox.wake(&mut state.woken);
                if !is_put {
                    tracing::warn!(limit = "mailbox", conversation = %root, "cut off: it does not read");
                    return Some(root);
                }
            }
        }
        Effect::Answered { id, answer } => {
            if let Some(asker) = state.asks.remove(&id) {
                // It may have stopped waiting.
                let _ = asker.send(answer);
            }
        }
        Effect::Rest(root) => {
            if let Some(mailbox) = state.mailboxes.get(&root) {
                mailbox.wake(&mut state.woken);
            }
        }
        _ => {}
    }
    None
}

/// Frees the state, and then wakes those who wait for what has changed: one who
/// is woken while it is locked would have to wait again.
pub(super) trait UnlockAndNotify {
    fn unlock_and_notify(self);
}

impl UnlockAndNotify for MutexGuard<'_, State> {
    fn unlock_and_notify(mut self) {
        let woken = take(&mut self.woken);
        drop(self);
        for changed in woken {
            changed.notify_waiters();
        }
    }
}

/// Lets go what waited for the disk.
pub(super) struct CarryOutCommitted(pub(super) Weak<Shared>);

impl Commits for CarryOutCommitted {
    fn committed(&self, number: u64) {
        if let Some(shared) = self.0.upgrade() {
            let mut state = shared.lock();
            let effects = state.released(number);
            let next = shared.carry_out_all(state, effects);
            shared.spawn(next);
        }
    }
}
