//! Where ids come from: a seed and a count, so that a run that is repeated has
//! the same ids, and nobody without the seed can guess one.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use uuid::{Builder, Uuid};

/// A type for ids that tell nothing: written as a UUID.
macro_rules! opaque_id {
    ($(#[$about:meta])* pub struct $name:ident;) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(uuid::Uuid);

        impl $name {
            /// Reads an id as it is written.
            pub fn parse(text: &str) -> Option<Self> {
                uuid::Uuid::try_parse(text).ok().map(Self)
            }
        }

        impl From<uuid::Uuid> for $name {
            fn from(id: uuid::Uuid) -> Self {
                Self(id)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an id"))
            }
        }
    };
}

pub(super) use opaque_id;

/// A map by ids that the pump made, or by names from the organism's file.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Hashes ids and names. Nobody outside can choose one that goes into a map, so
/// there is nobody to defend against.
#[derive(Debug, Default, Clone, Copy)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let last = rest.iter().rev();
            self.write_u64(last.fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // Spreads what counts to the upper bits, which choose the place.
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, _length: usize) {
        // The length of an id, which is that of all.
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Gives ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ids {
    seed: [u8; 32],
    given: u64,
}

impl Default for Ids {
    /// Ids that nobody has had before.
    fn default() -> Self {
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        seed[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        Self { seed, given: 0 }
    }
}

impl Ids {
    /// The next one.
    pub fn next(&mut self) -> Uuid {
        self.given += 1;
        let hash = Sha256::new()
            .chain_update(self.seed)
            .chain_update(self.given.to_le_bytes())
            .finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Builder::from_random_bytes(bytes).into_uuid()
    }
}
