//! How a message gets to a thread: calls, answers, faults.

use super::account::{Cause, Exhausted, Work};
use super::machine::Core;
use super::message::{Arrival, Effect, HopId, Job, Outgoing};
use super::rights::Refusal;
use super::threads::ThreadId;
use crate::listener::lowercase;
use crate::organism::RegisteredListener;
use crate::payload::Canonical;
use crate::system::{self, Fault};
use crate::trace::HopKind;
use runtime::CancellationToken;
use std::sync::Arc;

impl Core {
    /// Calls a listener, on an account of the call's own; a self-call is part of
    /// the call that it came from.
    pub(super) fn forward(
        &mut self,
        thread: ThreadId,
        entry: &Arc<RegisteredListener>,
        from: Arc<str>,
        payload: Canonical,
        cause: Cause,
    ) -> Result<(), Refusal> {
        let depth = self.limits.depth;
        let is_shared = !entry.listener.is_concurrent;
        let Some(callee) = self.threads.call(thread, &entry.key, is_shared, depth) else {
            return Err(Refusal::limit("chain", depth));
        };
        if callee == thread {
            self.arrive(callee, from, payload, HopKind::Call, cause);
            return Ok(());
        }
        self.call(thread, callee, entry, from, payload, cause);
        Ok(())
    }

    /// Begins the call of a listener's thread.
    pub(super) fn call(
        &mut self,
        thread: ThreadId,
        callee: ThreadId,
        entry: &Arc<RegisteredListener>,
        from: Arc<str>,
        payload: Canonical,
        cause: Cause,
    ) {
        let budget = entry.listener.budget.unwrap_or_default();
        let work = Work::Call(callee);
        let account = self
            .accounts
            .open(work, thread, budget, Some(cause), self.now);
        let call = Cause { account, ..cause };
        self.arrive(callee, from, payload, HopKind::Call, call);
        self.accounts.leave(account);
        self.begin_next_calls();
    }

    pub(super) fn respond(&mut self, job: &Job, out: &Outgoing) -> Result<(), Refusal> {
        let Some(parent) = self.threads.parent(job.thread) else {
            return Ok(());
        };
        if self.asks.is_asked(job.thread) {
            let id = self.next_hop();
            let (from, to) = (&job.entry.listener.name, &job.from);
            self.reach(id, job.root, from, to, &out.payload, HopKind::Answer);
            self.resolve(job.thread, Some(out.payload.clone()));
            return Ok(());
        }
        if let Some(caller) = self.owner(parent).filter(|_| !self.is_root(parent))
            && !caller
                .listener
                .accepts(out.payload.namespace(), out.payload.root())
        {
            let accepted: Vec<_> = caller.listener.offers().map(|s| &*s.name).collect();
            let advice = format!(
                "Your caller does not accept <{}>; it accepts: {}.",
                out.payload.root(),
                accepted.join(", ")
            );
            let reason = "the caller does not accept this type";
            return Err(Refusal::new(Fault::Validation, reason).advise(advice));
        }
        self.threads.answer(job.thread, &mut self.ended);
        let cause = self.accounts.beyond(job.thread, job.cause).next();
        let (from, payload) = (job.entry.listener.name.clone(), out.payload.clone());
        self.arrive(parent, from, payload, HopKind::Answer, cause);
        Ok(())
    }

    fn is_root(&self, thread: ThreadId) -> bool {
        self.threads.parent(thread).is_none()
    }

    /// The sender is told of each message that was refused, in its own thread,
    /// and may try again; after too many tries its caller is told instead.
    pub(super) fn refuse(&mut self, job: &Job, refused: Vec<(Canonical, Fault)>) {
        if self.threads.refuse(job.thread, self.limits.refusals) {
            let fault = Fault::Handler;
            return self.fail(job.thread, fault.payload(), fault, job.cause);
        }
        for (told, fault) in refused {
            self.tell(job.thread, told, &fault.payload(), job.cause);
        }
    }

    /// The thread gives no answer: its caller is told in its place. Words for the
    /// caller go no further than to it.
    pub(super) fn fail(&mut self, thread: ThreadId, told: Canonical, fault: Fault, cause: Cause) {
        if self.resolve(thread, Some(told.clone())) {
            return;
        }
        if let Some(parent) = self.threads.answer(thread, &mut self.ended) {
            let cause = self.accounts.beyond(thread, cause);
            self.tell(parent, told, &fault.payload(), cause);
        }
    }

