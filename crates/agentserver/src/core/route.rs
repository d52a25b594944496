//! Who may send what to whom, and what happens when they may not.

use super::queues::Queues;
use super::threads::{Ended, ThreadId, Threads};
use super::todo::Todos;
use crate::handler::Target;
use crate::listener::{is_system_type, key};
use crate::organism::{Entry, Organism};
use crate::payload::Canonical;
use crate::system::{self, Fault, TodoClosed, TodoComplete, TodoNudge, TodoRegistered, TodoUntil};
use crate::trace::{Hop, HopKind};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Bounds on what conversations may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreLimits {
    /// Listeners in one call chain.
    pub depth: usize,
    /// Messages of one conversation that wait or run at one time.
    pub in_flight: usize,
    /// Messages of one conversation before it comes to rest.
    pub hops: usize,
    /// Refusals in a row before a listener's caller is told that it failed.
    pub refusals: u32,
    /// Watchers on one thread.
    pub todos: usize,
    /// Time between two nudges.
    pub nudge: Duration,
    /// Nudges before a watcher is given up.
    pub nudges: u32,
}

impl Default for CoreLimits {
    fn default() -> Self {
        Self {
            depth: 64,
            in_flight: 256,
            hops: 10_000,
            refusals: 8,
            todos: 32,
            nudge: Duration::from_secs(30),
            nudges: 20,
        }
    }
}

/// One message for one handler.
#[derive(Debug, Clone)]
pub struct Job {
    pub entry: Arc<Entry>,
    /// As it was when the message was sent: a reload does not make strangers
    /// of the types that its answer may have.
    pub organism: Arc<Organism>,
    pub thread: ThreadId,
    pub root: ThreadId,
    pub from: Arc<str>,
    pub is_self_call: bool,
    pub payload: Canonical,
    pub reminder: Option<String>,
}

/// A message that a handler wants to send.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub target: Target,
    pub payload: Canonical,
    pub form: Form,
    pub fit: Fit,
}

/// How a message was said; a text that is not understood gets a `<huh>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Typed,
    Text,
}

/// Whether the payload is a valid one of a type that the organism knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    Valid,
    Not(String),
}

/// How a handler's run ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// With messages, or none.
    Sent(Vec<Outgoing>),
    /// With text that nobody can read.
    Garbled { attempt: Vec<u8>, reason: String },
    /// Not at all.
    Failed { fault: Fault, reason: String },
}

/// A message for whoever began a conversation.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub root: ThreadId,
    pub from: Arc<str>,
    pub payload: Canonical,
}

/// What the pump must carry out.
#[derive(Debug)]
pub enum Effect {
    /// Run a handler, and report with [`Core::finish`].
    Run(Job),
    /// Hand a message to whoever began the conversation.
    Deliver(Arrival),
    /// A conversation came to rest: nothing of it waits or runs.
    Rest { root: ThreadId, permits: usize },
    /// A thread of a listener ended.
    Ended { entry: Arc<Entry>, thread: ThreadId },
    /// For the trace.
    Hop(Hop),
}

/// Where a message will go.
enum Route {
    Caller,
    Listeners(Vec<Arc<Entry>>),
    TodoUntil,
    TodoComplete,
}

/// Why a message will not go.
struct Refusal {
    fault: Fault,
    reason: String,
}

/// What a sender may do.
struct Rights<'a> {
    peers: &'a HashSet<Arc<str>>,
    is_agent: bool,
    caller: Option<Arc<str>>,
}

/// The state machine.
pub struct Core {
    organism: Arc<Organism>,
    /// Listeners that a reload took away while threads of theirs live.
    retired: HashMap<Arc<str>, Arc<Entry>>,
    limits: CoreLimits,
    threads: Threads,
    queues: Queues<Job>,
    todos: Todos,
    ended: Vec<Ended>,
    effects: Vec<Effect>,
}

