//! The dedup keys of messages that a conversation has accepted: one that is sent again
//! with the same key is not accepted twice.

use serde::{Deserialize, Serialize};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// How many keys are remembered; the oldest go first.
const KEPT: usize = 65_536;

/// The dedup keys, in the order in which they came.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(from = "VecDeque<Arc<str>>", into = "VecDeque<Arc<str>>")]
pub struct DedupKeys {
    order: VecDeque<Arc<str>>,
    keys: HashSet<Arc<str>>,
}

impl DedupKeys {
    pub fn contains(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    pub fn insert(&mut self, key: &str) {
        let key: Arc<str> = key.into();
        if self.keys.insert(key.clone()) {
            self.order.push_back(key);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}

impl Clone for DedupKeys {
    fn clone(&self) -> Self {
        self.order.clone().into()
    }
}

impl From<VecDeque<Arc<str>>> for DedupKeys {
    fn from(order: VecDeque<Arc<str>>) -> Self {
        let keys = order.iter().cloned().collect();
        Self { order, keys }
    }
}

impl From<DedupKeys> for VecDeque<Arc<str>> {
    fn from(keys: DedupKeys) -> Self {
        keys.order
    }
}
