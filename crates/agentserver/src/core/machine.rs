//! The state machine: what happens when something comes in from outside and
//! when a handler has finished.

use super::accounts::{Accounts, Cause, Work};
use super::asks::{Asked, Asks};
use super::budget::Usage;
use super::counts::Counts;
use super::ids::IdMap;
use super::input::{Input, Record, Records};
use super::limits::CoreLimits;
use super::message::{Effect, HopId, Job, Outcome, Outgoing};
use super::notes::Note;
use super::outbox::Outbox;
use super::outline::Outline;
use super::queues::Queues;
use super::rights::{Refusal, Rights, Route, route};
use super::threads::{Ended, ThreadId, Threads};
use super::time::Time;
use super::todo::Todos;
use crate::listener::key;
use crate::organism::{Entry, Organism};
use crate::payload::Canonical;
use crate::system::{self, Fault};
use crate::trace::HopKind;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The state machine.
pub struct Core {
    pub(super) organism: Arc<Organism>,
    /// Listeners that a reload took away while threads of theirs live.
    pub(super) retired: HashMap<Arc<str>, Arc<Entry>>,
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

    /// Whether nothing of one conversation waits, runs or is watched for.
    pub(crate) fn is_resting(&self, root: ThreadId) -> bool {
        self.threads.is_resting(root)
    }

    /// How often a conversation has come to rest.
    pub(crate) fn epoch(&self, root: ThreadId) -> u64 {
        self.threads.epoch(root)
    }

    /// Whether a conversation whose answers are read but for `unread` may send.
    pub(crate) fn has_room(&self, root: ThreadId, unread: usize) -> bool {
        self.threads.in_flight(root).saturating_add(unread) < self.limits.in_flight
    }

