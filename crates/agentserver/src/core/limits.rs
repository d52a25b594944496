//! Bounds on what conversations may use.

use super::budget::Budget;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bounds on what conversations may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreLimits {
    /// Listeners in one call chain.
    pub depth: usize,
    /// Messages of one conversation that wait, run or are unread; whoever sends
    /// from outside waits for room.
    pub in_flight: usize,
    /// Messages of one conversation that wait or run, those that listeners sent
    /// to each other included; more are refused.
    pub backlog: usize,
    /// Refusals in a row before a listener's caller is told that it failed.
    pub refusals: u32,
    /// Watchers on one thread.
    pub todos: usize,
    /// Time between two nudges.
    pub nudge: Duration,
    /// Nudges before a to-do is given up.
    pub nudges: u32,
    /// What one message from outside, and all that follows from it, may use.
    pub request: Budget,
    /// What one conversation may use from its first message to its last.
    pub conversation: Budget,
}

impl Default for CoreLimits {
    fn default() -> Self {
        Self {
            depth: 64,
            in_flight: 256,
            backlog: 4096,
            refusals: 8,
            todos: 32,
            nudge: Duration::from_secs(30),
            nudges: 20,
            request: Budget::REQUEST,
            conversation: Budget::default(),
        }
    }
}
