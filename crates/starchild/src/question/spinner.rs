//! Something that moves while a person waits.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};
use tokio::task::JoinHandle;

const FRAMES: [&str; 4] = ["·", "•", "●", "•"];
const PACE: Duration = Duration::from_millis(150);

/// Turns on a terminal's standard error until it is dropped.
pub struct Spinner(Option<JoinHandle<()>>);

impl Spinner {
    /// Begins, where there is somebody to see it.
    pub fn start() -> Self {
        let is_seen = io::stderr().is_terminal();
        Self(is_seen.then(|| tokio::spawn(turn())))
    }
}

async fn turn() {
    for frame in FRAMES.iter().cycle() {
        let _ = write!(io::stderr(), "\r{frame} ");
        tokio::time::sleep(PACE).await;
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(turning) = self.0.take() {
            turning.abort();
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