impl Core {
    /// A pump's rules for one organism.
    pub fn new(organism: Arc<Organism>, limits: CoreLimits) -> Self {
        Self {
            organism,
            retired: HashMap::new(),
            limits,
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

    /// When [`Core::tick`] has something to do.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.todos.next_due()
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
        let routed = self
            .resolve(&rights, &out)
            .and_then(|route| self.admit(route, &out))
            .and_then(|route| match route {
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

    /// Time has passed: nudges whoever has watchers open and is doing nothing.
    pub(crate) fn tick(&mut self, now: Instant) {
        let next = now + self.limits.nudge;
        while let Some((id, todo)) = self.todos.pop_due(now, next) {
            let (thread, is_raised) = (todo.thread, todo.is_raised);
            if self.threads.is_busy(thread) {
                continue;
            }
            todo.nudges += 1;
            if todo.nudges > self.limits.nudges {
                self.close_todo(id, thread);
                self.tell(
                    thread,
                    system::NAME.into(),
                    Fault::Timeout.payload(),
                    Fault::Timeout,
                );
                continue;
            }
            let nudge = TodoNudge {
                id: id.to_string(),
                description: todo.description.clone(),
                is_raised,
            };
            if let Some(entry) = self.owner(thread) {
                self.acknowledge(
                    thread,
                    entry.listener.name.clone(),
                    system::canonical(&nudge),
                );
            }
        }
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
                let route = self
                    .resolve(&rights, &out)
                    .and_then(|route| self.admit(route, &out));
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

    /// Where a message would go, by rights alone. A target that may not be
    /// reached and one that does not exist are the same from outside.
    fn resolve(&self, rights: &Rights<'_>, out: &Outgoing) -> Result<Route, Refusal> {
        let routing = |reason: &str| Refusal::new(Fault::Routing, reason);
        match &out.target {
            Target::Caller => Ok(Route::Caller),
            Target::Named(name) => {
                let target = key(name);
                if !rights.is_agent && rights.caller.as_ref() == Some(&target) {
                    return Ok(Route::Caller);
                }
                if !rights.peers.contains(&target) {
                    return Err(routing("not a peer"));
                }
                match &*target {
                    system::TODO_UNTIL => Ok(Route::TodoUntil),
                    system::TODO_COMPLETE => Ok(Route::TodoComplete),
                    _ => match self.organism.get(&target) {
                        Some(entry) => Ok(Route::Listeners(vec![entry.clone()])),
                        None => Err(routing("no such listener")),
                    },
                }
            }
            Target::ByType => {
                if out.payload.is::<TodoUntil>() && rights.peers.contains(system::TODO_UNTIL) {
                    return Ok(Route::TodoUntil);
                }
                if out.payload.is::<TodoComplete>() && rights.peers.contains(system::TODO_COMPLETE)
                {
                    return Ok(Route::TodoComplete);
                }
                let mut takers: Vec<_> = rights
                    .peers
                    .iter()
                    .filter_map(|peer| self.organism.get(peer))
                    .filter(|entry| {
                        entry
                            .listener
                            .accepts(out.payload.namespace(), out.payload.root())
                    })
                    .cloned()
                    .collect();
                takers.sort_by(|a, b| a.key.cmp(&b.key));
                match takers.len() {
                    0 => Ok(Route::Caller),
                    1 => Ok(Route::Listeners(takers)),
                    _ if takers.iter().all(|entry| entry.listener.is_broadcast) => {
                        Ok(Route::Listeners(takers))
                    }
                    _ => Err(routing("several peers accept this payload; name one")),
                }
            }
        }
    }

    /// Whether the payload may go where the message would.
    fn admit(&self, route: Route, out: &Outgoing) -> Result<Route, Refusal> {
        let validation = |reason: &str| Refusal::new(Fault::Validation, reason);
        let (namespace, root) = (out.payload.namespace(), out.payload.root());
        if is_system_type(namespace, root) {
            return Err(validation("only the pump sends this type"));
        }
        if let Fit::Not(reason) = &out.fit {
            return Err(validation(reason));
        }
        let takes = match &route {
            // Whoever is above is asked when the answer is carried there.
            Route::Caller => true,
            Route::Listeners(entries) => entries.iter().all(|entry| {
                entry.listener.accepts(namespace, root)
                    && out.payload.xml().len() <= entry.listener.payload_bytes
            }),
            Route::TodoUntil => out.payload.is::<TodoUntil>(),
            Route::TodoComplete => out.payload.is::<TodoComplete>(),
        };
        match takes {
            true => Ok(route),
            false => Err(validation("the listener does not accept this type")),
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

    fn forward(
        &mut self,
        thread: ThreadId,
        entry: &Arc<Entry>,
        from: Arc<str>,
        payload: Canonical,
    ) -> bool {
        match self.threads.call(thread, &entry.key, self.limits.depth) {
            Some(callee) => {
                self.arrive(callee, from, payload, HopKind::Call);
                true
            }
            None => false,
        }
    }

    fn respond(&mut self, job: &Job, out: &Outgoing) -> Result<(), Refusal> {
        let Some(parent) = self.threads.parent(job.thread) else {
            return Ok(());
        };
        let takes = match self.threads.parent(parent) {
            None => true,
            Some(_) => self.owner(parent).is_some_and(|entry| {
                entry
                    .listener
                    .accepts(out.payload.namespace(), out.payload.root())
            }),
        };
        if !takes {
            return Err(Refusal::new(
                Fault::Validation,
                "the caller does not accept this type",
            ));
        }
        self.threads.answer(job.thread, &mut self.ended);
        self.arrive(
            parent,
            job.entry.listener.name.clone(),
            out.payload.clone(),
            HopKind::Answer,
        );
        Ok(())
    }

    /// The sender is told, in its own thread, and may try again; after too many
    /// tries its caller is told instead.
    fn refuse(
        &mut self,
        job: &Job,
        refusal: &Refusal,
        to: Arc<str>,
        payload: &Canonical,
        answer: Canonical,
    ) {
        self.hop(
            job.root,
            job.entry.listener.name.clone(),
            to,
            payload,
            refusal.kind(),
        );
        match self.threads.refuse(job.thread, self.limits.refusals) {
            true => self.fail(job.thread, Fault::Handler),
            false => self.tell(job.thread, system::NAME.into(), answer, refusal.fault),
        }
    }

    /// The thread gives no answer: its caller gets a [`Fault`] in its place.
    fn fail(&mut self, thread: ThreadId, fault: Fault) {
        if let Some(parent) = self.threads.answer(thread, &mut self.ended) {
            self.tell(parent, system::NAME.into(), fault.payload(), fault);
        }
    }

    /// Tells a thread of a fault. A listener that has no ear for it fails by
    /// it, so that the fault climbs until someone hears.
    fn tell(&mut self, mut thread: ThreadId, from: Arc<str>, mut payload: Canonical, fault: Fault) {
        while let Some(parent) = self.threads.parent(thread) {
            let hears = self
                .owner(thread)
                .is_some_and(|entry| entry.listener.accepts(payload.namespace(), payload.root()));
            if hears {
                break;
            }
            self.threads.answer(thread, &mut self.ended);
            payload = fault.payload();
            thread = parent;
        }
        self.arrive(thread, from, payload, HopKind::System);
    }

    /// Tells a thread something that it may ignore.
    fn acknowledge(&mut self, thread: ThreadId, from: Arc<str>, payload: Canonical) {
        let hears = self
            .owner(thread)
            .is_some_and(|entry| entry.listener.accepts(payload.namespace(), payload.root()));
        if hears {
            self.arrive(thread, from, payload, HopKind::System);
        }
    }

    /// A message reaches a thread: it waits for its listener's turn, or leaves
    /// the organism.
    fn arrive(&mut self, thread: ThreadId, from: Arc<str>, payload: Canonical, kind: HopKind) {
        let (Some(owner), Some(root)) = (self.threads.owner(thread), self.threads.root(thread))
        else {
            return;
        };
        if thread == root {
            let is_heard = self.threads.is_open(root);
            let kind = if is_heard { kind } else { HopKind::Unheard };
            self.hop(root, from.clone(), owner, &payload, kind);
            if is_heard {
                self.effects.push(Effect::Deliver(Arrival {
                    root,
                    from,
                    payload,
                }));
            }
            return;
        }
        let Some(entry) = self.owner(thread) else {
            return;
        };
        let Some((in_flight, hops)) = self.threads.enter(thread) else {
            return;
        };
        self.hop(
            root,
            from.clone(),
            entry.listener.name.clone(),
            &payload,
            kind,
        );
        self.todos.arrived(thread, &from, payload.root());
        let job = Job {
            is_self_call: *key(&from) == *owner,
            reminder: self.todos.reminder(thread),
            organism: self.organism.clone(),
            thread,
            root,
            payload,
            entry,
            from: from.clone(),
        };
        self.queues.push(&owner, from, job);
        if in_flight > self.limits.in_flight || hops > self.limits.hops {
            self.threads.end_all(root, &mut self.ended);
            self.arrive(
                root,
                system::NAME.into(),
                Fault::Routing.payload(),
                HopKind::System,
            );
        }
        self.dispatch(&owner);
    }

    /// Starts what may start at one listener.
    fn dispatch(&mut self, listener: &Arc<str>) {
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

    fn open_todo(&mut self, job: &Job, payload: &Canonical, now: Instant) -> Result<(), Refusal> {
        let asked = payload
            .read::<TodoUntil>()
            .map_err(|error| Refusal::new(Fault::Validation, error.to_string()))?;
        if self.todos.count(job.thread) >= self.limits.todos {
            return Err(Refusal::new(
                Fault::Routing,
                "too many watchers on this thread",
            ));
        }
        let id = self
            .todos
            .open(job.thread, job.root, asked, now + self.limits.nudge);
        self.threads.watch(job.root);
        let registered = TodoRegistered { id: id.to_string() };
        self.acknowledge(
            job.thread,
            system::TODO_UNTIL.into(),
            system::canonical(&registered),
        );
        Ok(())
    }

    fn complete_todo(&mut self, job: &Job, payload: &Canonical) -> Result<(), Refusal> {
        let closed = payload
            .read::<TodoComplete>()
            .ok()
            .and_then(|asked| {
                Some((
                    asked.id.trim().to_owned(),
                    Uuid::try_parse(asked.id.trim()).ok()?,
                ))
            })
            .and_then(|(id, uuid)| {
                Some(TodoClosed {
                    id,
                    was_raised: self.close_todo(uuid, job.thread)?,
                })
            });
        match closed {
            Some(closed) => {
                self.acknowledge(
                    job.thread,
                    system::TODO_COMPLETE.into(),
                    system::canonical(&closed),
                );
                Ok(())
            }
            None => Err(Refusal::new(
                Fault::Routing,
                "no such watcher on this thread",
            )),
        }
    }

    fn close_todo(&mut self, id: Uuid, thread: ThreadId) -> Option<bool> {
        let todo = self.todos.close(id, thread)?;
        self.threads.unwatch(todo.root, &mut self.ended);
        Some(todo.is_raised)
    }

    fn owner(&self, thread: ThreadId) -> Option<Arc<Entry>> {
        self.lookup(&self.threads.owner(thread)?)
    }

    fn lookup(&self, key: &str) -> Option<Arc<Entry>> {
        self.organism
            .get(key)
            .or_else(|| self.retired.get(key))
            .cloned()
    }

    fn hop(
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

impl Refusal {
    fn new(fault: Fault, reason: impl Into<String>) -> Self {
        Self {
            fault,
            reason: reason.into(),
        }
    }

    fn kind(&self) -> HopKind {
        HopKind::Refused {
            fault: self.fault,
            reason: self.reason.clone(),
        }
    }

    /// What the sender reads.
    fn payload(&self, out: &Outgoing) -> Canonical {
        match (out.form, self.fault) {
            (Form::Text, Fault::Validation) => system::huh(out.payload.xml().as_bytes()),
            (_, fault) => fault.payload(),
        }
    }
}

impl Outgoing {
    fn target_name(&self) -> Arc<str> {
        match &self.target {
            Target::Named(name) => Arc::from(&**name),
            Target::Caller => "caller".into(),
            Target::ByType => "*".into(),
        }
    }
}
