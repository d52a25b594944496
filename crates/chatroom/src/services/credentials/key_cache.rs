//! Room keys that were made with an identity token, kept so that each is made once.

use crate::clock::Now;
use protocol::RoomId;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Keys that are kept at the most; then they are made anew.
const MOST: usize = 10_000;
/// A key that ends this soon is not used any more, in seconds.
const MARGIN: i64 = 60;

/// A key, by the identity token's jti and the room.
type KeyName = (String, RoomId);

struct KeptKey {
    token: Arc<str>,
    expires_at: i64,
}

/// The keys that were made.
#[derive(Default)]
pub struct KeyCache {
    keys: Mutex<HashMap<KeyName, KeptKey>>,
}

impl KeyCache {
    /// The key, if there is one that lasts.
    pub fn get(&self, name: &KeyName, now: Now) -> Option<Arc<str>> {
        let keys = self.keys();
        let kept = keys.get(name)?;
        (kept.expires_at > now.seconds() + MARGIN).then(|| kept.token.clone())
    }

    pub fn keep(&self, name: KeyName, token: Arc<str>, expires_at: i64) {
        let mut keys = self.keys();
        if keys.len() >= MOST {
            keys.clear();
        }
        keys.insert(name, KeptKey { token, expires_at });
    }

    /// Forgets a key that was refused.
    pub fn forget(&self, name: &KeyName) {
        self.keys().remove(name);
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<KeyName, KeptKey>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
