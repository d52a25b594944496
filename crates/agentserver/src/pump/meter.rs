//! What a handler uses while it runs, and whether it may use more.

use super::Shared;
use crate::core::{Job, Note, Usage};
use crate::handler::HandlerError;
use std::fmt;
use std::mem::take;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// One run's meter.
#[derive(Clone)]
pub(crate) struct Meter(Arc<State>);

struct State {
    shared: Weak<Shared>,
    job: Arc<Job>,
    tokens: AtomicU64,
    money: AtomicU64,
    notes: Mutex<Vec<Note>>,
}

impl Meter {
    pub(super) fn new(shared: &Arc<Shared>, job: Arc<Job>) -> Self {
        Self(Arc::new(State {
            shared: Arc::downgrade(shared),
            job,
            tokens: AtomicU64::new(0),
            money: AtomicU64::new(0),
            notes: Mutex::default(),
        }))
    }

    pub(crate) fn job(&self) -> &Job {
        &self.0.job
    }

    pub(super) fn shared(&self) -> Option<Arc<Shared>> {
        self.0.shared.upgrade()
    }

    pub(crate) async fn admit_model_call(&self) -> Result<(), HandlerError> {
        let shared = self.shared().ok_or("the pump is gone")?;
        let (hop, now) = (self.job().id, shared.now());
        shared.step(|state| state.core.admit_model_call(hop, now))?;
        Ok(shared.committed().await?)
    }

    pub(crate) fn charge(&self, tokens: u64, money: u64) {
        self.0.tokens.fetch_add(tokens, Ordering::Relaxed);
        self.0.money.fetch_add(money, Ordering::Relaxed);
    }

    pub(crate) fn note(&self, note: Note) {
        self.notes().push(note);
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Vec<Note>> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was used and noted since the last time this was asked.
    pub(super) fn take(&self) -> (Usage, Vec<Note>) {
        let used = Usage {
            tokens: self.0.tokens.swap(0, Ordering::Relaxed),
            money: self.0.money.swap(0, Ordering::Relaxed),
            ..Usage::default()
        };
        (used, take(&mut *self.notes()))
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meter").field(&self.0.job.id).finish()
    }
}
