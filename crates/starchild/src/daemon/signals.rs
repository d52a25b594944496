//! Signals that end the daemon.

use runtime::Shutdown;
use tokio::signal::unix::{SignalKind, signal};

/// Passes signals on: the first SIGTERM or SIGINT begins a graceful shutdown, the second forces it.
pub async fn forward_signals(shutdown: &Shutdown) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if shutdown.has_begun() {
            tracing::info!("asked again; ending at once");
            shutdown.force();
        } else {
            tracing::info!("asked to end; finishing the message in hand");
            shutdown.begin();
        }
    }
}
