//! The rules' time, from the clock that tests may hold still.

use crate::core::Time;
use tokio::time::Instant;

/// Goes on where the rules' time had stopped.
pub(super) struct Clock {
    begun: Instant,
    base: Time,
}

impl Clock {
    pub(super) fn from(base: Time) -> Self {
        Self {
            begun: Instant::now(),
            base,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.base.after(self.begun.elapsed())
    }

    /// When the clock will show this time; never, if that is too far off.
    pub(super) fn instant(&self, time: Time) -> Option<Instant> {
        // Rounded up, so that it is not too early by a part of a microsecond.
        let wait = time.since(self.base) + std::time::Duration::from_micros(1);
        self.begun.checked_add(wait)
    }
}
