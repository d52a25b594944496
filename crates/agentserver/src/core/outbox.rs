//! Answers that were handed to a gateway and not acknowledged yet: what is given
//! to it again after a crash.

use super::ids::IdMap;
use super::message::{Arrival, HopId};
use super::threads::ThreadId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The answers that are kept, by conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Outbox(IdMap<ThreadId, VecDeque<Arrival>>);

impl Outbox {
    pub fn push(&mut self, arrival: Arrival) {
        self.0.entry(arrival.root).or_default().push_back(arrival);
    }

    /// The gateway has done with all up to this one.
    pub fn acknowledge(&mut self, root: ThreadId, id: HopId) {
        if let Some(kept) = self.0.get_mut(&root) {
            while kept.front().is_some_and(|arrival| arrival.id <= id) {
                kept.pop_front();
            }
            if kept.is_empty() {
                self.0.remove(&root);
            }
        }
    }

    /// Nobody will ask for the answers of a conversation any more.
    pub fn forget(&mut self, root: ThreadId) {
        self.0.remove(&root);
    }

    /// What a conversation's gateway has not acknowledged.
    pub fn of(&self, root: ThreadId) -> impl Iterator<Item = &Arrival> {
        self.0.get(&root).into_iter().flatten()
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
