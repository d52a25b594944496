//! Pauses that grow while something does not work, a little uneven so that daemons that lost the
//! same server do not come back in step.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);

/// The next pause.
#[derive(Debug)]
pub struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Pause {
    /// How long to wait now.
    pub fn next(&mut self) -> Duration {
        let uneven = RandomState::new().hash_one(()) % 250;
        let pause = self.0.mul_f64(0.875 + uneven as f64 / 1000.0);
        self.0 = (self.0 * 2).min(LONGEST);
        pause
    }

    /// It works again.
    pub fn reset(&mut self) {
        self.0 = FIRST;
    }
}
