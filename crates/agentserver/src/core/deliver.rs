//! How a message gets to a thread: calls, answers, faults.

use super::machine::Core;
use super::message::{Arrival, Effect, Job, Outgoing};
use super::rights::Refusal;
use super::threads::ThreadId;
use crate::listener::key;
use crate::organism::Entry;
use crate::payload::Canonical;
use crate::system::{self, Fault};
use crate::trace::HopKind;
use std::sync::Arc;

impl Core {
    pub(super) fn forward(
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

    pub(super) fn respond(&mut self, job: &Job, out: &Outgoing) -> Result<(), Refusal> {
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
    pub(super) fn refuse(
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
            false => self.tell(job.thread, answer, refusal.fault),
        }
    }

    /// The thread gives no answer: its caller gets a [`Fault`] in its place.
    pub(super) fn fail(&mut self, thread: ThreadId, fault: Fault) {
        if let Some(parent) = self.threads.answer(thread, &mut self.ended) {
            self.tell(parent, fault.payload(), fault);
        }
    }

    /// Tells a thread of a fault. A listener that has no ear for it fails by
    /// it, so that the fault climbs until someone hears.
    pub(super) fn tell(&mut self, mut thread: ThreadId, mut payload: Canonical, fault: Fault) {
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
        self.arrive(thread, system::NAME.into(), payload, HopKind::System);
    }

    /// Tells a thread something that it may ignore.
    pub(super) fn acknowledge(&mut self, thread: ThreadId, from: Arc<str>, payload: Canonical) {
        let hears = self
            .owner(thread)
            .is_some_and(|entry| entry.listener.accepts(payload.namespace(), payload.root()));
        if hears {
            self.arrive(thread, from, payload, HopKind::System);
        }
    }

    /// A message reaches a thread: it waits for its listener's turn, or leaves
    /// the organism.
    pub(super) fn arrive(
        &mut self,
        thread: ThreadId,
        from: Arc<str>,
        payload: Canonical,
        kind: HopKind,
    ) {
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
}
