//! The keys that callers show to the host. They are kept hashed, in one file for the owner alone;
//! whoever reads it can call nobody.

mod api;
mod scope;
mod window;

pub use api::router;
pub use scope::{Scope, is_thread};

use crate::home::{FileError, files};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use window::Window;

/// How many keys there may be at once.
const MAX_KEYS: usize = 500;
/// How long a key that has ended is still listed.
const KEPT_SECONDS: i64 = 30 * 24 * 3600;
/// How long a key may live.
pub const MAX_TTL_SECONDS: i64 = 366 * 24 * 3600;
/// How many calls a minute a key may be good for.
pub const MAX_PER_MINUTE: u32 = 6000;

/// How often a key may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Calls in any minute.
    pub per_minute: u32,
}

/// A key, as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Key {
    /// How the secret begins; names the key.
    pub prefix: String,
    /// What it opens.
    pub scope: Scope,
    /// What its maker calls it.
    pub label: String,
    /// In unix seconds.
    pub created_at: i64,
    /// In unix seconds.
    pub expires_at: i64,
    /// How often it may be used.
    pub rate_limit: RateLimit,
    /// What its maker wrote down with it; the host gives it back and does nothing with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<serde_json::Value>,
}

/// What a key is asked for with.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What it shall open.
    pub scope: Scope,
    /// How long it shall live.
    pub ttl_seconds: i64,
    /// What its maker calls it.
    pub label: String,
    /// How often it may be used.
    pub rate_limit: RateLimit,
    /// What its maker writes down with it.
    pub capabilities: Option<serde_json::Value>,
}

/// A key with its secret, which is shown once.
#[derive(Debug, Serialize)]
pub struct NewKey {
    /// What callers send as their bearer.
    pub secret: String,
    /// The key.
    pub key: Key,
}

/// A key as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredKey {
    #[serde(flatten)]
    key: Key,
    /// SHA-256 of the secret, in hexadecimal.
    hash: String,
    /// How long it lives each time it is prolonged.
    ttl_seconds: i64,
    /// When it was made or last prolonged.
    renewed_at: i64,
}

/// Why a key was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// There is none of this prefix, or it has ended.
    #[error("there is no key {0:?} that still counts; GET /api/keys lists those there are")]
    Unknown(String),
    /// There are too many.
    #[error("there are {MAX_KEYS} keys already; delete those that nobody uses")]
    TooMany,
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Why a caller is not let in.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// No key of ours, or one that has ended.
    Unknown,
    /// A key for something else.
    Scope,
    /// Too many calls.
    Rate {
        /// When the next call is let in.
        after: Duration,
    },
}

/// All keys of one host.
pub struct Keys {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Vec<StoredKey>,
    /// Calls of the last minute, by the key's hash.
    windows: HashMap<String, Window>,
}

impl Keys {
    /// The keys in this file; none where there is no file.
    pub fn open(path: PathBuf) -> Result<Self, FileError> {
        let keys = files::read_json(&path)?.unwrap_or_default();
        let windows = HashMap::new();
        Ok(Self {
            path,
            state: Mutex::new(State { keys, windows }),
        })
    }

    /// Makes a key. It is on the disk when this returns.
    pub fn create(&self, wanted: Wanted, now: i64) -> Result<NewKey, KeyStoreError> {
        self.change(now, |keys| {
            if keys.len() >= MAX_KEYS {
                return Err(KeyStoreError::TooMany);
            }
            let (made, kept) = make(wanted, now);
            keys.push(kept);
            Ok(made)
        })
    }

    /// The keys, oldest first.
    pub fn list(&self, include_expired: bool, now: i64) -> Vec<Key> {
        let state = self.lock();
        let listed = state.keys.iter().map(|kept| &kept.key);
        let listed = listed.filter(|key| include_expired || key.expires_at > now);
        listed.cloned().collect()
    }

    /// Ends a key at once.
    pub fn delete(&self, prefix: &str, now: i64) -> Result<(), KeyStoreError> {
        self.change(now, |keys| {
            let at = position(keys, prefix)?;
            keys.remove(at);
            Ok(())
        })
    }

    /// A new key in the place of this one, which is dead at once.
    pub fn rotate(&self, prefix: &str, now: i64) -> Result<NewKey, KeyStoreError> {
        self.change(now, |keys| {
            let at = position(keys, prefix)?;
            let old = &keys[at];
            let wanted = Wanted {
                scope: old.key.scope.clone(),
                ttl_seconds: old.ttl_seconds,
                label: old.key.label.clone(),
                rate_limit: old.key.rate_limit,
                capabilities: old.key.capabilities.clone(),
            };
            let (made, kept) = make(wanted, now);
            keys[at] = kept;
            Ok(made)
        })
    }

