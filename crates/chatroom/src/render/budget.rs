//! What highlighting may cost. All else that is done to a message is cheap and bounded by its size.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// An unoptimised build takes several times as long for the same text.
pub const DEBUG_BUILD_FACTOR: u64 = if cfg!(debug_assertions) { 5 } else { 1 };
/// What the code of one message may take, in processor time: other programs on the machine do not
/// change what is shown. The rest of it stays plain, for everybody who reads it.
const MESSAGE_TIME: Duration = Duration::from_millis(300 * DEBUG_BUILD_FACTOR);
/// What the code of all messages of a request may take. The rest stays plain this time.
const REQUEST_TIME: Duration = Duration::from_millis(600 * DEBUG_BUILD_FACTOR);

/// The processor time that this thread has taken so far.
fn thread_time() -> Duration {
    let taken = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(taken).unwrap_or_default()
}

/// Tells the work for a request that nobody waits for it any more.
#[derive(Clone, Default)]
pub struct Abandoned(Arc<AtomicBool>);

/// Abandons the work when it is dropped.
pub struct AbandonOnDrop(Abandoned);

impl Abandoned {
    /// Whoever waits for the work holds this.
    pub fn on_drop(&self) -> AbandonOnDrop {
        AbandonOnDrop(self.clone())
    }

    /// Whether nobody waits any more.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// The time for all messages of a request, which one thread renders.
pub struct RequestBudget {
    until: Duration,
    abandoned: Abandoned,
}

impl RequestBudget {
    pub fn new(abandoned: Abandoned) -> Self {
        Self {
            until: thread_time() + REQUEST_TIME,
            abandoned,
        }
    }

    /// For a request whose turn did not come: all code stays plain.
    pub fn none(abandoned: Abandoned) -> Self {
        Self {
            until: Duration::ZERO,
            abandoned,
        }
    }

    /// The time for the next message.
    pub fn next(&self) -> Budget {
        let own = thread_time() + MESSAGE_TIME;
        Budget {
            until: own.min(self.until),
            is_own: own <= self.until,
            abandoned: self.abandoned.clone(),
            was_cut: false,
        }
    }
}

/// The time for one message.
pub struct Budget {
    until: Duration,
    /// Whether it ends with the message's own time, and not with the request's.
    is_own: bool,
    abandoned: Abandoned,
    was_cut: bool,
}

impl Budget {
    /// Whether the rest has to stay plain.
    pub fn is_spent(&mut self) -> bool {
        self.was_cut |= self.abandoned.is_set() || thread_time() >= self.until;
        self.was_cut
    }

    /// Whether another request would render the same.
    pub fn is_repeatable(&self) -> bool {
        !self.was_cut || (self.is_own && !self.abandoned.is_set())
    }
}
