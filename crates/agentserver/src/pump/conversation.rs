//! A conversation, seen from outside.

use super::{Pump, Shared, State};
use crate::core::{Form, HopId, Outgoing, ThreadId};
use crate::envelope::Envelope;
use crate::handler::Target;
use crate::payload::{Canonical, Payload, PayloadError};
use crate::system;
use crate::xml::XmlError;
use std::sync::Arc;
use tokio::sync::Notify;

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Refused; the payload is the `SystemError` or `<huh>` for it.
    #[error("refused: {}", .0.xml())]
    Refused(Canonical),
    /// The pump takes nothing more.
    #[error("the pump has been closed")]
    Closed,
    /// As many conversations are open as may be.
    #[error("{0} conversations are open, and more are not allowed; try again when one has ended")]
    Full(usize),
    /// The journal cannot be written: nothing is accepted and nothing moves.
    #[error(
        "the journal cannot be written, so nothing is accepted any more: {0}. Make room on its disk, \
         or mend what is wrong with it, and start the organism again"
    )]
    Journal(Arc<str>),
    /// The payload has no XML form.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

/// A message that left the organism.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// Its id: the same when it is given again after a crash, and no other's.
    pub id: HopId,
    /// What [`Conversation::send`] gave for the message that it follows from; none
    /// where that is the whole conversation, or a reminder.
    pub request: Option<HopId>,
    /// The key that one was sent with, by [`Conversation::send_once`].
    pub key: Option<Arc<str>>,
    /// Who sent it.
    pub from: Arc<str>,
    /// The conversation's own thread.
    pub thread: ThreadId,
    /// What it carries.
    pub payload: Canonical,
}

impl Delivered {
    /// The message as an envelope for `to`, which also tells its id and the key of
    /// the message that it follows from.
    pub fn envelope(&self, to: &str) -> Result<String, XmlError> {
        let envelope = Envelope {
            from: self.from.clone(),
            to: Some(Arc::from(to)),
            thread: self.thread.to_string().into(),
            payload: self.payload.clone(),
        };
        let id = self.id.to_string();
        let key = self.key.as_deref().map(|key| ("in-reply-to", key));
        envelope.write_with([("id", &*id)].into_iter().chain(key))
    }
}

/// A conversation that a gateway began. Dropping it closes it: what is under
/// way goes on, its answers are no longer heard, and its threads end with it.
pub struct Conversation {
    shared: Arc<Shared>,
    root: ThreadId,
    name: Option<Arc<str>>,
    changed: Arc<Notify>,
}

impl Conversation {
    pub(super) fn new(
        shared: Arc<Shared>,
        root: ThreadId,
        name: Option<Arc<str>>,
        changed: Arc<Notify>,
    ) -> Self {
        Self {
            shared,
            root,
            name,
            changed,
        }
    }

    /// Its name outside, by [`Pump::open_named`].
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Its thread, as outside programs name it.
    pub fn thread(&self) -> ThreadId {
        self.root
    }

    /// Sends to a listener. Waits while the pump has too much to do, and while
    /// too much of this conversation waits, runs or is unread: whoever sends
    /// much must read meanwhile. Gives the message's id, once it is accepted; a
    /// durable pump has it on the disk then.
    pub async fn send<P: Payload>(&self, to: &str, payload: P) -> Result<HopId, SendError> {
        self.send_xml(Some(to), &payload.to_xml()?).await
    }

    /// Sends a payload as XML; without a target, its type decides.
    pub async fn send_xml(&self, to: Option<&str>, xml: &str) -> Result<HopId, SendError> {
        let sent = self
            .shared
            .send(self.root, to, self.read(xml)?, None)
            .await?;
        // Without a key, it was not sent before.
        sent.ok_or(SendError::Closed)
    }

    /// Sends a payload as XML, unless this conversation has accepted one with the
    /// same key before: for those who send again because they do not know. Gives
    /// its id; none where it was accepted before. The newest 65,536 keys are known.
    pub async fn send_once(
        &self,
        key: &str,
        to: Option<&str>,
        xml: &str,
    ) -> Result<Option<HopId>, SendError> {
        let payload = self.read(xml)?;
        self.shared.send(self.root, to, payload, Some(key)).await
    }

