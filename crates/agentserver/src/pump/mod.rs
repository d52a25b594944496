//! The pump: drives the rules of [`crate::core`] and runs the handlers.
//!
//! All rules run under one lock that is never held while XML is read or a
//! handler runs. Inside, nothing waits for room, so no circle of listeners can
//! come to a standstill; outside, [`Conversation::send`] waits until there is
//! room, which is where back-pressure is felt.

mod admission;
mod ask;
mod clock;
mod conversation;
mod effects;
mod mailbox;
mod meter;
mod run;
mod send;
mod timer;

pub use ask::AskError;
pub use conversation::{Conversation, Delivered, SendError};
pub(crate) use meter::Meter;

use crate::core::{AskId, Core, CoreLimits, Effect, IdMap, Stats, ThreadId, Time};
use crate::envelope::Envelope;
use crate::journal::{Journal, JournalError, Log};
use crate::listener::key;
use crate::organism::Organism;
use crate::payload::Canonical;
use crate::system::{self, Fault};
use crate::trace::Hop;
use crate::xml::{self, Limits};
use admission::Admission;
use clock::Clock;
use effects::CarryOutCommitted;
use mailbox::Mailbox;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::runtime::Handle;
use tokio::sync::futures::OwnedNotified;
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
    clock: Clock,
    /// Where inputs are kept, in a pump that survives.
    journal: Option<Journal>,
    runtime: Handle,
}

struct State {
    core: Core,
    mailboxes: IdMap<ThreadId, Mailbox>,
    /// Handlers that wait for the answers to their questions.
    asks: IdMap<AskId, oneshot::Sender<Option<Canonical>>>,
    /// When the timer will look again by itself.
    wakes_at: Option<Time>,
    /// What is carried out when the input of this number is safe.
    held: VecDeque<(u64, Vec<Effect>)>,
    /// Whom to wake when the state is free.
    woken: Vec<Arc<Notify>>,
    /// Conversations from before a crash that nobody has taken up.
    recovered: Vec<(ThreadId, Arc<str>)>,
}

impl State {
    /// Messages that were not read, those that are held included.
    fn unread(&self, root: ThreadId) -> usize {
        let mailbox = self.mailboxes.get(&root);
        mailbox.map_or(0, |mailbox| mailbox.unread() + mailbox.held)
    }

    fn read(&mut self, root: ThreadId) -> Option<Delivered> {
        self.mailboxes.get_mut(&root)?.take(&mut self.woken)
    }

    /// Waits for the next change of a conversation.
    fn changed(&mut self, root: ThreadId) -> OwnedNotified {
        let mailbox = self.mailboxes.get_mut(&root);
        let changed = mailbox.map(Mailbox::changed).unwrap_or_default();
        changed.notified_owned()
    }

    /// Begins a conversation.
    fn open(
        &mut self,
        gateway: &str,
        name: Option<&str>,
        settings: &Settings,
        now: Time,
    ) -> Result<ThreadId, SendError> {
        if self.mailboxes.len() >= settings.conversations {
            return Err(SendError::Full(settings.conversations));
        }
        let root = self.core.open(gateway, name, now);
        let root = root.ok_or_else(|| SendError::Refused(Fault::Routing.payload()))?;
        let mailbox = Mailbox::new(settings.mailbox.max(1));
        self.mailboxes.insert(root, mailbox);
        Ok(root)
    }

    /// Nobody reads a conversation any more.
    fn close(&mut self, root: ThreadId, now: Time) {
        self.mailboxes.remove(&root);
        self.core.close(root, now);
    }

    /// Whether a conversation is at rest, or has been since something was sent.
    fn has_rested(&self, root: ThreadId) -> bool {
        let mailbox = self.mailboxes.get(&root);
        if mailbox.is_some_and(|mailbox| mailbox.held > 0) {
            return false;
        }
        let sent = mailbox.map(|mailbox| mailbox.sent);
        self.core.is_resting(root) || sent.is_none_or(|sent| self.core.epoch(root) > sent)
    }
}

impl Pump {
    /// Starts an organism on the current tokio runtime. All it knows ends with it.
    pub fn start(organism: Organism, settings: Settings) -> Self {
        let organism = Arc::new(organism);
        let core = Core::new(organism.clone(), limits(&settings));
        let pump = Self::with(core, organism, settings, None);
        let now = pump.shared.now();
        pump.shared.step(|state| state.core.boot(now));
        pump
    }

    /// Starts an organism whose inputs are kept in this folder before anything
    /// follows from them. One that had ended before its work was done goes on:
    /// handlers that ran are run again, with the same hop ids, and answers that
    /// were not acknowledged wait for [`Pump::recovered`].
    pub fn start_durable(
        organism: Organism,
        settings: Settings,
        folder: &Path,
    ) -> Result<Self, JournalError> {
        let organism = Arc::new(organism);
        let limits = limits(&settings);
        let (log, core) = Log::open(folder, || Core::new(organism.clone(), limits))?;
        let pump = Self::with(core, organism.clone(), settings, Some(log));
        let now = pump.shared.now();
        pump.shared.step(|state| {
            state.core.reload(organism, limits, now);
            state.core.resume(now);
            state.core.boot(now);
        });
        Ok(pump)
    }

