//! Questions that a handler asks while it runs. Each has a thread of its own, so
//! its answer is told apart from all others; while a handler waits for one it
//! holds none of its listener's places.

use super::machine::Core;
use super::message::{AskId, Effect, HopId, Job, Outgoing};
use super::rights::{Refusal, Rights, Route, route};
use super::threads::ThreadId;
use crate::payload::Canonical;
use crate::system::Fault;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// The open questions.
#[derive(Default)]
pub struct Asks {
    by_thread: HashMap<ThreadId, Ask>,
    asked: u64,
}

struct Ask {
    id: AskId,
    /// The run that asked.
    job: HopId,
    listener: Arc<str>,
}

impl Core {
    /// Asks a peer for a handler that is running. What comes of it is an
    /// [`Effect::Answered`].
    pub(crate) fn ask(
        &mut self,
        job: &Job,
        out: &Outgoing,
        now: Instant,
    ) -> Result<AskId, Canonical> {
        self.now = now;
        let result = self.begin_ask(job, out);
        result.map_err(|refusal| {
            let (from, to) = (job.entry.listener.name.clone(), out.target_name());
            self.hop(job.root, from, to, &out.payload, refusal.kind());
            refusal.fault.saying(refusal.advice())
        })
    }

    fn begin_ask(&mut self, job: &Job, out: &Outgoing) -> Result<AskId, Refusal> {
        if !self.threads.is_alive(job.thread) || self.accounts.is_over(job.cause.account) {
            return Err(Refusal::new(Fault::Handler, "nobody waits for this work"));
        }
        let rights = Rights {
            peers: &job.entry.peers,
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
        if self.threads.in_flight(job.root) > self.limits.backlog {
            return Err(Refusal::limit("backlog", self.limits.backlog));
        }
        let depth = self.limits.depth;
        let callee = self.threads.call_apart(job.thread, &entry.key, depth);
        let callee = callee.ok_or_else(|| Refusal::limit("chain", depth))?;
        self.asks.asked += 1;
        let ask = Ask {
            id: AskId(self.asks.asked),
            job: job.id,
            listener: job.entry.key.clone(),
        };
        let id = ask.id;
        self.asks.by_thread.insert(callee, ask);
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

    /// Whether a thread answers a question; then this is what came of it.
    pub(super) fn resolve(&mut self, thread: ThreadId, answer: Option<Canonical>) -> bool {
        let Some(Ask { id, job, listener }) = self.asks.by_thread.remove(&thread) else {
            return false;
        };
        if self.count_asks(job, -1) == Some(0) {
            self.queues.resume(&listener);
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
    pub(crate) fn forget_ask(&mut self, id: AskId) {
        let asked = self.asks.by_thread.iter();
        let thread = asked
            .filter(|(_, ask)| ask.id == id)
            .map(|(thread, _)| *thread);
        if let Some(thread) = thread.collect::<Vec<_>>().first() {
            self.resolve(*thread, None);
        }
    }
}

impl Asks {
    pub(super) fn is_asked(&self, thread: ThreadId) -> bool {
        self.by_thread.contains_key(&thread)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_thread.is_empty()
    }
}
