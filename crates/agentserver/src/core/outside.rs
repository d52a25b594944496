//! What comes from outside: conversations that gateways begin and close, their
//! messages, and the start of the organism itself.

use super::account::{Cause, Work};
use super::input::Input;
use super::machine::Core;
use super::message::{HopId, Outgoing};
use super::rights::{Refusal, Rights, Route, route};
use super::threads::ThreadId;
use super::time::Time;
use crate::listener::key;
use crate::payload::Canonical;
use crate::system::{self, Fault};
use std::borrow::Cow;

impl Core {
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
            self.threads.conversations.set_name(root, name);
        }
        let budget = self.limits.conversation;
        if !budget.is_unbounded() {
            let work = Work::Conversation;
            let account = self.accounts.open(work, root, budget, None, now);
            self.threads.conversations.set_account(root, account);
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
        self.threads.conversations.is_open(root) && self.threads.is_owned_by(root, &key(gateway))
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
        let parent = self.threads.conversations.account(root);
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
        if key.is_some_and(|key| self.threads.conversations.has_dedup_key(root, key)) {
            return Ok(None);
        }
        let gateway = self
            .threads
            .owner(root)
            .and_then(|owner| self.organism.gateway(&owner).cloned());
        let Some(gateway) = gateway.filter(|_| self.threads.conversations.is_open(root)) else {
            return Err(Fault::Routing.payload());
        };
        let rights = Rights {
            peers: &gateway.peers,
            is_agent: true,
            caller: None,
            answers: None,
        };
        let is_over = |account| self.accounts.is_over(account);
        let routed = match self
            .threads
            .conversations
            .account(root)
            .is_some_and(is_over)
        {
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
                    self.threads.conversations.record_dedup_key(root, key);
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
                let (from, to) = (&gateway.name, &out.target_name());
                self.hop(root, from, to, &out.payload, refusal.kind());
                Err(payload)
            }
        }
    }
}
