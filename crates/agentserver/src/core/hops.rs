//! What the trace is told: every message that moved, or did not, and what handling
//! it took.

use super::budget::Usage;
use super::machine::{Core, Running};
use super::message::{Effect, HopId};
use super::threads::ThreadId;
use crate::payload::Canonical;
use crate::system::Fault;
use crate::trace::{Handling, Hop, HopKind};
use std::sync::Arc;

impl Core {
    /// A message that reached nobody, for the trace.
    pub(super) fn hop(
        &mut self,
        root: ThreadId,
        from: &Arc<str>,
        to: &Arc<str>,
        payload: &Canonical,
        kind: HopKind,
    ) {
        self.note_hop(None, root, from, to, payload, kind);
    }

    /// A message that reached someone, for the trace.
    pub(super) fn reach(
        &mut self,
        id: HopId,
        root: ThreadId,
        from: &Arc<str>,
        to: &Arc<str>,
        payload: &Canonical,
        kind: HopKind,
    ) {
        self.note_hop(Some(id), root, from, to, payload, kind);
    }

    fn note_hop(
        &mut self,
        id: Option<HopId>,
        conversation: ThreadId,
        from: &Arc<str>,
        to: &Arc<str>,
        payload: &Canonical,
        kind: HopKind,
    ) {
        self.counts.hop(&kind);
        if self.tells_all_hops || kind.is_for_operator() {
            self.effects.push(Effect::Hop(Box::new(Hop {
                id,
                parent: self.parent,
                conversation,
                from: from.clone(),
                to: to.clone(),
                payload: payload.clone(),
                kind,
            })));
        }
    }

    /// A handler is done with its message, for the trace.
    pub(super) fn handled(&mut self, running: &Running, used: Usage, fault: Option<Fault>) {
        let job = &*running.job;
        let handling = Handling {
            waited: running.begun.since(job.arrived),
            took: self.now.since(running.begun),
            model_calls: running.model_calls,
            tokens: used.tokens,
            money: used.money,
            fault,
        };
        self.counts.handled(&job.entry.listener.name, handling);
        if self.tells_all_hops {
            self.effects.push(Effect::Hop(Box::new(Hop {
                id: Some(job.id),
                parent: job.parent,
                conversation: job.root,
                from: job.from.clone(),
                to: job.entry.listener.name.clone(),
                payload: job.payload.clone(),
                kind: HopKind::Handled(handling),
            })));
        }
    }
}
