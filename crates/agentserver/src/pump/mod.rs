//! The pump: drives the rules of [`crate::core`] and runs the handlers.
//!
//! All rules run under one lock that is never held while XML is read or a
//! handler runs. Inside, nothing waits for room, so no circle of listeners can
//! come to a standstill; outside, [`Conversation::send`] waits until there is
//! room, which is where back-pressure is felt.

mod conversation;
mod run;
mod timer;

pub use conversation::{Conversation, Delivered, SendError};

use crate::core::{Core, CoreLimits, Effect, ThreadId};
use crate::envelope::Envelope;
use crate::listener::key;
use crate::organism::Organism;
use crate::system::{self, Fault};
use crate::trace::{self, Hop};
use crate::xml::{self, Limits};
use conversation::Mailbox;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::{Notify, Semaphore, mpsc};

/// How a pump is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bounds on one document.
    pub xml: Limits,
    /// Bounds on conversations.
    pub core: CoreLimits,
    /// Messages from outside whose work is not done; more have to wait.
    pub admission: usize,
    /// Messages that wait for whoever began a conversation; one that does not
    /// read is cut off.
    pub mailbox: usize,
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
            mailbox: 256,
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
    admission: Arc<Semaphore>,
    /// A watcher was set: the timer must look again.
    timer: Arc<Notify>,
    /// A conversation came to rest.
    rest: Notify,
}

struct State {
    core: Core,
    mailboxes: HashMap<ThreadId, Mailbox>,
}

impl Pump {
    /// Starts an organism on the current tokio runtime.
    pub fn start(organism: Organism, settings: Settings) -> Self {
        let organism = Arc::new(organism);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                core: Core::new(organism.clone(), settings.core),
                mailboxes: HashMap::new(),
            }),
            organism: RwLock::new(organism),
            admission: Arc::new(Semaphore::new(
                settings.admission.min(Semaphore::MAX_PERMITS),
            )),
            settings,
            timer: Arc::new(Notify::new()),
            rest: Notify::new(),
        });
        tokio::spawn(timer::run(Arc::downgrade(&shared), shared.timer.clone()));
        shared.step(Core::boot);
        Self { shared }
    }

    /// Begins a conversation as a gateway; `None` when there is no such gateway.
    pub fn open(&self, gateway: &str) -> Option<Conversation> {
        let (mailbox, receiver) = Mailbox::channel(self.shared.settings.mailbox.max(1));
        let mut state = self.shared.lock();
        let root = state.core.open(gateway)?;
        state.mailboxes.insert(root, mailbox);
        drop(state);
        Some(Conversation::new(self.shared.clone(), root, receiver))
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
        let Ok(envelope) = read else {
            return Err(SendError::Refused(system::huh(envelope)));
        };
        let refused = || SendError::Refused(Fault::Routing.payload());
        if key(&envelope.from) != key(gateway) {
            tracing::warn!(gateway, claimed = %envelope.from, "refused an envelope that is from someone else");
            return Err(refused());
        }
        let (root, opened) = match envelope.thread.trim() {
            "" => {
                let conversation = self.open(gateway).ok_or_else(refused)?;
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
        self.shared.step(|core| core.reload(organism));
    }

    /// The organism as it is now.
    pub fn organism(&self) -> Arc<Organism> {
        self.shared.organism()
    }

    /// Threads and conversations that are kept.
    pub fn counts(&self) -> (usize, usize) {
        self.shared.lock().core.counts()
    }

    /// Takes nothing more from outside and waits until nothing waits or runs.
    pub async fn drain(&self) {
        self.shared.admission.close();
        loop {
            let rest = self.shared.rest.notified();
            if self.shared.lock().core.is_idle() {
                return;
            }
            rest.await;
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
    fn step<R>(self: &Arc<Self>, change: impl FnOnce(&mut Core) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state.core);
        let mut effects = state.core.effects();
        // Within the lock, so that answers reach a mailbox in their order.
        for effect in &effects {
            self.deliver(&mut state, effect);
        }
        effects.append(&mut state.core.effects());
        drop(state);
        for effect in effects {
            self.carry_out(effect);
        }
        result
    }

    fn deliver(&self, state: &mut State, effect: &Effect) {
        let (root, is_cut_off) = match effect {
            Effect::Deliver(arrival) => {
                let is_full = state
                    .mailboxes
                    .get(&arrival.root)
                    .is_some_and(|mailbox| !mailbox.put(arrival));
                (arrival.root, is_full)
            }
            Effect::Rest { root, .. } => {
                if let Some(mailbox) = state.mailboxes.get(root) {
                    mailbox.rest();
                }
                return;
            }
            _ => return,
        };
        if is_cut_off {
            tracing::warn!(conversation = %root, "cut off: its mailbox is full");
            state.mailboxes.remove(&root);
            state.core.close(root);
        }
    }

    fn carry_out(self: &Arc<Self>, effect: Effect) {
        match effect {
            Effect::Run(job) => {
                tokio::spawn(run::run(self.clone(), job));
            }
            Effect::Ended { entry, thread } => run::thread_ended(&entry, thread),
            Effect::Rest { permits, .. } => {
                self.admission.add_permits(permits);
                self.rest.notify_waiters();
            }
            Effect::Hop(hop) => self.trace(hop),
            Effect::Deliver(_) => {}
        }
    }

    fn trace(&self, hop: Hop) {
        trace::log(&hop);
        if let Some(trace) = &self.settings.trace
            && trace.try_send(hop).is_err()
        {
            tracing::warn!("a hop is missing from the trace");
        }
    }
}

/// The time, as tests may hold it still.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
