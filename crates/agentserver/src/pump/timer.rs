//! Wakes the rules when something is due.

use super::Shared;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;
use tokio::time::sleep_until;

/// Ends with the pump.
pub(super) async fn run(shared: Weak<Shared>, changed: Arc<Notify>) {
    loop {
        let Some(due) = shared.upgrade().map(|shared| {
            let mut state = shared.lock();
            state.wakes_at = state.core.next_due();
            state.wakes_at.and_then(|due| shared.clock.instant(due))
        }) else {
            return;
        };
        match due {
            None => changed.notified().await,
            Some(due) => tokio::select! {
                () = changed.notified() => {}
                () = sleep_until(due) => {
                    if let Some(shared) = shared.upgrade() {
                        let now = shared.now();
                        shared.step(|state| state.core.tick(now));
                    }
                }
            },
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.timer.notify_one();
    }
}
