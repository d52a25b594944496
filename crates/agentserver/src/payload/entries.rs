//! How maps are written and read: `<entry><key>…</key><value>…</value></entry>`,
//! in the order of the keys. The derive names this module to serde.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, HashMap};

/// Values by key.
pub trait Entries: Sized {
    /// What the keys lead to.
    type Value;

    /// In the order of the keys.
    fn sorted(&self) -> Vec<(&String, &Self::Value)>;

    /// A map of these.
    fn collect(entries: impl Iterator<Item = (String, Self::Value)>) -> Self;
}

impl<V> Entries for BTreeMap<String, V> {
    type Value = V;

    fn sorted(&self) -> Vec<(&String, &V)> {
        self.iter().collect()
    }

    fn collect(entries: impl Iterator<Item = (String, V)>) -> Self {
        entries.collect()
    }
}

impl<V> Entries for HashMap<String, V> {
    type Value = V;

    fn sorted(&self) -> Vec<(&String, &V)> {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        entries
    }

    fn collect(entries: impl Iterator<Item = (String, V)>) -> Self {
        entries.collect()
    }
}

#[derive(Serialize, Deserialize)]
struct Entry<K, V> {
    key: K,
    value: V,
}

#[derive(Deserialize)]
struct All<V> {
    #[serde(default = "Vec::new")]
    entry: Vec<Entry<String, V>>,
}

/// For serde.
pub fn serialize<M, S>(map: &M, serializer: S) -> Result<S::Ok, S::Error>
where
    M: Entries,
    M::Value: Serialize,
    S: Serializer,
{
    let entries = map.sorted().into_iter();
    let entries: Vec<_> = entries.map(|(key, value)| Entry { key, value }).collect();
    let mut all = serializer.serialize_struct("entries", 1)?;
    all.serialize_field("entry", &entries)?;
    all.end()
}

/// For serde.
pub fn deserialize<'de, M, D>(deserializer: D) -> Result<M, D::Error>
where
    M: Entries,
    M::Value: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let all = All::deserialize(deserializer)?;
    let entries = all.entry.into_iter();
    Ok(M::collect(entries.map(|entry| (entry.key, entry.value))))
}