    fn read(&self, xml: &str) -> Result<Canonical, SendError> {
        Canonical::parse(xml, &self.shared.settings.xml).map_err(|error| {
            let huh = system::huh(xml.as_bytes(), &error.to_string());
            SendError::Refused(huh)
        })
    }

    /// Whether nothing of it waits, runs, is watched for or is left to read.
    pub fn is_at_rest(&self) -> bool {
        let state = self.shared.lock();
        state.core.is_resting(self.root) && state.unread(self.root) == 0
    }

    /// Whether nothing of it waits, runs or is left to read; a to-do may be open.
    pub fn is_idle(&self) -> bool {
        let state = self.shared.lock();
        state.core.in_flight(self.root) == 0 && state.unread(self.root) == 0
    }

    /// Waits until nothing of it waits or runs, whatever is watched for.
    pub async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_idle() {
                return;
            }
            changed.await;
        }
    }

    /// The next message; `None` when the conversation has come to rest since
    /// something was last sent, so that nothing will come unless something is.
    /// What was read before is acknowledged by it: a message that was read last is
    /// given again after a crash, with the same id.
    pub async fn next(&self) -> Option<Delivered> {
        self.acknowledge();
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.shared.lock();
                if let Some(delivered) = state.read(self.root) {
                    return Some(delivered);
                }
                if state.has_rested(self.root) {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Conversation {
    /// Says that all that was read is done with, and need not be given again.
    pub fn acknowledge(&self) {
        if !self.shared.is_durable() {
            return;
        }
        let now = self.shared.now();
        self.shared.step(|state| {
            let mailbox = state.mailboxes.get_mut(&self.root);
            if let Some(id) = mailbox.and_then(|mailbox| mailbox.read.take()) {
                state.core.acknowledge_answer(self.root, id, now);
            }
        });
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let now = self.shared.now();
        self.shared.step(|state| {
            state.mailboxes.remove(&self.root);
            state.core.close(self.root, now);
        });
    }
}

impl Pump {
    /// One question and its first answer; `None` when nobody answered.
    pub async fn request<P: Payload>(
        &self,
        gateway: &str,
        to: &str,
        payload: P,
    ) -> Result<Option<Delivered>, SendError> {
        let conversation = self.open(gateway)?;
        conversation.send(to, payload).await?;
        Ok(conversation.next().await)
    }
}

impl Shared {
    pub(super) async fn send(
        self: &Arc<Self>,
        root: ThreadId,
        to: Option<&str>,
        payload: Canonical,
        key: Option<&str>,
    ) -> Result<Option<HopId>, SendError> {
        let fit = self.organism().fit(&payload);
        let target = to.map_or(Target::ByType, |to| Target::Named(to.to_owned()));
        let gateway = self.room(root).await;
        let admitted = self.admission.acquire(gateway, root).await;
        let permit = admitted.map_err(|_| SendError::Closed)?;
        let out = Outgoing {
            target,
            payload,
            form: Form::Text,
            fit,
        };
        let now = self.now();
        let sent = self.step(|state| {
            let sent = state.core.send(root, &out, key, now);
            let epoch = state.core.epoch(root);
            if let (Ok(Some(_)), Some(mailbox)) = (&sent, state.mailboxes.get_mut(&root)) {
                mailbox.sent = epoch;
            }
            sent
        });
        let sent = sent.map_err(SendError::Refused)?;
        if sent.is_some() {
            // The rules say when the work is done.
            permit.keep();
        }
        self.committed().await?;
        Ok(sent)
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
    /// The key of the gateway, where its conversation has room for one more.
    fn gateway_with_room(&self, root: ThreadId) -> Option<Arc<str>> {
        let has_room = self.core.has_room(root, self.unread(root));
        // One that is gone is refused further on.
        let is_gone = !self.mailboxes.contains_key(&root);
        (has_room || is_gone).then(|| self.core.gateway_of(root).unwrap_or_else(|| "".into()))
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
