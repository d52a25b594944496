//! One queue for new keys. Many rooms may need one at once; the server is asked for one after the
//! other, and a limit that one of them meets is waited out once, not by each.

use crate::daemon::retry;
use runtime::Backoff;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::{Instant, sleep_until},
};

/// Where an agent's rooms queue for keys.
#[derive(Debug, Clone)]
pub struct KeyQueue(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    ready_at: Instant,
    backoff: Backoff,
}

/// The right to ask for a key now; others wait for it.
pub struct KeyTurn(OwnedMutexGuard<State>);

impl Default for KeyQueue {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            ready_at: Instant::now(),
            backoff: retry::backoff(),
        })))
    }
}

impl KeyQueue {
    /// Waits for a turn.
    pub async fn turn(&self) -> KeyTurn {
        let state = self.0.clone().lock_owned().await;
        sleep_until(state.ready_at).await;
        KeyTurn(state)
    }
}

impl KeyTurn {
    /// Nobody need ask before so much time has passed, or before a backoff.
    pub fn postpone(mut self, retry_after: Option<Duration>) {
        let wait = retry_after.unwrap_or_else(|| self.0.backoff.next_delay());
        self.0.ready_at = Instant::now() + wait;
    }

    /// It works.
    pub fn succeeded(mut self) {
        self.0.backoff.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_one_meets_is_waited_out_by_all_in_order() {
        let queue = KeyQueue::default();
        let begun = Instant::now();
        queue.turn().await.postpone(Some(Duration::from_secs(60)));
        let room = async |name: &'static str| {
            let turn = queue.turn().await;
            let waited = begun.elapsed().as_secs();
            turn.postpone(Some(Duration::from_secs(60)));
            (name, waited)
        };
        let served = tokio::join!(room("first"), room("second"));
        assert_eq!(served, (("first", 60), ("second", 120)));
    }
}
