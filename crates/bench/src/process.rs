//! The programs under measurement: started on free ports of this machine, stopped when let go.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::Result;
use crate::http::{Connection, request};

/// How long a program may take until it answers.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running program; dropping it kills it.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program that writes what it says to `log`.
    pub fn start(command: &mut Command, log: PathBuf) -> Result<Self> {
        let output = File::create(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
        Ok(Self { child, log })
    }

    /// Waits until `/health` answers 200.
    pub async fn healthy(&mut self, address: SocketAddr) -> Result<()> {
        let health = request("GET", "/health", None, None);
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if let Ok(mut connection) = Connection::open(address).await
                && let Ok(answer) = connection.send(&health).await
                && answer.status == 200
            {
                return Ok(());
            }
            self.still_runs()?;
            sleep(Duration::from_millis(1)).await;
        }
        Err(format!("no answer from {address}/health; {}", self.last_words()).into())
    }

    /// Waits until something listens.
    pub async fn listening(&mut self, address: SocketAddr) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if Connection::open(address).await.is_ok() {
                return Ok(());
            }
            self.still_runs()?;
            sleep(Duration::from_millis(10)).await;
        }
        Err(format!("nothing listens on {address}; {}", self.last_words()).into())
    }

    /// The memory the program has in use now, in bytes.
    pub fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes: u64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|line| line.trim().strip_suffix("kB"))
            .ok_or("no VmRSS in /proc")?
            .trim()
            .parse()?;
        Ok(kilobytes * 1024)
    }

    /// The time the program has spent on the processors, in seconds.
    pub fn processor_time(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name, in parentheses, may hold spaces; user and system time are 12th and 13th after.
        let (_, fields) = stat.rsplit_once(')').ok_or("no name in /proc")?;
        let mut ticks = 0_u64;
        for field in fields.split_whitespace().skip(11).take(2) {
            ticks += field.parse::<u64>()?;
        }
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Asks the program to end and waits until it has.
    pub fn terminate(mut self) -> Result<()> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }

    fn still_runs(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                Err(format!("the program ended with {status}; {}", self.last_words()).into())
            }
        }
    }

    fn last_words(&self) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = said.lines().rev().take(10).collect();
        let lines: Vec<_> = lines.into_iter().rev().collect();
        format!("it said last:\n{}", lines.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Either fails only for a program that has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address on this machine that nobody uses.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// The folder this program was built into, where its neighbours are and which is on a real disk,
/// as a folder for temporary files may not be.
pub fn build_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().ok_or("a program without a folder")?;
    Ok(folder.to_owned())
}

/// Where a command is: as the environment variable says, or on the path, or where Debian puts
/// servers.
pub fn find_command(name: &str, variable: &str) -> Result<PathBuf> {
    if let Some(file) = std::env::var_os(variable) {
        return Ok(file.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} is not installed; Debian has it as a package").into())
}

/// A command for a program with its arguments.
pub fn command<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