    /// Tells a thread of a fault. A listener that has no ear for it fails by
    /// it, so that the fault climbs until someone hears.
    pub(super) fn tell(
        &mut self,
        mut thread: ThreadId,
        mut payload: Canonical,
        fault: &Canonical,
        mut cause: Cause,
    ) {
        while let Some(parent) = self.threads.parent(thread) {
            let hears = self
                .owner(thread)
                .is_some_and(|entry| entry.listener.accepts(payload.namespace(), payload.root()));
            if hears {
                break;
            }
            if self.resolve(thread, Some(fault.clone())) {
                return;
            }
            self.threads.answer(thread, &mut self.ended);
            cause = self.accounts.beyond(thread, cause);
            payload = fault.clone();
            thread = parent;
        }
        let from = system::NAME.into();
        self.arrive(thread, from, payload, HopKind::System, cause.next());
    }

    /// Tells whoever asked for work that its budget is used up.
    pub(super) fn tell_of_budget(&mut self, exhausted: Exhausted, root: ThreadId) {
        let Exhausted {
            parent,
            holder,
            work,
            bound,
            hops,
            account,
        } = exhausted;
        let request = self.accounts.request_of(account);
        let whose = match work {
            Work::Conversation => "This conversation",
            Work::Request(_) | Work::Call(_) | Work::Internal | Work::Nudge(_) => {
                "The work that you asked for"
            }
        };
        let words = format!("{whose} has used up its budget of {bound} and was ended.");
        let fault = Fault::Limit.saying(&words);
        let to = self.threads.owner(holder).unwrap_or_else(|| "?".into());
        let kind = HopKind::Exhausted {
            limit: bound.name(),
            words,
        };
        self.hop(root, &system::NAME.into(), &to, &fault, kind);
        if let Work::Call(thread) = work {
            if self.resolve(thread, Some(fault.clone())) {
                return;
            }
            self.threads.answer(thread, &mut self.ended);
        }
        match parent {
            Some(account) if !self.is_root(holder) => {
                let cause = Cause { account, hops };
                self.tell(holder, fault.clone(), &fault, cause);
            }
            _ => {
                let from = system::NAME.into();
                self.leave_organism(holder, from, fault, HopKind::System, request);
            }
        }
    }

    /// Tells a thread something that it may ignore.
    pub(super) fn acknowledge(
        &mut self,
        thread: ThreadId,
        from: Arc<str>,
        payload: Canonical,
        cause: Cause,
    ) {
        let hears = self
            .owner(thread)
            .is_some_and(|entry| entry.listener.accepts(payload.namespace(), payload.root()));
        if hears {
            self.arrive(thread, from, payload, HopKind::System, cause.next());
        }
    }

    /// A message reaches a thread: it waits for its turn, or leaves the organism.
    pub(super) fn arrive(
        &mut self,
        thread: ThreadId,
        from: Arc<str>,
        payload: Canonical,
        kind: HopKind,
        cause: Cause,
    ) {
        let (Some(owner), Some(root)) = (self.threads.owner(thread), self.threads.root(thread))
        else {
            return;
        };
        if self.accounts.is_over(cause.account) {
            return self.hop(root, &from, &owner, &payload, HopKind::Ended);
        }
        if thread == root {
            let request = self.accounts.request_of(cause.account);
            return self.leave_organism(root, from, payload, kind, request);
        }
        let Some(entry) = self.owner(thread) else {
            return;
        };
        if let Err(exhausted) = self.accounts.admit_message(cause) {
            return self.exhaust(exhausted, root);
        }
        if self.threads.enter(thread).is_none() {
            return;
        }
        self.accounts.enter(cause.account);
        let id = self.next_hop();
        self.reach(id, root, &from, &entry.listener.name, &payload, kind);
        self.todos.arrived(thread, &from, payload.root());
        let caller = self.threads.parent(thread);
        let job = Job {
            id,
            parent: self.parent,
            arrived: self.now,
            is_self_call: lowercase(&from) == *owner,
            reminder: None,
            notes: None,
            organism: self.organism.clone(),
            caller: caller.and_then(|caller| self.threads.owner(caller)),
            cancellation: CancellationToken::default(),
            thread,
            root,
            payload,
            entry,
            from,
            cause,
        };
        self.queue(job);
    }

    /// A message reaches whoever began the conversation.
    fn leave_organism(
        &mut self,
        root: ThreadId,
        from: Arc<str>,
        payload: Canonical,
        kind: HopKind,
        request: Option<HopId>,
    ) {
        let Some(owner) = self.threads.owner(root) else {
            return;
        };
        let is_heard = self.threads.conversations.is_open(root);
        if !is_heard {
            self.hop(root, &from, &owner, &payload, HopKind::Unheard);
        } else {
            let id = self.next_hop();
            self.reach(id, root, &from, &owner, &payload, kind);
            let arrival = Arrival {
                id,
                root,
                request,
                key: request.and_then(|request| self.keys.get(&request).cloned()),
                from,
                payload,
            };
            if let Some(outbox) = &mut self.outbox {
                outbox.push(arrival.clone());
            }
            self.effects.push(Effect::Deliver(arrival));
        }
    }
}
