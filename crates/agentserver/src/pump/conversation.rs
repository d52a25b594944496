//! A conversation, seen from outside.

use super::Shared;
use super::effects::UnlockAndNotify;
use crate::core::{HopId, ThreadId};
use crate::envelope::Envelope;
use crate::payload::{Canonical, Payload, PayloadError};
use crate::xml::XmlError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
            thread: self.thread.text(),
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
    /// Whether it stays open when this is dropped.
    is_kept: AtomicBool,
}

impl Conversation {
    pub(super) fn new(shared: Arc<Shared>, root: ThreadId, name: Option<Arc<str>>) -> Self {
        Self {
            shared,
            root,
            name,
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
        let payload = self.shared.read(xml)?;
        let sent = self.shared.send(self.root, to, payload, None).await?;
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
        let payload = self.shared.read(xml)?;
        self.shared.send(self.root, to, payload, Some(key)).await
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
            let changed = {
                let mut state = self.shared.lock();
                if state.core.in_flight(self.root) == 0 && state.unread(self.root) == 0 {
                    return;
                }
                state.changed(self.root)
            };
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
        self.receive_or_rest().await.ok()
    }

    /// The next message; or, where it has come to rest, the last message that was
    /// sent before that.
    pub(crate) async fn receive_or_rest(&self) -> Result<Delivered, Option<HopId>> {
        loop {
            let changed = {
                let mut state = self.shared.lock();
                if let Some(delivered) = state.read(self.root) {
                    state.unlock_and_notify();
                    return Ok(delivered);
                }
                if state.has_rested(self.root) {
                    let mailbox = state.mailboxes.get(&self.root);
                    return Err(mailbox.and_then(|mailbox| mailbox.last_sent));
                }
                state.changed(self.root)
            };
            changed.await;
        }
    }

    /// The next message, with which the conversation is closed.
    pub(super) async fn into_next(self) -> Option<Delivered> {
        loop {
            let now = self.shared.now();
            let came = self.shared.step(|state| {
                let delivered = state.read(self.root);
                if delivered.is_none() && !state.has_rested(self.root) {
                    return Err(state.changed(self.root));
                }
                state.close(self.root, now);
                Ok(delivered)
            });
            match came {
                Err(changed) => changed.await,
                Ok(delivered) => {
                    self.is_kept.store(true, Ordering::Relaxed);
                    return delivered;
                }
            }
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
        self.shared.step(|state| state.close(self.root, now));
    }
}
