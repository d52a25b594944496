//! Bounds on what conversations may use.

use std::time::Duration;

/// Bounds on what conversations may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreLimits {
    /// Listeners in one call chain.
    pub depth: usize,
    /// Messages of one conversation that wait or run at one time.
    pub in_flight: usize,
    /// Messages of one conversation before it comes to rest.
    pub hops: usize,
    /// Refusals in a row before a listener's caller is told that it failed.
    pub refusals: u32,
    /// Watchers on one thread.
    pub todos: usize,
    /// Time between two nudges.
    pub nudge: Duration,
    /// Nudges before a watcher is given up.
    pub nudges: u32,
}

impl Default for CoreLimits {
    fn default() -> Self {
        Self {
            depth: 64,
            in_flight: 256,
            hops: 10_000,
            refusals: 8,
            todos: 32,
            nudge: Duration::from_secs(30),
            nudges: 20,
        }
    }
}
