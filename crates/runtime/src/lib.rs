//! What the programs here share besides the wire, one of each: how long to wait before a retry, how
//! a program and all it started are ended, how work is told to end. Knows nothing of rooms, models
//! or organisms.

mod backoff;
mod leftovers;
mod process_group;
mod shutdown;

pub use backoff::Backoff;
pub use leftovers::kill_marked;
pub use process_group::ProcessGroup;
pub use shutdown::Shutdown;
pub use tokio_util::sync::CancellationToken;
