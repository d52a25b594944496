//! How many of something are open at once, for each who opened them: connections, streams.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Counts what is open. Cheap to clone.
#[derive(Debug)]
pub struct Occupancy<K>(Arc<Mutex<HashMap<K, usize>>>);

/// One that is open, until it is dropped.
#[derive(Debug)]
pub struct Seat<K: Eq + Hash> {
    occupancy: Occupancy<K>,
    key: Option<K>,
}

impl<K> Default for Occupancy<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K> Clone for Occupancy<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone> Occupancy<K> {
    /// One more, unless there are `most` already. 0 means no limit.
    pub fn enter(&self, key: K, most: usize) -> Option<Seat<K>> {
        if most > 0 {
            let mut open = self.lock();
            let count = open.entry(key.clone()).or_default();
            if *count >= most {
                return None;
            }
            *count += 1;
        }
        Some(Seat {
            occupancy: self.clone(),
            key: (most > 0).then_some(key),
        })
    }
}

impl<K> Occupancy<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Seat<K> {
    fn drop(&mut self) {
        let Some(key) = &self.key else {
            return;
        };
        let mut open = self.occupancy.lock();
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
    fn a_seat_is_free_again_when_it_is_left() {
        let open = Occupancy::default();
        let seats: Vec<_> = (0..2).map(|_| open.enter("a", 2).unwrap()).collect();
        assert!(open.enter("a", 2).is_none());
        assert!(open.enter("b", 2).is_some());
        drop(seats);
        assert!(open.enter("a", 2).is_some());
        assert!(open.lock().is_empty());
    }

    #[test]
    fn zero_means_no_limit() {
        let open = Occupancy::default();
        let _seats: Vec<_> = (0..100).map(|_| open.enter("a", 0).unwrap()).collect();
        assert!(open.lock().is_empty());
    }
}
