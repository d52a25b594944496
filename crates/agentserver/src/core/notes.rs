//! What a listener keeps for a thread: texts in lists. They are part of the state,
//! so they survive what it survives, and end with the thread.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes that are kept for one thread; the oldest of a list go first.
const MAX_BYTES: usize = 1 << 20;

/// The lists of one thread, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes(BTreeMap<Arc<str>, VecDeque<Arc<str>>>);

/// One more text for a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub list: Arc<str>,
    pub text: Arc<str>,
    /// How many of the oldest it takes the place of.
    pub forget: usize,
}

impl Notes {
    /// A list, oldest first.
    pub fn list(&self, name: &str) -> impl Iterator<Item = &Arc<str>> {
        self.0.get(name).into_iter().flatten()
    }

    pub fn add(&mut self, note: &Note) {
        let list = self.0.entry(note.list.clone()).or_default();
        list.drain(..note.forget.min(list.len()));
        list.push_back(note.text.clone());
        while self.bytes() > MAX_BYTES && self.forget_oldest(&note.list) {}
    }

    fn bytes(&self) -> usize {
        let texts = self.0.values().flatten();
        texts.map(|text| text.len()).sum()
    }

    fn forget_oldest(&mut self, name: &str) -> bool {
        let list = self.0.get_mut(name);
        list.is_some_and(|list| list.pop_front().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_forgets_as_it_is_told_and_never_grows_without_end() {
        let mut notes = Notes::default();
        let mut add = |text: &str, forget| {
            let (list, text) = ("a".into(), text.into());
            notes.add(&Note { list, text, forget });
            notes.list("a").map(|text| text.len()).collect::<Vec<_>>()
        };
        assert_eq!(add("1", 9), [1]);
        assert_eq!(add("22", 0), [1, 2]);
        assert_eq!(add("333", 1), [2, 3]);
        let large = "x".repeat(MAX_BYTES - 1);
        assert_eq!(add(&large, 0), [large.len()]);
        assert_eq!(add(&"x".repeat(MAX_BYTES + 1), 0), [0; 0]);
        assert_eq!(notes.list("b").count(), 0);
    }
}
