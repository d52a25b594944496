//! The limit on anonymous reads. It is counted by the minute, so it may live in memory.

use super::limits::{Limit, Windows};
use crate::{clock::Now, error::Result};
use protocol::ErrorCode;
use std::{net::IpAddr, sync::Mutex};

/// After so many reads the windows that have ended are forgotten: a flood fills no memory.
const SWEEP_EVERY: usize = 10_000;

/// Counts anonymous reads, for each address and place.
#[derive(Default)]
pub struct Visitors {
    windows: Mutex<(usize, Windows)>,
}

impl Visitors {
    /// Counts a read, or refuses it.
    pub fn take(&self, ip: IpAddr, place: &str, most: i64, now: Now) -> Result<()> {
        let limit = Limit {
            bucket: format!("{ip} {place}"),
            most,
            window_ms: 60_000,
            code: ErrorCode::RateLimited,
            words: "Too many anonymous reads from your address",
            stored: false,
        };
        let mut guard = self
            .windows
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let (reads, windows) = &mut *guard;
        *reads += 1;
        if reads.is_multiple_of(SWEEP_EVERY) {
            windows.forget_ended(now);
        }
        windows.take(&[limit], now)
    }
}
