//! The one way to tell the time, and one that nobody can set.

use std::{
    sync::OnceLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

/// A moment, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(pub i64);

impl Now {
    /// This moment.
    pub fn get() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// In milliseconds.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// In seconds, as the wire has it.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// In whole minutes.
    pub const fn minutes(self) -> i64 {
        self.0.div_euclid(60_000)
    }
}

/// Milliseconds since 1970 by a clock that only goes forward: the time when this was first asked,
/// and what has passed since. For schedules; it does not follow a clock that is set right.
pub fn steady_ms() -> i64 {
    static START: OnceLock<(Instant, i64)> = OnceLock::new();
    let (start, wall) = *START.get_or_init(|| (Instant::now(), Now::get().millis()));
    let passed = i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX);
    wall.saturating_add(passed)
}
