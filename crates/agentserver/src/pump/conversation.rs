//! A conversation, seen from outside.

use super::admission::Permit;
use super::effects::Free;
use super::{Pump, Shared, State, run};
use crate::core::{Form, HopId, Job, Outgoing, ThreadId, Time};
use crate::envelope::Envelope;
use crate::handler::Target;
use crate::payload::{Canonical, Payload, PayloadError};
use crate::system;
use crate::xml::XmlError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Whether it stays open when this is dropped.
    is_kept: AtomicBool,
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
            is_kept: AtomicBool::new(false),
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
        self.receive().await
    }

    /// The next message, as [`Conversation::next`] gives it, with nothing
    /// acknowledged: that is for [`Conversation::acknowledge_to`].
    pub async fn receive(&self) -> Option<Delivered> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.shared.lock();
                if let Some(delivered) = state.read(self.root) {
                    state.free();
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
    /// Says that all up to this message is done with, and need not be given again.
    pub fn acknowledge_to(&self, id: HopId) {
        if self.shared.is_durable() {
            let now = self.shared.now();
            self.shared
                .step(|state| state.core.acknowledge_answer(self.root, id, now));
        }
    }

    /// Leaves the conversation open when it is dropped, where there is a journal to
    /// go on with it from.
    pub(crate) fn keep_open(&self) {
        let is_kept = self.shared.is_durable();
        self.is_kept.store(is_kept, Ordering::Relaxed);
    }

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
        if self.is_kept.load(Ordering::Relaxed) {
            return;
        }
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
        let payload = conversation.read(&payload.to_xml()?)?;
        let root = conversation.root;
        let (_, next) = self
            .shared
            .send_and_follow(root, Some(to), payload, None)
            .await?;
        // Whoever asks waits for the answer anyway.
        run::run_here(&self.shared, next);
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
        let (sent, next) = self.send_and_follow(root, to, payload, key).await?;
        self.spawn(next);
        Ok(sent)
    }

    /// Sends, and gives a run that follows to whoever can see to it at once.
    async fn send_and_follow(
        self: &Arc<Self>,
        root: ThreadId,
        to: Option<&str>,
        payload: Canonical,
        key: Option<&str>,
    ) -> Result<(Option<HopId>, Option<Arc<Job>>), SendError> {
        let out = Outgoing {
            target: to.map_or(Target::ByType, |to| Target::Named(to.to_owned())),
            fit: self.organism().fit(&payload),
            form: Form::Text,
            payload,
        };
        let now = self.now();
        // Mostly there is room, and no need to ask for it first.
        let (at_once, mut next) = self.step_and_follow(|state| {
            state.gateway_with_room(root)?;
            let permit = self.admission.try_acquire()?;
            Some((state.send(root, &out, key, now), permit))
        });
        let (sent, permit) = match at_once {
            Some(sent) => sent,
            None => {
                let permit = self.wait_for_turn(root).await?;
                let now = self.now();
                self.spawn(next.take());
                let (sent, follows) =
                    self.step_and_follow(|state| state.send(root, &out, key, now));
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
    fn send(
        &mut self,
        root: ThreadId,
        out: &Outgoing,
        key: Option<&str>,
        now: Time,
    ) -> Result<Option<HopId>, Canonical> {
        let sent = self.core.send(root, out, key, now);
        if let (Ok(Some(_)), Some(mailbox)) = (&sent, self.mailboxes.get_mut(&root)) {
            mailbox.sent = self.core.epoch(root);
        }
        sent
    }

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