    fn with(mut core: Core, organism: Arc<Organism>, settings: Settings, log: Option<Log>) -> Self {
        if settings.trace.is_none() && !tracing::enabled!(tracing::Level::DEBUG) {
            core.tell_few_hops();
        }
        let recovered = core.open_conversations();
        let mailboxes = recovered.iter().map(|(root, _)| {
            let mut mailbox = Mailbox::new(settings.mailbox.max(1));
            mailbox.sent = core.epoch(*root);
            for arrival in core.unacknowledged(*root) {
                mailbox.put(arrival);
            }
            (*root, mailbox)
        });
        let mailboxes = mailboxes.collect();
        let shared = Arc::new_cyclic(|shared| Shared {
            admission: Admission::new(settings.admission, core.open_requests()),
            clock: Clock::from(core.now()),
            journal: log.map(|log| Journal::start(log, CarryOutCommitted(shared.clone()))),
            runtime: Handle::current(),
            state: Mutex::new(State {
                core,
                mailboxes,
                asks: IdMap::default(),
                wakes_at: None,
                held: VecDeque::new(),
                woken: Vec::new(),
                recovered,
            }),
            organism: RwLock::new(organism),
            settings,
            timer: Arc::new(Notify::new()),
            idle: Notify::new(),
            failures: AtomicU64::new(0),
        });
        tokio::spawn(timer::run(Arc::downgrade(&shared), shared.timer.clone()));
        Self { shared }
    }

    /// The conversations that a gateway had open when the pump ended last, each
    /// given once. What was not acknowledged is there to be read again.
    pub fn recovered(&self, gateway: &str) -> Vec<Conversation> {
        let mut state = self.shared.lock();
        let gateway = key(gateway);
        let (own, others) = std::mem::take(&mut state.recovered)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, owner)| *owner == gateway);
        state.recovered = others;
        let roots = own.into_iter().map(|(root, _)| root);
        let conversations = roots.map(|root| {
            let name = state.core.name_of(root);
            Conversation::new(self.shared.clone(), root, name)
        });
        conversations.collect()
    }

    /// Begins a conversation as a gateway.
    pub fn open(&self, gateway: &str) -> Result<Conversation, SendError> {
        self.open_with(gateway, None)
    }

    /// Begins a conversation that has a name outside: a gateway with many knows it
    /// by the name after a crash.
    pub fn open_named(&self, gateway: &str, name: &str) -> Result<Conversation, SendError> {
        self.open_with(gateway, Some(name))
    }

    fn open_with(&self, gateway: &str, name: Option<&str>) -> Result<Conversation, SendError> {
        let (settings, now) = (&self.shared.settings, self.shared.now());
        let root = self
            .shared
            .step(|state| state.open(gateway, name, settings, now))?;
        let name = name.map(Arc::from);
        Ok(Conversation::new(self.shared.clone(), root, name))
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
            .send(root, envelope.to.as_deref(), envelope.payload, None)
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
        let (limits, now) = (limits(&self.shared.settings), self.shared.now());
        self.shared
            .step(|state| state.core.reload(organism, limits, now));
    }

    /// The organism as it is now.
    pub fn organism(&self) -> Arc<Organism> {
        self.shared.organism()
    }

    /// Threads and conversations that are kept.
    pub fn counts(&self) -> (usize, usize) {
        self.shared.lock().core.counts()
    }

    /// What it does now, and has done since its start.
    pub fn stats(&self) -> Stats {
        self.shared.lock().core.stats()
    }

    /// Handlers that failed and work that a budget has ended, since the start.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Graceful shutdown: takes nothing more from outside and waits until nothing waits
    /// or runs, and all that went in is safe. An error when it never will be.
    pub async fn drain(&self) -> Result<(), SendError> {
        self.shared.admission.close();
        loop {
            let idle = self.shared.idle.notified();
            if self.shared.lock().is_idle() {
                break;
            }
            idle.await;
        }
        self.shared.committed().await
    }
}

/// A message sent has room for its answer.
fn limits(settings: &Settings) -> CoreLimits {
    let mut limits = settings.core;
    limits.in_flight = limits.in_flight.min(settings.mailbox.max(1));
    limits
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

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn is_durable(&self) -> bool {
        self.journal.is_some()
    }

    /// Waits until all that went in is safe.
    async fn committed(&self) -> Result<(), SendError> {
        match &self.journal {
            None => Ok(()),
            Some(journal) => journal.committed().await.map_err(SendError::Journal),
        }
    }
}