    /// Prolongs a key, but only past two thirds of its life. A key that has ended stays ended.
    pub fn touch(&self, prefix: &str, now: i64) -> Result<Key, KeyStoreError> {
        let known = self.known(prefix, now)?;
        if !is_due(&known, now) {
            return Ok(known.key);
        }
        self.change(now, |keys| {
            let at = position(keys, prefix)?;
            let kept = &mut keys[at];
            if kept.key.expires_at > now && is_due(kept, now) {
                kept.renewed_at = now;
                kept.key.expires_at = now.saturating_add(kept.ttl_seconds);
            }
            Ok(kept.key.clone())
        })
    }

    fn known(&self, prefix: &str, now: i64) -> Result<StoredKey, KeyStoreError> {
        let state = self.lock();
        let alive = |kept: &&StoredKey| kept.key.prefix == prefix && kept.key.expires_at > now;
        let known = state.keys.iter().find(alive).cloned();
        known.ok_or_else(|| KeyStoreError::Unknown(prefix.to_owned()))
    }

    /// Whether a bearer is a key at all, before anything else of a request is read.
    pub fn knows(&self, bearer: &str, now: i64) -> bool {
        let hash = hash(bearer);
        let alive = |kept: &StoredKey| kept.hash == hash && kept.key.expires_at > now;
        self.lock().keys.iter().any(alive)
    }

    /// The name and the scope of a key that counts.
    pub fn known_as(&self, bearer: &str, now: i64) -> Option<(String, Scope)> {
        let hash = hash(bearer);
        let alive = |kept: &&StoredKey| kept.hash == hash && kept.key.expires_at > now;
        let state = self.lock();
        let known = state.keys.iter().find(alive)?;
        Some((known.key.prefix.clone(), known.key.scope.clone()))
    }

    /// Lets a caller in, counts the call, and gives the key's prefix.
    pub fn admit(&self, bearer: &str, thread: &str, now: i64) -> Result<String, Refused> {
        let hash = hash(bearer);
        let mut state = self.lock();
        let State { keys, windows } = &mut *state;
        // Hashes are compared, so the time tells nothing of a secret.
        let known = keys.iter().find(|kept| kept.hash == hash);
        let known = known.filter(|kept| kept.key.expires_at > now);
        let known = known.ok_or(Refused::Unknown)?;
        if !known.key.scope.allows(thread) {
            return Err(Refused::Scope);
        }
        let window = windows.entry(hash).or_default();
        window
            .admit(known.key.rate_limit.per_minute, Instant::now())
            .map_err(|after| Refused::Rate { after })?;
        Ok(known.key.prefix.clone())
    }

    /// Changes the keys, on the disk first: what cannot be kept is not done.
    fn change<T>(
        &self,
        now: i64,
        change: impl FnOnce(&mut Vec<StoredKey>) -> Result<T, KeyStoreError>,
    ) -> Result<T, KeyStoreError> {
        let mut state = self.lock();
        let mut keys = state.keys.clone();
        keys.retain(|kept| kept.key.expires_at > now - KEPT_SECONDS);
        let done = change(&mut keys)?;
        files::write_json(&self.path, &keys)?;
        let State { keys: old, windows } = &mut *state;
        *old = keys;
        windows.retain(|hash, _| old.iter().any(|kept| kept.hash == *hash));
        Ok(done)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn position(keys: &[StoredKey], prefix: &str) -> Result<usize, KeyStoreError> {
    let at = keys.iter().position(|kept| kept.key.prefix == prefix);
    at.ok_or_else(|| KeyStoreError::Unknown(prefix.to_owned()))
}

fn is_due(kept: &StoredKey, now: i64) -> bool {
    let life = kept.key.expires_at - kept.renewed_at;
    now >= kept.renewed_at + life / 3 * 2
}

fn make(wanted: Wanted, now: i64) -> (NewKey, StoredKey) {
    let random = || uuid::Uuid::new_v4().simple().to_string();
    let prefix = format!("sk_{}", &random()[..8]);
    let secret = format!("{prefix}_{}{}", random(), random());
    let key = Key {
        prefix,
        scope: wanted.scope,
        label: wanted.label,
        created_at: now,
        expires_at: now.saturating_add(wanted.ttl_seconds),
        rate_limit: wanted.rate_limit,
        capabilities: wanted.capabilities,
    };
    let kept = StoredKey {
        hash: hash(&secret),
        ttl_seconds: wanted.ttl_seconds,
        renewed_at: now,
        key: key.clone(),
    };
    (NewKey { secret, key }, kept)
}

fn hash(secret: &str) -> String {
    let digest = Sha256::digest(secret.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
