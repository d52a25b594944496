//! `agent.log`: what the daemon has to say, and never too much of it.

use crate::terminal::one_line;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use tracing_subscriber::{Layer, filter::Targets, fmt::MakeWriter};

/// From this size on a new file is begun; the one before is kept beside it.
const MOST_BYTES: u64 = 10 * 1024 * 1024;

/// Where the lines before the newest ones are.
pub fn older(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// Sends what is logged to the file, and to the terminal too where the daemon stays in it.
pub fn init(path: &Path, in_terminal: bool) -> io::Result<()> {
    let log = Log {
        file: Arc::new(Mutex::new(LogFile::open(path)?)),
        in_terminal,
    };
    let level = std::env::var("STARCHILD_LOG")
        .ok()
        .and_then(|level| level.parse().ok())
        .unwrap_or(tracing::Level::INFO);
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_target(false)
        .with_writer(log)
        .with_filter(Targets::new().with_default(level).with_target(
            // It tells of every handshake.
            "rmcp",
            level.min(tracing::Level::WARN),
        ));
    crate::telemetry::begin(log).map_err(io::Error::other)
}

#[derive(Clone)]
struct Log {
    file: Arc<Mutex<LogFile>>,
    in_terminal: bool,
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Log {
    /// Takes one event. It may hold a server's words: they steer no terminal that shows the log, and
    /// begin no line that looks like another event.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = one_line(text.trim_end()) + "\n";
        if self.in_terminal {
            io::stderr().write_all(line.as_bytes())?;
        }
        if let Ok(mut file) = self.file.lock() {
            file.write(line.as_bytes())?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(path)?;
        Ok(Self {
            path: path.to_owned(),
            bytes: file.metadata()?.len(),
            file,
        })
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes > MOST_BYTES {
            fs::rename(&self.path, older(&self.path))?;
            *self = Self::open(&self.path)?;
        }
        self.bytes += line.len() as u64;
        self.file.write_all(line)
    }
}
