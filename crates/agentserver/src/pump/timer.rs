//! Wakes the rules when a watcher is due.

use super::{Shared, now};
use std::sync::{Arc, Weak};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Ends with the pump.
pub(super) async fn run(shared: Weak<Shared>, changed: Arc<Notify>) {
    loop {
        let Some(due) = shared.upgrade().map(|shared| shared.lock().core.next_due()) else {
            return;
        };
        match due {
            None => changed.notified().await,
            Some(due) => tokio::select! {
                () = changed.notified() => {}
                () = sleep_until(Instant::from_std(due)) => {
                    if let Some(shared) = shared.upgrade() {
                        shared.step(|core| core.tick(now()));
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
