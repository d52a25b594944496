//! What is spent on behalf of a session outside of its own requests.

use super::budget::Spent;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the tools of a session spend on models, until the session counts it.
/// Clones are the same purse.
#[derive(Clone, Debug, Default)]
pub struct Expenses(Arc<Mutex<Spent>>);

impl Expenses {
    /// Something was spent: it counts for the session from its next request on.
    pub fn add(&self, spent: Spent) {
        self.lock().add_all(spent);
    }

    /// What has come together since the last time.
    pub(super) fn take(&self) -> Spent {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
