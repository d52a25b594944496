//! Questions that a handler asks while it runs. Each has a thread of its own, so
//! its answer is told apart from all others; while a handler waits for one it
//! holds none of its listener's places. A handler that is run again after a crash
//! and asks the same again gets the answer that it had, or will have.

use super::ids::IdMap;
use super::input::Input;
use super::machine::Core;
use super::message::{AskId, Effect, HopId, Job, Outgoing};
use super::rights::{Refusal, Rights, Route, route};
use super::threads::ThreadId;
use super::time::Time;
use crate::payload::Canonical;
use crate::system::Fault;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The open questions.
#[derive(Default, Serialize, Deserialize)]
pub struct Asks {
    by_thread: IdMap<ThreadId, Ask>,
    threads: IdMap<AskId, ThreadId>,
    asked: u64,
}

#[derive(Serialize, Deserialize)]
struct Ask {
    id: AskId,
    /// The run that asked.
    job: HopId,
    listener: Arc<str>,
}

/// A question that a run has asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    id: AskId,
    listener: Arc<str>,
    payload: Canonical,
    /// What came of it: an answer, or that there is none.
    came: Option<Option<Canonical>>,
    /// Whether the run, since it was last begun, has asked it.
    is_claimed: bool,
}

impl Core {
    /// Asks a peer for a handler that is running. What comes of it is an
    /// [`Effect::Answered`].
    pub(crate) fn ask(
        &mut self,
        hop: HopId,
        out: &Outgoing,
        now: Time,
    ) -> Result<AskId, Canonical> {
        let input = Input::Ask {
            hop,
            out: Cow::Borrowed(out),
        };
        self.take_in(now, input);
        let Some(job) = self.running.get(&hop).map(|running| running.job.clone()) else {
            return Err(Fault::Handler.payload());
        };
        self.parent = Some(hop);
        let result = self.begin_ask(&job, out);
        result.map_err(|refusal| {
            let (from, to) = (&job.entry.listener.name, &out.target_name());
            self.hop(job.root, from, to, &out.payload, refusal.kind());
            refusal.fault.saying(refusal.advice())
        })
    }

    fn begin_ask(&mut self, job: &Job, out: &Outgoing) -> Result<AskId, Refusal> {
        if !self.threads.is_alive(job.thread) || self.accounts.is_over(job.cause.account) {
            return Err(Refusal::new(Fault::Handler, "nobody waits for this work"));
        }
        let asker = self.current(job);
        let rights = Rights {
            peers: &asker.peers,
            is_agent: true,
            caller: None,
            answers: None,
        };
        let entry = match route(&self.organism, &rights, out)? {
            Route::Listeners(entries) if entries.len() == 1 => entries[0].clone(),
            _ => {
                return Err(Refusal::new(
                    Fault::Routing,
                    "a question is for one listener",
                ));
            }
        };
        if let Some(id) = self.ask_again(job.id, &entry.key, &out.payload) {
            return Ok(id);
        }
        if self.threads.conversations.in_flight(job.root) > self.limits.backlog {
            return Err(Refusal::limit("backlog", self.limits.backlog));
        }
        let depth = self.limits.depth;
        let callee = self.threads.call_apart(job.thread, &entry.key, depth);
        let callee = callee.ok_or_else(|| Refusal::limit("chain", depth))?;
        self.asks.asked += 1;
        let id = AskId(self.asks.asked);
        let ask = Ask {
            id,
            job: job.id,
            listener: job.entry.key.clone(),
        };
        self.asks.by_thread.insert(callee, ask);
        self.asks.threads.insert(id, callee);
        if let Some(running) = self.running.get_mut(&job.id) {
            running.asked.push(Asked {
                id,
                listener: entry.key.clone(),
                payload: out.payload.clone(),
                came: None,
                is_claimed: true,
            });
        }
        // Others may have its place while it waits.
        if self.count_asks(job.id, 1) == Some(1) {
            self.queues.done(&job.entry.key);
        }
        let from = job.entry.listener.name.clone();
        let cause = job.cause.next();
        self.call(job.thread, callee, &entry, from, out.payload.clone(), cause);
        self.dispatch(&job.entry.key.clone());
        Ok(id)
    }

    /// The same question, where this run asked it before a crash.
    fn ask_again(&mut self, hop: HopId, listener: &str, payload: &Canonical) -> Option<AskId> {
        let asked = &mut self.running.get_mut(&hop)?.asked;
        let asked = asked.iter_mut().find(|asked| {
            !asked.is_claimed && *asked.listener == *listener && asked.payload == *payload
        })?;
        asked.is_claimed = true;
        let id = asked.id;
        if let Some(answer) = asked.came.clone() {
            self.effects.push(Effect::Answered { id, answer });
        }
        Some(id)
    }

    /// Whether a thread answers a question; then this is what came of it.
    pub(super) fn resolve(&mut self, thread: ThreadId, answer: Option<Canonical>) -> bool {
        let Some(Ask { id, job, listener }) = self.asks.by_thread.remove(&thread) else {
            return false;
        };
        self.asks.threads.remove(&id);
        if self.count_asks(job, -1) == Some(0) {
            self.queues.resume(&listener);
        }
        let is_kept = self.outbox.is_some();
        if let Some(running) = self.running.get_mut(&job) {
            match running.asked.iter().position(|asked| asked.id == id) {
                Some(place) if is_kept => running.asked[place].came = Some(answer.clone()),
                Some(place) => drop(running.asked.swap_remove(place)),
                None => {}
            }
        }
        self.effects.push(Effect::Answered { id, answer });
        self.threads.end_thread(thread, &mut self.ended);
        true
    }

    /// How many questions of a run are open, after this change.
    fn count_asks(&mut self, job: HopId, change: isize) -> Option<usize> {
        let running = self.running.get_mut(&job)?;
        running.asks = running.asks.saturating_add_signed(change);
        Some(running.asks)
    }

    /// The handler does not wait for this any more.
    pub(crate) fn forget_ask(&mut self, id: AskId, now: Time) {
        self.take_in(now, Input::ForgetAsk { id });
        if let Some(thread) = self.asks.threads.get(&id).copied() {
            let job = self.asks.by_thread.get(&thread).map(|ask| ask.job);
            if let Some(running) = job.and_then(|job| self.running.get_mut(&job)) {
                running.asked.retain(|asked| asked.id != id);
            }
            self.resolve(thread, None);
        }
    }

    /// The run is over, and with it what it has asked.
    pub(super) fn forget_all(&mut self, asked: &[Asked]) {
        for asked in asked {
            if let Some(thread) = self.asks.threads.get(&asked.id).copied() {
                self.resolve(thread, None);
            }
        }
    }

    /// The run is begun again: it may ask again what it has asked.
    pub(super) fn unclaim_asks(&mut self, hop: HopId) {
        let running = self.running.get_mut(&hop);
        for asked in running.into_iter().flat_map(|running| &mut running.asked) {
            asked.is_claimed = false;
        }
    }
}

impl Asks {
    pub(super) fn is_asked(&self, thread: ThreadId) -> bool {
        self.by_thread.contains_key(&thread)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_thread.is_empty() && self.threads.is_empty()
    }
}
