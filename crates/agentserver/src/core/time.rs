//! The rules' own time. It is put in with every input, so that a run can be
//! repeated; while nothing runs it stands still.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Microseconds for which the pump has run, over all its starts.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// This much later; a time too far off never comes.
    pub fn after(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How much later this is than `earlier`.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}
