//! How work is told to end: gracefully first, then at once.

use tokio_util::sync::CancellationToken;

/// Tells whoever holds a clone when to end. A graceful shutdown lets what is in hand be finished; a
/// forced one does not wait for it.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    graceful: CancellationToken,
    forced: CancellationToken,
}

impl Shutdown {
    /// Part of the work, which ends with the whole and can be ended alone.
    pub fn child(&self) -> Self {
        Self {
            graceful: self.graceful.child_token(),
            forced: self.forced.child_token(),
        }
    }

    /// A token that is cancelled when a shutdown begins: for work that leaves nothing to be forced,
    /// and for libraries that take one.
    pub fn graceful_token(&self) -> CancellationToken {
        self.graceful.child_token()
    }

    /// Begins a graceful shutdown: what is in hand is finished, nothing new is begun.
    pub fn begin(&self) {
        self.graceful.cancel();
    }

    /// Forces the shutdown: everything stops at once.
    pub fn force(&self) {
        self.graceful.cancel();
        self.forced.cancel();
    }

    /// Waits until a shutdown has begun.
    pub async fn begun(&self) {
        self.graceful.cancelled().await;
    }

    /// Waits until the shutdown is forced.
    pub async fn forced(&self) {
        self.forced.cancelled().await;
    }

    /// Whether a shutdown has begun.
    pub fn has_begun(&self) -> bool {
        self.graceful.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn a_part_ends_with_the_whole_and_alone() {
        let whole = Shutdown::default();
        let (one, other) = (whole.child(), whole.child());
        let token = whole.graceful_token();
        one.begin();
        one.begun().await;
        assert!(!whole.has_begun() && !other.has_begun() && !token.is_cancelled());
        whole.force();
        other.forced().await;
        assert!(other.has_begun() && token.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_graceful_shutdown_is_not_a_forced_one() {
        let shutdown = Shutdown::default();
        shutdown.begin();
        let forced = timeout(Duration::from_secs(3600), shutdown.forced()).await;
        assert!(forced.is_err());
    }

    #[tokio::test]
    async fn work_in_hand_is_dropped_when_the_shutdown_is_forced() {
        let shutdown = Shutdown::default();
        shutdown.force();
        tokio::select! {
            () = pending() => unreachable!(),
            () = shutdown.forced() => {}
        }
    }
}
