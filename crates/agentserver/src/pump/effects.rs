//! Carrying out what the rules say: at once, or, where there is a journal, when
//! the input that it follows from is safe on the disk.

use super::mailbox::Mailbox;
use super::{Shared, State, run};
use crate::core::{Effect, ThreadId};
use crate::journal::Commits;
use crate::trace::{self, Hop};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

impl Shared {
    /// Changes the state and sees to what follows from it.
    pub(super) fn step<R>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        let effects = state.core.effects();
        let due = state.core.next_due();
        let is_earlier = due.is_some_and(|due| state.wakes_at.is_none_or(|at| due < at));
        if is_earlier {
            state.wakes_at = due;
            self.timer.notify_one();
        }
        match &self.journal {
            None => self.let_go(state, effects),
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
            }
        }
        result
    }

    /// Carries out effects. Answers reach their mailboxes while the state is
    /// locked, so that they keep their order.
    fn let_go(self: &Arc<Self>, mut state: std::sync::MutexGuard<'_, State>, effects: Vec<Effect>) {
        let mut cut_off = Vec::new();
        for effect in &effects {
            cut_off.extend(deliver(&mut state, effect));
        }
        let is_idle = state.is_idle();
        drop(state);
        if is_idle {
            self.idle.notify_waiters();
        }
        for effect in effects {
            self.carry_out(effect);
        }
        for root in cut_off {
            let now = self.now();
            self.step(|state| state.core.close(root, now));
        }
    }

    fn carry_out(self: &Arc<Self>, effect: Effect) {
        match effect {
            Effect::Run(job) => {
                self.runtime.spawn(run::run(self.clone(), job));
            }
            Effect::Ended { entry, thread } => run::thread_ended(&entry, thread),
            Effect::Finished(permits) => self.admission.release(permits),
            Effect::Cancel(cancellation) => cancellation.cancel(),
            Effect::Hop(hop) => self.trace(hop),
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
fn deliver(state: &mut State, effect: &Effect) -> Option<ThreadId> {
    match effect {
        Effect::Deliver(arrival) => {
            let root = arrival.root;
            if let Some(mailbox) = state.mailboxes.get_mut(&root)
                && !mailbox.put(arrival)
            {
                tracing::warn!(limit = "mailbox", conversation = %root, "cut off: it does not read");
                return Some(root);
            }
        }
        Effect::Answered { id, answer } => {
            if let Some(asker) = state.asks.remove(id) {
                // It may have stopped waiting.
                let _ = asker.send(answer.clone());
            }
        }
        Effect::Rest(root) => {
            state
                .mailboxes
                .get(root)
                .into_iter()
                .for_each(Mailbox::wake);
        }
        _ => {}
    }
    None
}

/// Lets go what waited for the disk.
pub(super) struct Release(pub(super) Weak<Shared>);

impl Commits for Release {
    fn committed(&self, number: u64) {
        if let Some(shared) = self.0.upgrade() {
            let mut state = shared.lock();
            let effects = state.released(number);
            shared.let_go(state, effects);
        }
    }
}
