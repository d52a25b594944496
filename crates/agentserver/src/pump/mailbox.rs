//! What has come for whoever began a conversation and was not read yet.

use super::Delivered;
use crate::core::{Arrival, HopId};
use crate::system::{self, Fault};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

pub(super) struct Mailbox {
    unread: VecDeque<Delivered>,
    capacity: usize,
    /// The conversation's epoch when something was last sent.
    pub(super) sent: u64,
    /// What was last sent, since the program started.
    pub(super) last_sent: Option<HopId>,
    /// Those who wait for room to send.
    pub(super) senders: usize,
    /// What will come, or come to rest, when the disk has its cause.
    pub(super) held: usize,
    /// The last message that was read.
    pub(super) read: Option<HopId>,
    /// Something came, was read or came to rest; there once somebody waits for it.
    changed: Option<Arc<Notify>>,
}

impl Mailbox {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            unread: VecDeque::new(),
            capacity,
            sent: 0,
            last_sent: None,
            senders: 0,
            held: 0,
            read: None,
            changed: None,
        }
    }

    pub(super) fn changed(&mut self) -> Arc<Notify> {
        self.changed.get_or_insert_default().clone()
    }

    pub(super) fn unread(&self) -> usize {
        self.unread.len()
    }

    /// Puts a message in. When it is full, says so in its stead, once.
    pub(super) fn put(&mut self, arrival: Arrival) -> bool {
        if self.unread.len() > self.capacity {
            return false;
        }
        let is_full = self.unread.len() == self.capacity;
        let (from, payload) = match is_full {
            false => (arrival.from, arrival.payload),
            true => {
                let words = "Messages came faster than they were read, and the conversation was \
                             ended. Read while you send.";
                (system::NAME.into(), Fault::Limit.saying(words))
            }
        };
        self.unread.push_back(Delivered {
            id: arrival.id,
            request: arrival.request,
            key: arrival.key,
            from,
            thread: arrival.root,
            payload,
        });
        !is_full
    }

    pub(super) fn take(&mut self, woken: &mut Vec<Arc<Notify>>) -> Option<Delivered> {
        let delivered = self.unread.pop_front();
        self.read = delivered
            .as_ref()
            .map(|delivered| delivered.id)
            .or(self.read);
        if self.unread.is_empty() {
            // An idle conversation should cost little.
            self.unread = VecDeque::new();
        }
        if delivered.is_some() && (self.senders > 0 || self.unread.is_empty()) {
            self.wake(woken);
        }
        delivered
    }

    /// There may be room to send.
    pub(super) fn wake_senders(&self, woken: &mut Vec<Arc<Notify>>) {
        if self.senders > 0 {
            self.wake(woken);
        }
    }

    /// Notes that those who wait are to be woken, when the state is free.
    pub(super) fn wake(&self, woken: &mut Vec<Arc<Notify>>) {
        if let Some(changed) = &self.changed
            && !woken.last().is_some_and(|last| Arc::ptr_eq(last, changed))
        {
            woken.push(changed.clone());
        }
    }
}
