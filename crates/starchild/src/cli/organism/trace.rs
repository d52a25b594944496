//! `--trace FILE`: every hop on a line, for a person to read.

use agentserver::trace::Hop;
use std::path::Path;
use std::time::Instant;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Hops that wait to be written; more are left out, and the log says so.
const WAITING: usize = 65_536;

/// Writes hops until the sender is dropped.
pub async fn start(
    path: &Path,
) -> std::io::Result<(mpsc::Sender<Hop>, JoinHandle<std::io::Result<()>>)> {
    let file = File::create(path).await?;
    let (sender, receiver) = mpsc::channel(WAITING);
    Ok((sender, tokio::spawn(write(file, receiver))))
}

async fn write(file: File, mut hops: mpsc::Receiver<Hop>) -> std::io::Result<()> {
    let mut file = BufWriter::new(file);
    let begin = Instant::now();
    while let Some(hop) = hops.recv().await {
        let line = format!("{:>10.3}s  {hop}\n", begin.elapsed().as_secs_f64());
        file.write_all(line.as_bytes()).await?;
        if hops.is_empty() {
            file.flush().await?;
        }
    }
    file.flush().await
}
