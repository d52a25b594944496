//! A run is repeated: inputs that were kept go in again, and what ran when the
//! pump ended is begun again.

use super::budget::Usage;
use super::input::{Input, Record, Records};
use super::machine::Core;
use super::message::{Arrival, Effect, HopId, Job, Outcome};
use super::outbox::Outbox;
use super::threads::ThreadId;
use super::time::Time;
use crate::system::Fault;
use std::sync::Arc;

impl Core {
    /// Keeps inputs and answers from now on.
    pub(crate) fn keep_records(&mut self) {
        self.records = Some(Records::default());
        self.outbox.get_or_insert_with(Outbox::default);
    }

    /// The inputs since this was last asked, as lines of JSON.
    pub(crate) fn take_records(&mut self) -> Vec<u8> {
        let records = self.records.as_mut().map(Records::take);
        records.unwrap_or_default()
    }

    /// The time of the last input.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Puts in again what was kept.
    pub(crate) fn repeat(&mut self, record: Record<'_>) {
        let now = record.at;
        match record.input {
            Input::Boot => self.boot(now),
            Input::Reload(outline) => {
                self.reload(Arc::new(outline.organism()), outline.limits, now);
            }
            Input::Resume => self.resume(now),
            Input::Open { gateway, name } => drop(self.open(&gateway, name.as_deref(), now)),
            Input::Close { root } => self.close(root, now),
            Input::Send { root, out, key } => {
                drop(self.send(root, &out, key.as_deref(), now));
            }
            Input::Acknowledge { root, id } => self.acknowledge_answer(root, id, now),
            Input::Finish {
                hop,
                outcome,
                used,
                notes,
            } => {
                self.finish(hop, outcome.into_owned(), used, &notes, now);
            }
            Input::ModelCall { hop } => drop(self.admit_model_call(hop, now)),
            Input::Ask { hop, out } => drop(self.ask(hop, &out, now)),
            Input::ForgetAsk { id } => self.forget_ask(id, now),
            Input::Tick => self.tick(now),
        }
    }

    /// The pump has started again: what ran is begun again, by the listeners
    /// there are now.
    pub(crate) fn resume(&mut self, now: Time) {
        self.take_in(now, Input::Resume);
        self.rebind();
        let mut hops: Vec<_> = self.running.keys().copied().collect();
        hops.sort_unstable();
        for hop in hops {
            self.unclaim_asks(hop);
            let Some(job) = self.running.get(&hop).map(|running| running.job.clone()) else {
                continue;
            };
            let is_wanted =
                self.threads.is_alive(job.thread) && !self.accounts.is_over(job.cause.account);
            match is_wanted {
                true => self.effects.push(Effect::Run(job)),
                false => self.give_up(hop),
            }
        }
    }

    /// Nobody waits for a run any more.
    fn give_up(&mut self, hop: HopId) {
        let outcome = Outcome::Failed {
            fault: Fault::Handler,
            reason: "nobody waits for it".to_owned(),
            words: String::new(),
        };
        self.end_run(hop, outcome, Usage::default());
    }

    /// Jobs get the listeners of today, and cancellations that nobody has used.
    fn rebind(&mut self) {
        let (organism, retired) = (&self.organism, &self.retired);
        let (todos, threads) = (&self.todos, &self.threads);
        let renew = |job: &mut Job| {
            let key = &job.entry.key;
            if let Some(entry) = organism.get(key).or_else(|| retired.get(key)) {
                job.entry = entry.clone();
            }
            job.organism = organism.clone();
        };
        self.queues.iter_mut().for_each(renew);
        let waiting = self.behind.values_mut().chain(self.calls.values_mut());
        waiting.flatten().for_each(renew);
        for running in self.running.values_mut() {
            let mut job = Job {
                cancellation: Default::default(),
                reminder: todos.reminder(running.job.thread),
                notes: threads.notes(running.job.thread),
                entry: running.job.entry.clone(),
                organism: running.job.organism.clone(),
                from: running.job.from.clone(),
                payload: running.job.payload.clone(),
                caller: running.job.caller.clone(),
                ..*running.job
            };
            renew(&mut job);
            running.job = Arc::new(job);
            running.begun = self.now;
        }
    }

    /// The conversations that are open, with their gateways' keys, in order.
    pub(crate) fn open_conversations(&self) -> Vec<(ThreadId, Arc<str>)> {
        let open = self.threads.open_conversations();
        let mut open: Vec<_> = open.map(|(root, owner)| (root, owner.clone())).collect();
        open.sort_unstable();
        open
    }

    /// What its gateway calls a conversation.
    pub(crate) fn name_of(&self, root: ThreadId) -> Option<Arc<str>> {
        self.threads.conversations.name(root)
    }

    /// Answers of a conversation that were not acknowledged.
    pub(crate) fn unacknowledged(&self, root: ThreadId) -> Vec<Arrival> {
        let outbox = self.outbox.as_ref();
        outbox
            .into_iter()
            .flat_map(|outbox| outbox.of(root))
            .cloned()
            .collect()
    }

    /// Runs of a listener that hold none of its places, since they wait.
    #[cfg(test)]
    pub(super) fn waiting_for_answers(&self, listener: &str) -> usize {
        let running = self.running.values();
        running
            .filter(|running| *running.job.entry.key == *listener && running.asks > 0)
            .count()
    }

    /// Messages from outside that are not dealt with yet.
    pub(crate) fn open_requests(&self) -> usize {
        self.accounts.open_requests()
    }
}
