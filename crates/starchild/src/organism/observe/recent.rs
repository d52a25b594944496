//! The newest hops, for the page: so many and no more, each cut to what is shown.

use agentserver::trace::{Hop, HopKind};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// Hops that are kept.
pub const KEPT: usize = 2000;
/// Bytes of a payload that are kept.
const SHOWN: usize = 4096;

/// The newest hops.
pub struct Recent {
    hops: Mutex<VecDeque<Arc<Seen>>>,
    /// The number of the newest.
    newest: watch::Sender<u64>,
    begin: Instant,
}

/// A hop as the page shows it.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Its place among all that were seen.
    pub number: u64,
    /// Seconds since the start.
    at: f64,
    id: Option<u64>,
    parent: Option<u64>,
    conversation: String,
    from: Arc<str>,
    to: Arc<str>,
    payload: String,
    xml: String,
    is_cut: bool,
    kind: &'static str,
    /// The kind in words.
    words: String,
    took: Option<f64>,
    waited: Option<f64>,
    model_calls: Option<u64>,
    tokens: Option<u64>,
    money: Option<f64>,
}

impl Seen {
    /// A hop, cut to what is shown.
    pub fn of(hop: &Hop, number: u64, at: f64) -> Self {
        let xml = hop.payload.xml();
        let end = xml.floor_char_boundary(SHOWN);
        let handling = match &hop.kind {
            HopKind::Handled(handling) => Some(handling),
            _ => None,
        };
        Self {
            number,
            at,
            id: hop.id.map(|id| id.number()),
            parent: hop.parent.map(|id| id.number()),
            conversation: hop.conversation.to_string(),
            from: hop.from.clone(),
            to: hop.to.clone(),
            payload: hop.payload.root().to_owned(),
            xml: xml[..end].to_owned(),
            is_cut: end < xml.len(),
            kind: hop.kind.name(),
            words: cut(&hop.kind.to_string()),
            took: handling.map(|h| h.took.as_secs_f64()),
            waited: handling.map(|h| h.waited.as_secs_f64()),
            model_calls: handling.map(|h| h.model_calls),
            tokens: handling.map(|h| h.tokens),
            money: handling.map(|h| h.money as f64 / 1e6),
        }
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(SHOWN)].to_owned()
}

impl Recent {
    pub fn new() -> Self {
        Self {
            hops: Mutex::default(),
            newest: watch::Sender::new(0),
            begin: Instant::now(),
        }
    }

    pub fn push(&self, hop: &Hop) {
        let at = self.begin.elapsed().as_secs_f64();
        let number = *self.newest.borrow() + 1;
        let seen = Arc::new(Seen::of(hop, number, at));
        {
            let mut hops = self.hops.lock().unwrap_or_else(PoisonError::into_inner);
            if hops.len() == KEPT {
                hops.pop_front();
            }
            hops.push_back(seen);
        }
        self.newest.send_replace(number);
    }

    /// Those after a number, as far as they are kept.
    pub fn after(&self, number: u64) -> Vec<Arc<Seen>> {
        let hops = self.hops.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = hops.partition_point(|seen| seen.number <= number);
        hops.range(begin..).cloned().collect()
    }

    /// Tells of each new one.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}
