//! A conversation, seen from outside.

use super::{Pump, Shared};
use crate::core::{Arrival, Form, Outgoing, ThreadId};
use crate::envelope::Envelope;
use crate::handler::Target;
use crate::payload::{Canonical, Payload, PayloadError};
use crate::system;
use crate::xml::XmlError;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Refused; the payload is the `SystemError` or `<huh>` for it.
    #[error("refused: {}", .0.xml())]
    Refused(Canonical),
    /// The pump takes nothing more.
    #[error("the pump has been closed")]
    Closed,
    /// The payload has no XML form.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

/// A message that left the organism.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// Who sent it.
    pub from: Arc<str>,
    /// The conversation's own thread.
    pub thread: ThreadId,
    /// What it carries.
    pub payload: Canonical,
}

impl Delivered {
    /// The message as an envelope for `to`.
    pub fn envelope(&self, to: &str) -> Result<String, XmlError> {
        let envelope = Envelope {
            from: self.from.clone(),
            to: Some(Arc::from(to)),
            thread: self.thread.to_string().into(),
            payload: self.payload.clone(),
        };
        envelope.write()
    }
}

pub(super) enum Event {
    Message(Delivered),
    Rest,
}

/// The pump's end of a mailbox.
pub(super) struct Mailbox {
    sender: mpsc::Sender<Event>,
}

/// Room for the word that a mailbox is full.
const RESERVED: usize = 1;

impl Mailbox {
    /// Both ends, with room for `capacity` messages.
    pub(super) fn channel(capacity: usize) -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(capacity.saturating_add(RESERVED));
        (Self { sender }, receiver)
    }

    fn event(arrival: &Arrival) -> Event {
        Event::Message(Delivered {
            from: arrival.from.clone(),
            thread: arrival.root,
            payload: arrival.payload.clone(),
        })
    }

    /// Puts a message in; when only the last place is free, says so in its stead.
    pub(super) fn put(&self, arrival: &Arrival) -> bool {
        if self.sender.capacity() > RESERVED {
            return self.sender.try_send(Self::event(arrival)).is_ok();
        }
        let last = Arrival {
            from: system::NAME.into(),
            payload: system::Fault::Routing.payload(),
            root: arrival.root,
        };
        // Closed or full, there is nobody left to tell.
        let _ = self.sender.try_send(Self::event(&last));
        false
    }

    /// Says that nothing more will come until something is sent.
    pub(super) fn rest(&self) {
        if self.sender.capacity() > RESERVED {
            let _ = self.sender.try_send(Event::Rest);
        }
    }
}

/// A conversation that a gateway began. Dropping it closes it: what is under
/// way goes on, its answers are no longer heard, and its threads end with it.
pub struct Conversation {
    shared: Arc<Shared>,
    root: ThreadId,
    mailbox: mpsc::Receiver<Event>,
}

impl Conversation {
    pub(super) fn new(shared: Arc<Shared>, root: ThreadId, mailbox: mpsc::Receiver<Event>) -> Self {
        Self {
            shared,
            root,
            mailbox,
        }
    }

    /// Its thread, as outside programs name it.
    pub fn thread(&self) -> ThreadId {
        self.root
    }

    /// Sends to a listener. Waits while the pump has too much to do.
    pub async fn send<P: Payload>(&self, to: &str, payload: P) -> Result<(), SendError> {
        self.send_xml(Some(to), &payload.to_xml()?).await
    }

    /// Sends a payload as XML; without a target, its type decides.
    pub async fn send_xml(&self, to: Option<&str>, xml: &str) -> Result<(), SendError> {
        match Canonical::parse(xml, &self.shared.settings.xml) {
            Ok(payload) => self.shared.send(self.root, to, payload).await,
            Err(_) => Err(SendError::Refused(system::huh(xml.as_bytes()))),
        }
    }

    /// Whether nothing of it waits, runs or is left to read.
    pub fn is_at_rest(&self) -> bool {
        // In this order: an answer is in the mailbox before its sender is done.
        self.shared.lock().core.is_resting(self.root) && self.mailbox.is_empty()
    }

    /// The next message; `None` once the conversation has come to rest, so that
    /// nothing will come unless something is sent.
    pub async fn next(&mut self) -> Option<Delivered> {
        match self.mailbox.recv().await? {
            Event::Message(delivered) => Some(delivered),
            Event::Rest => None,
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.shared.lock().mailboxes.remove(&self.root);
        self.shared.step(|core| core.close(self.root));
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
        let refused = || SendError::Refused(system::Fault::Routing.payload());
        let mut conversation = self.open(gateway).ok_or_else(refused)?;
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
    ) -> Result<(), SendError> {
        let fit = self.organism().fit(&payload);
        let target = to.map_or(Target::ByType, |to| Target::Named(to.to_owned()));
        let permit = self
            .admission
            .acquire()
            .await
            .map_err(|_| SendError::Closed)?;
        self.step(|core| {
            core.inject(
                root,
                Outgoing {
                    target,
                    payload,
                    form: Form::Text,
                    fit,
                },
            )
        })
        .map_err(SendError::Refused)?;
        // The rules hold it until the conversation comes to rest.
        permit.forget();
        Ok(())
    }
}
