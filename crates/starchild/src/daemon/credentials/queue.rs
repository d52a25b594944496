//! One queue for new keys. Many rooms may need one at once; the server is asked for one after the
//! other, and a limit that one of them meets is waited out once, not by each.

use crate::daemon::backoff::Pause;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::{Instant, sleep_until},
};

/// Where an agent's rooms queue for keys.
#[derive(Debug, Clone)]
pub struct Mint(Arc<Mutex<Desk>>);

#[derive(Debug)]
struct Desk {
    opens_at: Instant,
    pause: Pause,
}

/// Being the one whose turn it is.
pub struct Turn(OwnedMutexGuard<Desk>);

impl Default for Mint {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Desk {
            opens_at: Instant::now(),
            pause: Pause::default(),
        })))
    }
}

impl Mint {
    /// Waits for a turn.
    pub async fn turn(&self) -> Turn {
        let desk = self.0.clone().lock_owned().await;
        sleep_until(desk.opens_at).await;
        Turn(desk)
    }
}

impl Turn {
    /// Nobody need ask before so much time has passed, or before a pause that grows.
    pub fn put_off(mut self, asked: Option<Duration>) {
        let wait = asked.unwrap_or_else(|| self.0.pause.next());
        self.0.opens_at = Instant::now() + wait;
    }

    /// It works.
    pub fn done(mut self) {
        self.0.pause.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_one_meets_is_waited_out_by_all_in_order() {
        let mint = Mint::default();
        let begun = Instant::now();
        mint.turn().await.put_off(Some(Duration::from_secs(60)));
        let room = async |name: &'static str| {
            let turn = mint.turn().await;
            let waited = begun.elapsed().as_secs();
            turn.put_off(Some(Duration::from_secs(60)));
            (name, waited)
        };
        let served = tokio::join!(room("first"), room("second"));
        assert_eq!(served, (("first", 60), ("second", 120)));
    }
}
