//! How a message gets in from outside: read, checked, let in when there is room.

use super::admission::{Admission, Permit};
use super::conversation::{Conversation, Delivered, SendError};
use super::{Pump, Shared, State, run};
use crate::core::{Form, HopId, Job, Outgoing, ThreadId, Time};
use crate::handler::Target;
use crate::payload::{Canonical, Payload};
use crate::system;
use std::sync::{Arc, PoisonError};
use tokio::sync::Notify;

/// What the rules said to a message: its id, none for one that was sent before, or
/// a refusal.
type Sent = Result<Option<HopId>, Canonical>;

impl Pump {
    /// One question and its first answer; `None` when nobody answered.
    pub async fn request<P: Payload>(
        &self,
        gateway: &str,
        to: &str,
        payload: P,
    ) -> Result<Option<Delivered>, SendError> {
        let payload = self.shared.read(&payload.to_xml()?)?;
        self.shared.request(gateway, to, payload).await
    }
}

impl Shared {
    /// A payload as someone outside wrote it.
    pub(super) fn read(&self, xml: &str) -> Result<Canonical, SendError> {
        Canonical::parse(xml, &self.settings.xml).map_err(|error| {
            let huh = system::huh(xml.as_bytes(), &error.to_string());
            SendError::Refused(huh)
        })
    }

    pub(super) async fn send(
        self: &Arc<Self>,
        root: ThreadId,
        to: Option<&str>,
        payload: Canonical,
        key: Option<&str>,
    ) -> Result<Option<HopId>, SendError> {
        let (out, now) = (self.outgoing(to, payload), self.now());
        let (tried, next) =
            self.step_and_follow(|state| state.try_send(root, &out, key, now, &self.admission));
        let (sent, next) = self.accepted(root, &out, key, tried, next).await?;
        self.spawn(next);
        Ok(sent)
    }

    /// One question in a conversation of its own, and its first answer; none when
    /// nobody answered.
    async fn request(
        self: &Arc<Self>,
        gateway: &str,
        to: &str,
        payload: Canonical,
    ) -> Result<Option<Delivered>, SendError> {
        let (out, now) = (self.outgoing(Some(to), payload), self.now());
        let (begun, next) = self.step_and_follow(|state| {
            let root = state.open(gateway, None, &self.settings, now)?;
            let tried = state.try_send(root, &out, None, now, &self.admission);
            Ok::<_, SendError>((root, tried))
        });
        let (root, tried) = begun?;
        let conversation = Conversation::new(self.clone(), root, None);
        let (_, next) = self.accepted(root, &out, None, tried, next).await?;
        // Whoever asks waits for the answer anyway.
        run::run_here(self, next);
        // One who asks again and again must not keep others from running.
        tokio::task::coop::consume_budget().await;
        Ok(conversation.into_next().await)
    }

    fn outgoing(&self, to: Option<&str>, payload: Canonical) -> Outgoing {
        let organism = self.organism.read();
        Outgoing {
            target: to.map_or(Target::ByType, |to| Target::Named(to.to_owned())),
            fit: organism
                .unwrap_or_else(PoisonError::into_inner)
                .fit(&payload),
            form: Form::Text,
            payload,
        }
    }

    /// What was tried is done: at once, or when its turn comes. Gives the run that
    /// follows to whoever can see to it.
    async fn accepted(
        self: &Arc<Self>,
        root: ThreadId,
        out: &Outgoing,
        key: Option<&str>,
        tried: Option<(Sent, Permit)>,
        mut next: Option<Arc<Job>>,
    ) -> Result<(Option<HopId>, Option<Arc<Job>>), SendError> {
        let (sent, permit) = match tried {
            Some(sent) => sent,
            None => {
                self.spawn(next.take());
                let permit = self.wait_for_turn(root).await?;
                let now = self.now();
                let (sent, follows) = self.step_and_follow(|state| state.send(root, out, key, now));
                next = follows;
                (sent, permit)
            }
        };
        let sent = match sent {
            Ok(sent) => sent,
            Err(refusal) => {
                self.spawn(next);
                return Err(SendError::Refused(refusal));
            }
        };
        if sent.is_some() {
            // The rules say when the work is done.
            permit.keep();
        }
        // Where there is a journal, nothing follows before this.
        self.committed().await?;
        Ok((sent, next))
    }

    /// Waits for room in a conversation, and then for its turn among all.
    async fn wait_for_turn(self: &Arc<Self>, root: ThreadId) -> Result<Permit, SendError> {
        let gateway = self.room(root).await;
        let admitted = self.admission.acquire(gateway, root).await;
        admitted.map_err(|_| SendError::Closed)
    }

    /// Waits until a conversation has room for one more message. Gives the key
    /// of its gateway.
    async fn room(self: &Arc<Self>, root: ThreadId) -> Arc<str> {
        let waiting = {
            let mut state = self.lock();
            match state.gateway_with_room(root) {
                Some(gateway) => return gateway,
                None => Waiting::new(self, &mut state, root),
            }
        };
        loop {
            let changed = waiting.changed.notified();
            if let Some(gateway) = self.lock().gateway_with_room(root) {
                return gateway;
            }
            changed.await;
        }
    }
}

impl State {
    /// Sends, where there is room and nobody's turn before it, as is mostly so.
    fn try_send(
        &mut self,
        root: ThreadId,
        out: &Outgoing,
        key: Option<&str>,
        now: Time,
        admission: &Arc<Admission>,
    ) -> Option<(Sent, Permit)> {
        if !self.has_room(root) {
            return None;
        }
        let permit = admission.try_acquire()?;
        Some((self.send(root, out, key, now), permit))
    }

    fn send(&mut self, root: ThreadId, out: &Outgoing, key: Option<&str>, now: Time) -> Sent {
        let sent = self.core.send(root, out, key, now);
        if let (Ok(Some(id)), Some(mailbox)) = (&sent, self.mailboxes.get_mut(&root)) {
            mailbox.sent = self.core.epoch(root);
            mailbox.last_sent = Some(*id);
        }
        sent
    }

    /// Whether a conversation has room for one more.
    fn has_room(&self, root: ThreadId) -> bool {
        // One that is gone is refused further on.
        self.core.has_room(root, self.unread(root)) || !self.mailboxes.contains_key(&root)
    }

    /// The key of the gateway, where its conversation has room for one more.
    fn gateway_with_room(&self, root: ThreadId) -> Option<Arc<str>> {
        let gateway = || self.core.gateway_of(root).unwrap_or_else(|| "".into());
        self.has_room(root).then(gateway)
    }
}

/// Someone who waits for room to send, until it is dropped.
struct Waiting {
    shared: Arc<Shared>,
    root: ThreadId,
    changed: Arc<Notify>,
}

impl Waiting {
    fn new(shared: &Arc<Shared>, state: &mut State, root: ThreadId) -> Self {
        let changed = state.mailboxes.get_mut(&root).map(|mailbox| {
            mailbox.senders += 1;
            mailbox.changed()
        });
        Self {
            shared: shared.clone(),
            root,
            changed: changed.unwrap_or_default(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(mailbox) = self.shared.lock().mailboxes.get_mut(&self.root) {
            mailbox.senders = mailbox.senders.saturating_sub(1);
        }
    }
}
