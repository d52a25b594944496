//! The conversations of one gateway, by correlation id.

use super::{Answer, CorrelationId, DeliveryError, Outlet};
use crate::core::HopId;
use crate::pump::{Conversation, Pump, SendError};
use runtime::Backoff;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a conversation is kept after it has come to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle(pub Duration);

impl Default for Idle {
    fn default() -> Self {
        Self(Duration::from_secs(600))
    }
}

/// The conversations that a gateway holds. Clones share them; when the last is
/// dropped, they are closed.
pub struct GatewayConversations<O> {
    shared: Arc<Shared<O>>,
    _shutdown_on_drop: Arc<ShutdownOnDrop<O>>,
}

impl<O> Clone for GatewayConversations<O> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            _shutdown_on_drop: self._shutdown_on_drop.clone(),
        }
    }
}

/// Graceful shutdown: closes what is open when nobody can send any more; where there is a journal, it
/// is taken up again with the next start.
struct ShutdownOnDrop<O>(Arc<Shared<O>>);

impl<O> Drop for ShutdownOnDrop<O> {
    fn drop(&mut self) {
        let open = std::mem::take(&mut *self.0.lock());
        for entry in open.values() {
            entry.live.conversation.keep_open();
            entry.live.closed.notify_one();
        }
    }
}

struct Shared<O> {
    pump: Pump,
    gateway: String,
    outlet: O,
    idle: Idle,
    open: Mutex<HashMap<CorrelationId, OpenConversation>>,
}

/// A conversation, and those who are about to send in it.
struct OpenConversation {
    live: Arc<LiveConversation>,
    senders: usize,
}

struct LiveConversation {
    conversation: Conversation,
    /// Something was sent, or was not to be.
    sent: Notify,
    /// Nobody wants its answers any more.
    closed: Notify,
}

/// An answer that was taken and not acknowledged.
#[derive(Clone)]
pub struct PendingAck {
    live: Weak<LiveConversation>,
    id: HopId,
    is_deferred: Arc<AtomicBool>,
}

impl PendingAck {
    pub(super) fn defer(&self) {
        self.is_deferred.store(true, Ordering::Relaxed);
    }

    /// Somebody outside has it, and all that came before it.
    pub fn acknowledge(&self) {
        if let Some(live) = self.live.upgrade() {
            live.conversation.acknowledge_to(self.id);
        }
    }
}

impl fmt::Debug for PendingAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingAck").field(&self.id).finish()
    }
}

impl<O: Outlet> GatewayConversations<O> {
    /// For the gateway of this name. What comes for any of its conversations
    /// goes to `outlet`. Those that were open before a crash are taken up again.
    pub fn new(pump: Pump, gateway: impl Into<String>, outlet: O, idle: Idle) -> Self {
        let shared = Shared {
            pump,
            gateway: gateway.into(),
            outlet,
            idle,
            open: Mutex::default(),
        };
        let shared = Arc::new(shared);
        take_up(&shared);
        Self {
            _shutdown_on_drop: Arc::new(ShutdownOnDrop(shared.clone())),
            shared,
        }
    }

    /// Where answers go.
    pub fn outlet(&self) -> &O {
        &self.shared.outlet
    }

    /// Sends a payload as XML; without a target, its type decides. A
    /// conversation begins with the first message under its id. Waits while
    /// there is no room, as [`Conversation::send`] does. Gives the message's id.
    pub async fn send(
        &self,
        correlation: &CorrelationId,
        to: Option<&str>,
        xml: &str,
    ) -> Result<HopId, SendError> {
        let sending = Sending::begin(&self.shared, correlation)?;
        sending.live.conversation.send_xml(to, xml).await
    }

    /// The same, unless the conversation has accepted a message with this key before;
    /// then it gives none.
    pub async fn send_once(
        &self,
        correlation: &CorrelationId,
        key: &str,
        to: Option<&str>,
        xml: &str,
    ) -> Result<Option<HopId>, SendError> {
        let sending = Sending::begin(&self.shared, correlation)?;
        sending.live.conversation.send_once(key, to, xml).await
    }

    /// Ends a conversation: what is under way goes on, and its answers are no
    /// longer heard. Whether there was one.
    pub fn close(&self, correlation: &CorrelationId) -> bool {
        let entry = self.shared.lock().remove(correlation);
        if let Some(entry) = &entry {
            self.shared.outlet.closed(correlation);
            entry.live.closed.notify_one();
        }
        entry.is_some()
    }

    /// Whether there is one of this id.
    pub fn contains(&self, correlation: &CorrelationId) -> bool {
        self.shared.lock().contains_key(correlation)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.shared.lock().len()
    }
}

