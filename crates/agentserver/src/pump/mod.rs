//! The pump: drives the rules of [`crate::core`] and runs the handlers.
//!
//! All rules run under one lock that is never held while XML is read or a
//! handler runs. Inside, nothing waits for room, so no circle of listeners can
//! come to a standstill; outside, [`Conversation::send`] waits until there is
//! room, which is where back-pressure is felt.

mod admission;
mod ask;
mod conversation;
mod mailbox;
mod meter;
mod run;
mod timer;

pub use ask::AskError;
pub use conversation::{Conversation, Delivered, SendError};
pub(crate) use meter::Meter;

use crate::core::{AskId, Core, CoreLimits, Effect, ThreadId};
use crate::envelope::Envelope;
use crate::listener::key;
use crate::organism::Organism;
use crate::payload::Canonical;
use crate::system::{self, Fault};
use crate::trace::{self, Hop};
use crate::xml::{self, Limits};
use admission::Admission;
use mailbox::Mailbox;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::{Notify, mpsc, oneshot};

/// How a pump is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bounds on one document.
    pub xml: Limits,
    /// Bounds on conversations.
    pub core: CoreLimits,
    /// Messages from outside whose work is not done; more have to wait.
    pub admission: usize,
    /// Messages that wait for whoever began a conversation. Sending waits while
    /// so many do; one that is sent more unasked, and does not read, is cut off.
    pub mailbox: usize,
    /// Conversations that are open at one time.
    pub conversations: usize,
    /// Where to send a record of every hop; when it is full, records are left
    /// out and the log says so.
    pub trace: Option<mpsc::Sender<Hop>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            xml: Limits::default(),
            core: CoreLimits::default(),
            admission: 1024,
            mailbox: 4096,
            conversations: 100_000,
            trace: None,
        }
    }
}

/// A running organism. Clones share it.
#[derive(Clone)]
pub struct Pump {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    organism: RwLock<Arc<Organism>>,
    settings: Settings,
    admission: Arc<Admission>,
    /// Something is due earlier than the timer knows.
    timer: Arc<Notify>,
    /// Nothing waits or runs any more.
    idle: Notify,
    failures: AtomicU64,
}

struct State {
    core: Core,
    mailboxes: HashMap<ThreadId, Mailbox>,
    /// Handlers that wait for the answers to their questions.
    asks: HashMap<AskId, oneshot::Sender<Option<Canonical>>>,
    /// When the timer will look again by itself.
    wakes_at: Option<Instant>,
}

impl State {
    fn unread(&self, root: ThreadId) -> usize {
        self.mailboxes.get(&root).map_or(0, Mailbox::unread)
    }

    fn read(&mut self, root: ThreadId) -> Option<Delivered> {
        self.mailboxes.get_mut(&root)?.take()
    }

    /// Whether a conversation is at rest, or has been since something was sent.
    fn has_rested(&self, root: ThreadId) -> bool {
        let sent = self.mailboxes.get(&root).map(|mailbox| mailbox.sent);
        self.core.is_resting(root) || sent.is_none_or(|sent| self.core.epoch(root) > sent)
    }
}

