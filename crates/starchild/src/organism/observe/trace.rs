//! `--trace FILE`: every hop on a line, for a person to read.

use agentserver::trace::Hop;
use std::path::Path;
use std::time::Instant;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};

pub struct TraceFile {
    file: BufWriter<File>,
    begin: Instant,
}

impl TraceFile {
    pub async fn create(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            file: BufWriter::new(File::create(path).await?),
            begin: Instant::now(),
        })
    }

    pub async fn write(&mut self, hop: &Hop) -> std::io::Result<()> {
        let line = format!("{:>10.3}s  {hop}\n", self.begin.elapsed().as_secs_f64());
        self.file.write_all(line.as_bytes()).await
    }

    pub async fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush().await
    }
}
