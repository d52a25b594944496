//! One message of a thread at a time: a backend remembers a thread, and would mix them up.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::OwnedMutexGuard;

/// How many calls may be in hand or wait at once.
const MAX_CALLS: usize = 64;

/// Whoever holds a thread's lock has the backend answer in it; the others wait in line.
pub type ThreadLock = tokio::sync::Mutex<()>;

/// The threads in which something is being answered.
#[derive(Default)]
pub struct Threads(Mutex<HashMap<String, Weak<ThreadLock>>>);

impl Threads {
    /// The lock of a thread; nothing where too many calls are in hand.
    pub fn lock_of(&self, thread: &str) -> Option<Arc<ThreadLock>> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|_, lock| lock.strong_count() > 0);
        let in_hand: usize = threads.values().map(Weak::strong_count).sum();
        if in_hand >= MAX_CALLS {
            return None;
        }
        let known = threads.get(thread).and_then(Weak::upgrade);
        let lock = known.unwrap_or_default();
        threads.insert(thread.to_owned(), Arc::downgrade(&lock));
        Some(lock)
    }
}

/// Waits for the lock; whoever drops the guard passes it on.
pub async fn wait(lock: Arc<ThreadLock>) -> OwnedMutexGuard<()> {
    lock.lock_owned().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_has_one_turn_and_calls_are_bounded() {
        let threads = Threads::default();
        let first = wait(threads.lock_of("a").unwrap()).await;
        let second = threads.lock_of("a").unwrap();
        assert!(second.clone().try_lock_owned().is_err());
        assert!(threads.lock_of("b").unwrap().try_lock_owned().is_ok());
        drop(first);
        assert!(second.try_lock_owned().is_ok());
        let many: Vec<_> = (0..MAX_CALLS)
            .map(|n| threads.lock_of(&n.to_string()))
            .collect();
        assert!(many.iter().all(Option::is_some));
        assert!(threads.lock_of("one more").is_none());
        drop(many);
        assert!(threads.lock_of("one more").is_some());
    }
}