impl Pump {
    /// Starts an organism on the current tokio runtime.
    pub fn start(organism: Organism, settings: Settings) -> Self {
        let organism = Arc::new(organism);
        let mut limits = settings.core;
        // A message sent has room for its answer.
        limits.in_flight = limits.in_flight.min(settings.mailbox.max(1));
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                core: Core::new(organism.clone(), limits, now()),
                mailboxes: HashMap::new(),
                asks: HashMap::new(),
                wakes_at: None,
            }),
            organism: RwLock::new(organism),
            admission: Admission::new(settings.admission),
            settings,
            timer: Arc::new(Notify::new()),
            idle: Notify::new(),
            failures: AtomicU64::new(0),
        });
        tokio::spawn(timer::run(Arc::downgrade(&shared), shared.timer.clone()));
        shared.step(|state| state.core.boot());
        Self { shared }
    }

    /// Begins a conversation as a gateway.
    pub fn open(&self, gateway: &str) -> Result<Conversation, SendError> {
        let mailbox = Mailbox::new(self.shared.settings.mailbox.max(1));
        let changed = mailbox.changed();
        let mut state = self.shared.lock();
        if state.mailboxes.len() >= self.shared.settings.conversations {
            return Err(SendError::Full(self.shared.settings.conversations));
        }
        let root = state.core.open(gateway, now());
        let root = root.ok_or_else(|| SendError::Refused(Fault::Routing.payload()))?;
        state.mailboxes.insert(root, mailbox);
        drop(state);
        Ok(Conversation::new(self.shared.clone(), root, changed))
    }

    /// Takes an envelope from outside. Its `from` must be the gateway's own
    /// name; its `thread` must be empty, for a new conversation, which is given
    /// back, or one that this gateway holds. Anything else is refused in the
    /// same words.
    pub async fn inject(
        &self,
        gateway: &str,
        envelope: &[u8],
    ) -> Result<Option<Conversation>, SendError> {
        let read =
            xml::text(envelope).and_then(|text| Envelope::read(text, &self.shared.settings.xml));
        let envelope =
            read.map_err(|error| SendError::Refused(system::huh(envelope, &error.to_string())))?;
        let refused = || SendError::Refused(Fault::Routing.payload());
        if key(&envelope.from) != key(gateway) {
            tracing::warn!(gateway, claimed = %envelope.from, "refused an envelope that is from someone else");
            return Err(refused());
        }
        let (root, opened) = match envelope.thread.trim() {
            "" => {
                let conversation = self.open(gateway)?;
                (conversation.thread(), Some(conversation))
            }
            id => {
                let root = ThreadId::parse(id)
                    .filter(|root| self.shared.lock().core.is_own(*root, gateway));
                if root.is_none() {
                    tracing::warn!(
                        gateway,
                        thread = id,
                        "refused an envelope for a thread of someone else"
                    );
                }
                (root.ok_or_else(refused)?, None)
            }
        };
        self.shared
            .send(root, envelope.to.as_deref(), envelope.payload)
            .await?;
        Ok(opened)
    }

    /// Other listeners from now on. What waits or runs is finished by those it
    /// was sent to.
    pub fn reload(&self, organism: Organism) {
        let organism = Arc::new(organism);
        *self
            .shared
            .organism
            .write()
            .unwrap_or_else(PoisonError::into_inner) = organism.clone();
        self.shared.step(|state| state.core.reload(organism));
    }

    /// The organism as it is now.
    pub fn organism(&self) -> Arc<Organism> {
        self.shared.organism()
    }

    /// Threads and conversations that are kept.
    pub fn counts(&self) -> (usize, usize) {
        self.shared.lock().core.counts()
    }

    /// Handlers that failed and work that a budget has ended, since the start.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Takes nothing more from outside and waits until nothing waits or runs.
    pub async fn drain(&self) {
        self.shared.admission.close();
        loop {
            let idle = self.shared.idle.notified();
            if self.shared.lock().core.is_idle() {
                return;
            }
            idle.await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The rules do not panic half-way; were they to, the state of other
        // conversations would still be whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn organism(&self) -> Arc<Organism> {
        self.organism
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes the state and carries out what follows from it.
    fn step<R>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        let mut effects = state.core.effects();
        // Within the lock, so that answers reach a mailbox in their order.
        for effect in &effects {
            deliver(&mut state, effect);
        }
        effects.append(&mut state.core.effects());
        let due = state.core.next_due();
        let is_earlier = due.is_some_and(|due| state.wakes_at.is_none_or(|at| due < at));
        if is_earlier {
            state.wakes_at = due;
        }
        let is_idle = state.core.is_idle();
        drop(state);
        if is_earlier {
            self.timer.notify_one();
        }
        if is_idle {
            self.idle.notify_waiters();
        }
        for effect in effects {
            self.carry_out(effect);
        }
        result
    }

    fn carry_out(self: &Arc<Self>, effect: Effect) {
        match effect {
            Effect::Run(job) => {
                tokio::spawn(run::run(self.clone(), job));
            }
            Effect::Ended { entry, thread } => run::thread_ended(&entry, thread),
            Effect::Finished(permits) => self.admission.release(permits),
            Effect::Cancel(cancellation) => cancellation.cancel(),
            Effect::Hop(hop) => self.trace(hop),
            Effect::Deliver(_) | Effect::Rest(_) | Effect::Answered { .. } => {}
        }
    }

    fn trace(&self, hop: Hop) {
        trace::log(&hop);
        if hop.kind.is_failure() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(trace) = &self.settings.trace
            && trace.try_send(hop).is_err()
        {
            tracing::warn!("a hop is missing from the trace");
        }
    }
}

fn deliver(state: &mut State, effect: &Effect) {
    match effect {
        Effect::Deliver(arrival) => {
            let root = arrival.root;
            if let Some(mailbox) = state.mailboxes.get_mut(&root)
                && !mailbox.put(arrival)
            {
                tracing::warn!(limit = "mailbox", conversation = %root, "cut off: it does not read");
                state.core.close(root);
            }
        }
        Effect::Answered { id, answer } => {
            if let Some(asker) = state.asks.remove(id) {
                // It may have stopped waiting.
                let _ = asker.send(answer.clone());
            }
        }
        Effect::Rest(root) => {
            if let Some(mailbox) = state.mailboxes.get(root) {
                mailbox.wake();
            }
        }
        _ => {}
    }
}

/// The time, as tests may hold it still.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
