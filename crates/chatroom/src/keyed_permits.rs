//! How many of something are open at once, for each who opened them: connections, streams.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Gives out permits, so many for each key. Cheap to clone.
#[derive(Debug)]
pub struct KeyedPermits<K>(Arc<Mutex<HashMap<K, usize>>>);

/// The right to have one open; given back when dropped.
#[derive(Debug)]
pub struct KeyedPermit<K: Eq + Hash> {
    permits: KeyedPermits<K>,
    key: Option<K>,
}

impl<K> Default for KeyedPermits<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K> Clone for KeyedPermits<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone> KeyedPermits<K> {
    /// One more, unless there are `most` already. 0 means no limit.
    pub fn try_acquire(&self, key: K, most: usize) -> Option<KeyedPermit<K>> {
        if most > 0 {
            let mut open = self.lock();
            let count = open.entry(key.clone()).or_default();
            if *count >= most {
                return None;
            }
            *count += 1;
        }
        Some(KeyedPermit {
            permits: self.clone(),
            key: (most > 0).then_some(key),
        })
    }
}

impl<K> KeyedPermits<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        let Some(key) = &self.key else {
            return;
        };
        let mut open = self.permits.lock();
        if let Some(count) = open.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                open.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_free_again_when_it_is_dropped() {
        let open = KeyedPermits::default();
        let held: Vec<_> = (0..2).map(|_| open.try_acquire("a", 2).unwrap()).collect();
        assert!(open.try_acquire("a", 2).is_none());
        assert!(open.try_acquire("b", 2).is_some());
        drop(held);
        assert!(open.try_acquire("a", 2).is_some());
        assert!(open.lock().is_empty());
    }

    #[test]
    fn zero_means_no_limit() {
        let open = KeyedPermits::default();
        let _held: Vec<_> = (0..100)
            .map(|_| open.try_acquire("a", 0).unwrap())
            .collect();
        assert!(open.lock().is_empty());
    }
}
