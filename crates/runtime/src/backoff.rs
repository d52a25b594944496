//! Delays that grow while something does not work.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The delay before the next retry: it doubles with each one, up to the longest, and is a little
/// uneven, so that many who lost the same server do not come back in step.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Delays from `first` to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// How long to wait now.
    pub fn next_delay(&mut self) -> Duration {
        let jitter = RandomState::new().hash_one(()) % 250;
        let delay = self.next.mul_f64(0.875 + jitter as f64 / 1000.0);
        self.next = (self.next * 2).min(self.longest);
        delay
    }

    /// How long to wait after so many retries, for those who count them themselves and wait for
    /// nobody else.
    pub fn after(&self, retries: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << retries.min(30));
        doubled.min(self.longest)
    }

    /// It works again: the next delay is the first.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.longest);
    }

    /// Begins with another delay from the next reset on, as a server may ask.
    pub fn set_first(&mut self, first: Duration) {
        self.first = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(200);
    const LONGEST: Duration = Duration::from_secs(5);

    fn is_about(delay: Duration, expected: Duration) -> bool {
        delay >= expected.mul_f64(0.875) && delay < expected.mul_f64(1.125)
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        for expected in [200, 400, 800, 1600, 3200, 5000, 5000] {
            let delay = backoff.next_delay();
            assert!(
                is_about(delay, Duration::from_millis(expected)),
                "{delay:?}"
            );
        }
    }

    #[test]
    fn counted_retries_wait_as_long() {
        let backoff = Backoff::new(FIRST, LONGEST);
        let delays = [0, 1, 2, 5, 30, u32::MAX].map(|retries| backoff.after(retries).as_millis());
        assert_eq!(delays, [200, 400, 800, 5000, 5000, 5000]);
    }

    #[test]
    fn a_success_begins_anew_with_the_first_delay_that_was_asked_for() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        for _ in 0..100 {
            backoff.next_delay();
        }
        backoff.reset();
        assert!(is_about(backoff.next_delay(), FIRST));
        backoff.set_first(Duration::from_secs(60));
        backoff.reset();
        assert!(is_about(backoff.next_delay(), LONGEST));
    }
}