    /// Messages of one conversation that wait or run.
    pub(crate) fn in_flight(&self, root: ThreadId) -> usize {
        self.threads.in_flight(root)
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
            self.take_in(now, Input::Reload(Cow::Owned(outline)));
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

    /// Begins a conversation for a gateway, which may have a name for it.
    pub(crate) fn open(
        &mut self,
        gateway: &str,
        name: Option<&str>,
        now: Time,
    ) -> Option<ThreadId> {
        let input = Input::Open {
            gateway: gateway.into(),
            name: name.map(Cow::Borrowed),
        };
        self.take_in(now, input);
        let gateway = key(gateway);
        self.organism.gateway(&gateway)?;
        let root = self.threads.open(gateway);
        if let Some(name) = name {
            self.threads.set_name(root, name);
        }
        let budget = self.limits.conversation;
        if !budget.is_unbounded() {
            let work = Work::Conversation;
            let account = self.accounts.open(work, root, budget, None, now);
            self.threads.set_account(root, account);
        }
        Some(root)
    }

    /// The gateway wants no more answers.
    pub(crate) fn close(&mut self, root: ThreadId, now: Time) {
        self.take_in(now, Input::Close { root });
        if let Some(outbox) = &mut self.outbox {
            outbox.forget(root);
        }
        self.threads.close(root, &mut self.ended);
    }

    /// Whether a thread is a conversation that this gateway began and did not close.
    pub(crate) fn is_own(&self, root: ThreadId, gateway: &str) -> bool {
        self.threads.is_open(root) && self.threads.is_owned_by(root, &key(gateway))
    }

    /// The gateway has done with all answers up to this one.
    pub(crate) fn acknowledge_answer(&mut self, root: ThreadId, id: HopId, now: Time) {
        self.take_in(now, Input::Acknowledge { root, id });
        if let Some(outbox) = &mut self.outbox {
            outbox.acknowledge(root, id);
        }
    }

    /// The organism has started: tells `system.boot`, where there is one.
    pub(crate) fn boot(&mut self, now: Time) {
        self.take_in(now, Input::Boot);
        let Some(entry) = self.organism.get(system::BOOT).cloned() else {
            return;
        };
        let payload = system::canonical(&system::Boot {
            organism: self.organism.name().to_owned(),
        });
        let root = self.threads.open(system::NAME.into());
        if entry.listener.accepts(payload.namespace(), payload.root()) {
            self.on_account(Work::Internal, root, |core, cause| {
                // One listener is within any limit.
                let _ = core.forward(root, &entry, system::NAME.into(), payload, cause);
            });
        }
        self.threads.close(root, &mut self.ended);
    }

    /// Does something on a request's account of its own.
    pub(super) fn on_account(
        &mut self,
        work: Work,
        root: ThreadId,
        act: impl FnOnce(&mut Self, Cause),
    ) {
        let parent = self.threads.account(root);
        let parent = parent.map(|account| Cause { account, hops: 0 });
        let budget = self.limits.request;
        let account = self.accounts.open(work, root, budget, parent, self.now);
        act(self, Cause { account, hops: 1 });
        self.accounts.leave(account);
    }

    /// A message from outside, for a conversation that the gateway holds. The
    /// caller learns of a refusal at once. Gives its id; none for one whose key
    /// was seen before.
    pub(crate) fn send(
        &mut self,
        root: ThreadId,
        out: &Outgoing,
        key: Option<&str>,
        now: Time,
    ) -> Result<Option<HopId>, Canonical> {
        let input = Input::Send {
            root,
            out: Cow::Borrowed(out),
            key: key.map(Cow::Borrowed),
        };
        self.take_in(now, input);
        if key.is_some_and(|key| self.threads.has_seen(root, key)) {
            return Ok(None);
        }
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
            answers: None,
        };
        let is_over = |account| self.accounts.is_over(account);
        let routed = match self.threads.account(root).is_some_and(is_over) {
            true => Err(Refusal::new(Fault::Limit, "the conversation's budget")
                .advise("This conversation has used up its budget. Begin a new one.")),
            false => route(&self.organism, &rights, out).and_then(|route| match route {
                Route::Listeners(entries) => Ok(entries),
                _ => Err(Refusal::new(Fault::Validation, "no listener takes it")),
            }),
        };
        match routed {
            Ok(entries) => {
                let request = self.next_hop();
                if let Some(key) = key {
                    self.threads.see(root, key);
                    self.keys.insert(request, key.into());
                }
                self.on_account(Work::Request(request), root, |core, cause| {
                    for entry in entries {
                        let (from, payload) = (gateway.name.clone(), out.payload.clone());
                        // One listener is within any limit.
                        let _ = core.forward(root, &entry, from, payload, cause);
                    }
                });
                Ok(Some(request))
            }
            Err(refusal) => {
                let payload = refusal.payload(out);
                let (from, to) = (gateway.name.clone(), out.target_name());
                self.hop(root, from, to, &out.payload, refusal.kind());
                Err(payload)
            }
        }
    }

    /// A handler wants to call a model. Not while its budget has nothing left;
    /// then the work is over.
    pub(crate) fn admit_model_call(&mut self, hop: HopId, now: Time) -> Result<(), String> {
        self.take_in(now, Input::ModelCall { hop });
        let Some(job) = self.running.get(&hop).map(|running| running.job.clone()) else {
            return Err("the work is over".to_owned());
        };
        if self.accounts.is_over(job.cause.account) || !self.threads.is_alive(job.thread) {
            return Err("nobody waits for this work any more".to_owned());
        }
        if let Err(exhausted) = self.accounts.admit_model_call(job.cause) {
            self.exhaust(exhausted, job.root);
            return Err(format!("the budget of {} is used up", exhausted.bound));
        }
        if let Some(running) = self.running.get_mut(&hop) {
            running.model_calls += 1;
        }
        Ok(())
    }

    /// A handler has finished, used this much on its way, and keeps these notes
    /// unless it failed.
    pub(crate) fn finish(
        &mut self,
        hop: HopId,
        outcome: Outcome,
        used: Usage,
        notes: &[Note],
        now: Time,
    ) {
        let input = Input::Finish {
            hop,
            outcome: Cow::Borrowed(&outcome),
            used,
            notes: Cow::Borrowed(notes),
        };
        self.take_in(now, input);
        if let Some(running) = self.running.get(&hop)
            && !matches!(outcome, Outcome::Failed { .. })
        {
            self.threads.note(running.job.thread, notes);
        }
        self.end_run(hop, outcome, used);
    }

