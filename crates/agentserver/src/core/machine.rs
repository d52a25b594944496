//! The state machine: what happens when something comes in from outside and
//! when a handler has finished.

use super::limits::CoreLimits;
use super::message::{Effect, Job, Outcome, Outgoing};
use super::queues::Queues;
use super::rights::{Refusal, Rights, Route, route};
use super::threads::{Ended, ThreadId, Threads};
use super::todo::Todos;
use crate::listener::key;
use crate::organism::{Entry, Organism};
use crate::payload::Canonical;
use crate::system::{self, Fault};
use crate::trace::{Hop, HopKind};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The state machine.
pub struct Core {
    pub(super) organism: Arc<Organism>,
    /// Listeners that a reload took away while threads of theirs live.
    pub(super) retired: HashMap<Arc<str>, Arc<Entry>>,
    pub(super) limits: CoreLimits,
    pub(super) threads: Threads,
    pub(super) queues: Queues<Job>,
    pub(super) todos: Todos,
    pub(super) ended: Vec<Ended>,
    pub(super) effects: Vec<Effect>,
}

impl Core {
    /// A pump's rules for one organism.
    pub fn new(organism: Arc<Organism>, limits: CoreLimits) -> Self {
        Self {
            organism,
            retired: HashMap::new(),
            // A chain of no listener would swallow what comes from outside.
            limits: CoreLimits {
                depth: limits.depth.max(1),
                // Far enough off, and still a time that can be added to now.
                nudge: limits.nudge.min(Duration::from_secs(366 * 24 * 3600)),
                ..limits
            },
            threads: Threads::default(),
            queues: Queues::default(),
            todos: Todos::default(),
            ended: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// What is to be carried out since the last time.
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        self.settle();
        std::mem::take(&mut self.effects)
    }

    /// Threads and conversations that are kept.
    pub fn counts(&self) -> (usize, usize) {
        self.threads.counts()
    }

    /// Whether nothing waits or runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.threads.is_idle()
    }

    /// Whether nothing of one conversation waits or runs.
    pub(crate) fn is_resting(&self, root: ThreadId) -> bool {
        self.threads.is_resting(root)
    }

    /// Other listeners from now on. Threads live on; a listener that is gone
    /// still gets the answers it waits for, and nothing new.
    pub(crate) fn reload(&mut self, organism: Arc<Organism>) {
        let old = std::mem::replace(&mut self.organism, organism);
        for entry in old.entries() {
            self.retired.insert(entry.key.clone(), entry.clone());
        }
        let (organism, threads) = (&self.organism, &self.threads);
        self.retired
            .retain(|key, _| organism.get(key).is_none() && threads.owns_any(key));
    }

    /// Begins a conversation for a gateway.
    pub(crate) fn open(&mut self, gateway: &str) -> Option<ThreadId> {
        let gateway = key(gateway);
        self.organism.gateway(&gateway)?;
        Some(self.threads.open(gateway))
    }

    /// The gateway wants no more answers.
    pub(crate) fn close(&mut self, root: ThreadId) {
        self.threads.close(root, &mut self.ended);
    }

    /// Whether a thread is a conversation that this gateway began and did not close.
    pub(crate) fn is_own(&self, root: ThreadId, gateway: &str) -> bool {
        self.threads.is_open(root) && self.threads.is_owned_by(root, &key(gateway))
    }

    /// The organism has started: tells `system.boot`, where there is one.
    pub(crate) fn boot(&mut self) {
        let Some(entry) = self.organism.get(system::BOOT).cloned() else {
            return;
        };
        let payload = system::canonical(&system::Boot {
            organism: self.organism.name().to_owned(),
        });
        let root = self.threads.open(system::NAME.into());
        if entry.listener.accepts(payload.namespace(), payload.root())
            && let Some(thread) = self.threads.call(root, &entry.key, self.limits.depth)
        {
            self.arrive(thread, system::NAME.into(), payload, HopKind::Call);
        }
        self.threads.close(root, &mut self.ended);
    }

    /// A message from outside, for a conversation that the gateway holds. The
    /// caller learns of a refusal at once.
    pub(crate) fn inject(&mut self, root: ThreadId, out: Outgoing) -> Result<(), Canonical> {
        let gateway = self
            .threads
            .owner(root)
            .and_then(|owner| self.organism.gateway(&owner).cloned());
        let Some(gateway) = gateway.filter(|_| self.threads.is_open(root)) else {
            return Err(Fault::Routing.payload());
        };
        let rights = Rights {
            peers: &gateway.peers,
            is_agent: true,
            caller: None,
        };
        let routed = route(&self.organism, &rights, &out).and_then(|route| match route {
            Route::Listeners(entries) => Ok(entries),
            _ => Err(Refusal::new(Fault::Validation, "no listener takes it")),
        });
        match routed {
            Ok(entries) => {
                self.threads.hold_permit(root);
                for entry in entries {
                    self.forward(root, &entry, gateway.name.clone(), out.payload.clone());
                }
                Ok(())
            }
            Err(refusal) => {
                let payload = refusal.payload(&out);
                self.hop(
                    root,
                    gateway.name.clone(),
                    out.target_name(),
                    &out.payload,
                    refusal.kind(),
                );
                Err(payload)
            }
        }
    }

