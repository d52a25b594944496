//! Seed data for tests: a data folder as a server's first start leaves it. Making keys and tables takes
//! longer than the rest of a start, and few tests are about either.

use crate::{
    run::run,
    services::{memory_or_disk, scratch},
};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// The folder, as long as this lives. Tests' servers begin with a copy of it.
pub struct SeedData(PathBuf);

impl SeedData {
    /// Starts the server once on an empty folder, and stops it.
    pub fn make(server: &Path) -> Result<Self, String> {
        let data = Self(scratch(&memory_or_disk(), "data")?);
        let child = Command::new(server)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.folder())
            .env("SC_CHATROOM__LOG__LEVEL", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", server.display()))?;
        stop_once_open(child)?;
        Ok(data)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for SeedData {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stop_once_open(mut child: Child) -> Result<(), String> {
    let Some(stdout) = child.stdout.take() else {
        return Err("the server has no output".into());
    };
    let mut printed = BufReader::new(stdout).lines();
    let open = printed.any(|line| line.is_ok_and(|line| line.starts_with("Open ")));
    if open {
        let pid = child.id().to_string();
        run(Command::new("sh").args(["-c", "kill -TERM $0", &pid]))?;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the server's first start ended with {status}")),
    }
}