    pub(super) fn end_run(&mut self, hop: HopId, outcome: Outcome, used: Usage) {
        let Some(running) = self.running.remove(&hop) else {
            return;
        };
        let fault = match &outcome {
            Outcome::Failed { fault, .. } => Some(*fault),
            Outcome::Sent(_) | Outcome::Garbled { .. } => None,
        };
        self.handled(&running, used, fault);
        let Running {
            job, asks, asked, ..
        } = running;
        self.parent = Some(hop);
        match asks {
            0 => self.queues.done(&job.entry.key),
            _ => self.forget_all(&asked),
        }
        let job = &*job;
        self.accounts.charge(job.cause.account, used);
        let is_over = self.accounts.is_over(job.cause.account);
        if self.threads.is_alive(job.thread) && !is_over {
            match outcome {
                Outcome::Sent(messages) => self.send_all(job, messages),
                Outcome::Garbled { attempt, reason } => {
                    let huh = system::huh(&attempt, &reason);
                    let refusal = Refusal::new(Fault::Validation, reason);
                    let from = job.entry.listener.name.clone();
                    self.hop(job.root, from, "?".into(), &job.payload, refusal.kind());
                    self.refuse(job, vec![(huh, Fault::Validation)]);
                }
                Outcome::Failed { fault, reason } => {
                    let kind = HopKind::Failed { fault, reason };
                    let (from, to) = (job.entry.listener.name.clone(), job.from.clone());
                    self.hop(job.root, from, to, &job.payload, kind);
                    self.fail(job.thread, &fault.payload(), job.cause);
                }
            }
        } else {
            let name = job.entry.listener.name.clone();
            self.hop(job.root, name.clone(), name, &job.payload, HopKind::Ended);
        }
        self.done(job);
    }

    /// Answers go before new calls, so that a call in the same breath survives
    /// the pruning.
    fn send_all(&mut self, job: &Job, messages: Vec<Outgoing>) {
        let entry = self.current(job);
        let rights = Rights {
            peers: &entry.peers,
            is_agent: entry.listener.is_agent,
            caller: job.caller.clone(),
            answers: entry.listener.answer.as_ref(),
        };
        let mut routed: Vec<_> = messages
            .into_iter()
            .map(|out| {
                let route = route(&self.organism, &rights, &out);
                (out, route)
            })
            .collect();
        routed.sort_by_key(|(_, route)| !matches!(route, Ok(Route::Caller)));
        let mut refused = Vec::new();
        for (out, route) in routed {
            if let Err(refusal) = route.and_then(|route| self.carry(job, route, &out)) {
                let (from, to) = (job.entry.listener.name.clone(), out.target_name());
                self.hop(job.root, from, to, &out.payload, refusal.kind());
                refused.push((refusal.payload(&out), refusal.fault));
            }
        }
        match refused.is_empty() {
            true => self.threads.went_through(job.thread),
            false => self.refuse(job, refused),
        }
    }

    fn carry(&mut self, job: &Job, route: Route, out: &Outgoing) -> Result<(), Refusal> {
        match route {
            Route::Caller => self.respond(job, out),
            Route::Listeners(entries) => entries.iter().try_for_each(|entry| {
                if self.threads.in_flight(job.root) > self.limits.backlog {
                    return Err(Refusal::limit("backlog", self.limits.backlog));
                }
                let from = job.entry.listener.name.clone();
                let cause = job.cause.next();
                self.forward(job.thread, entry, from, out.payload.clone(), cause)
            }),
            Route::TodoUntil => self.open_todo(job, &out.payload),
            Route::TodoComplete => self.complete_todo(job, &out.payload),
        }
    }

    pub(super) fn owner(&self, thread: ThreadId) -> Option<Arc<Entry>> {
        self.lookup(&self.threads.owner(thread)?)
    }

    /// The listener of a job as it is now; as it was, if it is gone.
    pub(super) fn current(&self, job: &Job) -> Arc<Entry> {
        let current = self.lookup(&job.entry.key);
        current.unwrap_or_else(|| job.entry.clone())
    }

    pub(super) fn lookup(&self, key: &str) -> Option<Arc<Entry>> {
        self.entry(key).cloned()
    }

    pub(super) fn entry(&self, key: &str) -> Option<&Arc<Entry>> {
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
