//! The daemon as a process: one for each agent, started apart from the terminal, asked to end.

use crate::home::{AgentHome, files};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{Duration, Instant},
};

/// How long a look at the lock may keep a daemon from taking it.
const LOCK_WITHIN: Duration = Duration::from_millis(400);
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// Held for as long as the daemon runs. The lock counts, not the number in the file: a file that
/// a killed daemon left behind stops nobody.
pub struct PidLock(#[expect(dead_code, reason = "dropping it gives the lock up")] File);

/// Why this process is not the agent's daemon.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another one is.
    #[error("the agent runs already, as process {0}")]
    Running(i32),
    /// The file cannot be written.
    #[error("cannot write {0}: {1}")]
    File(String, io::Error),
}

impl PidLock {
    /// Makes this process the agent's daemon.
    pub fn acquire(home: &AgentHome) -> Result<Self, LockError> {
        Self::acquire_file(&home.pid_file())
    }

    /// Makes this process the one that a file stands for.
    pub fn acquire_file(path: &Path) -> Result<Self, LockError> {
        let failed = |error| LockError::File(path.display().to_string(), error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // Somebody who only looks holds it for a moment, without a living daemon.
                Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_WITHIN => {
                    std::thread::sleep(CHECK_EVERY);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Running(read_pid(&mut file).unwrap_or(0)));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self(file))
    }
}

/// The process that is the agent's daemon, if one runs.
pub fn running(home: &AgentHome) -> Option<Pid> {
    running_of(&home.pid_file())
}

/// The process that a file stands for, if one runs.
pub fn running_of(path: &Path) -> Option<Pid> {
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Pid::from_raw(read_pid(&mut file)?),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn read_pid(file: &mut File) -> Option<i32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Asks the daemon to end gracefully. Asked twice, it is forced to.
pub fn terminate(pid: Pid) -> io::Result<()> {
    Ok(kill_process(pid, Signal::TERM)?)
}

/// Waits until no daemon runs; false where one still does when the time is over.
pub async fn wait_for_exit(home: &AgentHome, within: Duration) -> bool {
    wait_for_exit_of(&home.pid_file(), within).await
}

/// The same for the process that a file stands for.
pub async fn wait_for_exit_of(path: &Path, within: Duration) -> bool {
    let begun = Instant::now();
    while running_of(path).is_some() {
        if begun.elapsed() > within {
            return false;
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
    true
}

/// What a daemon that was started apart says to whoever started it.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// It runs.
    Ready {
        /// In so many rooms.
        rooms: usize,
    },
    /// It does not, and why.
    Failed {
        /// Why.
        message: String,
        /// Whether the same may work later.
        transient: bool,
    },
}

/// Starts the daemon apart from this terminal, and waits for what it has to say.
pub async fn spawn_detached(home: &AgentHome) -> io::Result<Report> {
    files::make_folder(home.folder()).map_err(io::Error::other)?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(home.log_file())?;
    let mut child = std::process::Command::new(std::env::current_exe()?)
        .args(["run", "--detached", "--agent", home.id().as_str()])
        .current_dir(home.folder())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(log)
        .spawn()?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let said = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        stdout
            .take(64 * 1024)
            .read_to_string(&mut said)
            .map(|_| said)
    });
    let said = said.await.map_err(io::Error::other)??;
    serde_json::from_str(said.trim()).map_err(|_| {
        let log = home.log_file();
        io::Error::other(format!("it ended at once; {} may say why", log.display()))
    })
}

/// Leaves the terminal this process was started from.
pub fn detach() {
    // It fails only where there is no terminal to leave.
    let _ = rustix::process::setsid();
}

/// Tells whoever started this process, once, and closes the way it was told.
pub fn report(report: &Report) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, report)?;
    stdout.flush()?;
    let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nowhere)?;
    Ok(())
}