impl<O> Shared<O> {
    fn lock(&self) -> MutexGuard<'_, HashMap<CorrelationId, OpenConversation>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Someone who sends: their conversation is not given up meanwhile.
struct Sending<'a, O: Outlet> {
    shared: &'a Arc<Shared<O>>,
    correlation: &'a CorrelationId,
    live: Arc<LiveConversation>,
}

impl<'a, O: Outlet> Sending<'a, O> {
    fn begin(
        shared: &'a Arc<Shared<O>>,
        correlation: &'a CorrelationId,
    ) -> Result<Self, SendError> {
        let mut open = shared.lock();
        let live = match open.get_mut(correlation) {
            Some(entry) => {
                entry.senders += 1;
                entry.live.clone()
            }
            None => {
                let name = correlation.as_str();
                let conversation = shared.pump.open_named(&shared.gateway, name)?;
                let entry = start_reading(shared, correlation, conversation);
                let entry = open.entry(correlation.clone()).or_insert(entry);
                entry.senders = 1;
                entry.live.clone()
            }
        };
        Ok(Self {
            shared,
            correlation,
            live,
        })
    }
}

/// Reads a conversation from now on.
fn start_reading<O: Outlet>(
    shared: &Arc<Shared<O>>,
    correlation: &CorrelationId,
    conversation: Conversation,
) -> OpenConversation {
    let live = Arc::new(LiveConversation {
        conversation,
        sent: Notify::new(),
        closed: Notify::new(),
    });
    let reader = Reader {
        shared: shared.clone(),
        correlation: correlation.clone(),
        live: live.clone(),
    };
    tokio::spawn(reader.run());
    OpenConversation { live, senders: 0 }
}

/// Goes on with the conversations from before a crash.
fn take_up<O: Outlet>(shared: &Arc<Shared<O>>) {
    for conversation in shared.pump.recovered(&shared.gateway) {
        let name = conversation.name().map(CorrelationId::parse);
        if let Some(Ok(correlation)) = name {
            let entry = start_reading(shared, &correlation, conversation);
            // There is something to read, or it rests.
            entry.live.sent.notify_one();
            shared.lock().insert(correlation, entry);
        }
    }
}

impl<O: Outlet> Drop for Sending<'_, O> {
    fn drop(&mut self) {
        if let Some(entry) = self.shared.lock().get_mut(self.correlation)
            && Arc::ptr_eq(&entry.live, &self.live)
        {
            entry.senders -= 1;
        }
        self.live.sent.notify_one();
    }
}

/// Hands the answers of one conversation to the outlet, in their order.
struct Reader<O> {
    shared: Arc<Shared<O>>,
    correlation: CorrelationId,
    live: Arc<LiveConversation>,
}

impl<O: Outlet> Reader<O> {
    async fn run(self) {
        tokio::select! {
            () = self.live.closed.notified() => {}
            () = self.read_all() => {}
        }
    }

    async fn read_all(&self) {
        let mut number = 0;
        // At first there is nothing to read.
        self.live.sent.notified().await;
        loop {
            match self.live.conversation.receive_or_rest().await {
                Ok(message) => {
                    number += 1;
                    let pending_ack = PendingAck {
                        live: Arc::downgrade(&self.live),
                        id: message.id,
                        is_deferred: Arc::default(),
                    };
                    let answer = Answer {
                        correlation: self.correlation.clone(),
                        number,
                        message,
                        pending_ack,
                    };
                    self.deliver(&answer).await;
                    if !answer.pending_ack.is_deferred.load(Ordering::Relaxed) {
                        answer.pending_ack.acknowledge();
                    }
                }
                Err(last) => {
                    self.shared.outlet.rested(&self.correlation, last);
                    let sent = self.live.sent.notified();
                    let waited = tokio::time::timeout(self.shared.idle.0, sent).await;
                    if waited.is_err() && self.give_up() {
                        self.shared.outlet.closed(&self.correlation);
                        return;
                    }
                }
            }
        }
    }

    /// Tries until the answer is taken, or nobody is there to take it.
    async fn deliver(&self, answer: &Answer) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(30));
        loop {
            let (correlation, number) = (&answer.correlation, answer.number);
            match self.shared.outlet.deliver(answer).await {
                Ok(()) => return,
                Err(error @ DeliveryError::Gone(_)) => {
                    tracing::warn!(%correlation, number, %error, "an answer was dropped");
                    return;
                }
                Err(error) => tracing::info!(%correlation, number, %error, "an answer waits"),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Lets a conversation go that has been at rest for long, unless somebody
    /// is about to send.
    fn give_up(&self) -> bool {
        let mut open = self.shared.lock();
        let is_unused = open.get(&self.correlation).is_some_and(|entry| {
            entry.senders == 0
                && Arc::ptr_eq(&entry.live, &self.live)
                && entry.live.conversation.is_at_rest()
        });
        if is_unused {
            open.remove(&self.correlation);
        }
        is_unused
    }
}