    /// A handler has finished.
    pub(crate) fn finish(&mut self, job: &Job, outcome: Outcome, now: Instant) {
        self.queues.done(&job.entry.key);
        if self.threads.is_alive(job.thread) {
            match outcome {
                Outcome::Sent(messages) => self.send_all(job, messages, now),
                Outcome::Garbled { attempt, reason } => {
                    let refusal = Refusal::new(Fault::Validation, reason);
                    self.refuse(
                        job,
                        &refusal,
                        "?".into(),
                        &job.payload.clone(),
                        system::huh(&attempt),
                    );
                }
                Outcome::Failed { fault, reason } => {
                    let kind = HopKind::Failed { fault, reason };
                    self.hop(
                        job.root,
                        job.entry.listener.name.clone(),
                        job.from.clone(),
                        &job.payload,
                        kind,
                    );
                    self.fail(job.thread, fault);
                }
            }
        } else {
            let name = job.entry.listener.name.clone();
            self.hop(job.root, name.clone(), name, &job.payload, HopKind::Ended);
        }
        self.leave(job);
        self.dispatch(&job.entry.key.clone());
    }

    /// Answers go before new calls, so that a call in the same breath survives
    /// the pruning.
    fn send_all(&mut self, job: &Job, messages: Vec<Outgoing>, now: Instant) {
        let entry = self
            .organism
            .get(&job.entry.key)
            .cloned()
            .unwrap_or_else(|| job.entry.clone());
        let caller = self
            .threads
            .parent(job.thread)
            .and_then(|parent| self.threads.owner(parent));
        let rights = Rights {
            peers: &entry.peers,
            is_agent: entry.listener.is_agent,
            caller,
        };
        let mut routed: Vec<_> = messages
            .into_iter()
            .map(|out| {
                let route = route(&self.organism, &rights, &out);
                (out, route)
            })
            .collect();
        routed.sort_by_key(|(_, route)| !matches!(route, Ok(Route::Caller)));
        for (out, route) in routed {
            match route {
                Ok(route) => self.carry(job, route, &out, now),
                Err(refusal) => {
                    let payload = refusal.payload(&out);
                    self.refuse(job, &refusal, out.target_name(), &out.payload, payload);
                }
            }
        }
    }

    fn carry(&mut self, job: &Job, route: Route, out: &Outgoing, now: Instant) {
        let carried = match route {
            Route::Caller => self.respond(job, out),
            Route::Listeners(entries) => entries.iter().try_for_each(|entry| {
                let from = job.entry.listener.name.clone();
                match self.forward(job.thread, entry, from, out.payload.clone()) {
                    true => Ok(()),
                    false => Err(Refusal::new(Fault::Routing, "the call chain is too deep")),
                }
            }),
            Route::TodoUntil => self.open_todo(job, &out.payload, now),
            Route::TodoComplete => self.complete_todo(job, &out.payload),
        };
        match carried {
            Ok(()) => self.threads.went_through(job.thread),
            Err(refusal) => {
                let payload = refusal.payload(out);
                self.refuse(job, &refusal, out.target_name(), &out.payload, payload);
            }
        }
    }

    /// Starts what may start at one listener.
    pub(super) fn dispatch(&mut self, listener: &Arc<str>) {
        let concurrency = self
            .lookup(listener)
            .map_or(usize::MAX, |entry| entry.listener.concurrency);
        while let Some(job) = self.queues.pop(listener, concurrency) {
            if self.threads.is_alive(job.thread) {
                self.effects.push(Effect::Run(job));
                continue;
            }
            self.queues.done(listener);
            self.hop(
                job.root,
                job.from.clone(),
                job.entry.listener.name.clone(),
                &job.payload,
                HopKind::Ended,
            );
            self.leave(&job);
        }
    }

    fn leave(&mut self, job: &Job) {
        if let Some(permits) = self.threads.leave(job.thread, job.root, &mut self.ended) {
            self.effects.push(Effect::Rest {
                root: job.root,
                permits,
            });
        }
    }

    /// Sees to the threads that ended: their watchers, and their owners' state.
    fn settle(&mut self) {
        while let Some(Ended { owner, thread }) = self.ended.pop() {
            for todo in self.todos.end_thread(thread) {
                self.threads.unwatch(todo.root, &mut self.ended);
            }
            if let Some(entry) = self.lookup(&owner) {
                self.effects.push(Effect::Ended { entry, thread });
            }
        }
    }

    pub(super) fn owner(&self, thread: ThreadId) -> Option<Arc<Entry>> {
        self.lookup(&self.threads.owner(thread)?)
    }

    pub(super) fn lookup(&self, key: &str) -> Option<Arc<Entry>> {
        self.organism
            .get(key)
            .or_else(|| self.retired.get(key))
            .cloned()
    }

    pub(super) fn hop(
        &mut self,
        root: ThreadId,
        from: Arc<str>,
        to: Arc<str>,
        payload: &Canonical,
        kind: HopKind,
    ) {
        let (name, bytes) = (payload.root.clone(), payload.xml.len());
        self.effects.push(Effect::Hop(Hop {
            conversation: root,
            from,
            to,
            payload: name,
            bytes,
            kind,
        }));
    }

    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        self.counts() == (0, 0)
            && self.queues.is_empty()
            && self.todos.is_empty()
            && self.ended.is_empty()
    }
}
