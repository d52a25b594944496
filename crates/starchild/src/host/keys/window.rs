//! So many calls in any minute. A rule without I/O.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

const MINUTE: Duration = Duration::from_secs(60);

/// The calls of the last minute.
#[derive(Debug, Default)]
pub struct Window(VecDeque<Instant>);

impl Window {
    /// Counts a call, or says how long to wait.
    pub fn admit(&mut self, per_minute: u32, now: Instant) -> Result<(), Duration> {
        while self
            .0
            .front()
            .is_some_and(|then| now.duration_since(*then) >= MINUTE)
        {
            self.0.pop_front();
        }
        if self.0.len() >= per_minute as usize {
            let wait = self.0.front().map_or(MINUTE, |oldest| {
                MINUTE.saturating_sub(now.duration_since(*oldest))
            });
            return Err(wait);
        }
        self.0.push_back(now);
        Ok(())
    }
}
