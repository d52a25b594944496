//! The servers that tests talk to: private ones on free ports, gone when the tests are over.

use crate::{
    packages::find,
    run::{command, is_root, run},
};
use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

const START_WITHIN: Duration = Duration::from_secs(60);
/// What PostgreSQL and the servers under test take while the tests run, with room to spare.
const SCRATCH_KILOBYTES: u64 = 2 * 1024 * 1024;

/// Tests share one server with little memory, and nothing that it holds has to last.
const POSTGRES_SETTINGS: [&str; 11] = [
    "listen_addresses=127.0.0.1",
    "max_connections=400",
    "shared_buffers=64MB",
    "max_wal_size=128MB",
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",
    "jit=off",
    // In its folder, which goes when it is killed.
    "dynamic_shared_memory_type=mmap",
];

/// A server that runs as long as this lives.
pub struct Service {
    /// Where tests reach it.
    pub url: String,
    child: Child,
    folder: PathBuf,
}

impl Drop for Service {
    fn drop(&mut self) {
        // Their data is thrown away, so there is no need to ask politely.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Starts PostgreSQL. Nothing it holds has to last, so it does not wait for the disk.
pub fn postgres() -> Result<Service, String> {
    let folder = scratch(&memory_or_disk(), "postgres")?;
    let data = folder.join("data");
    if is_root() {
        // PostgreSQL does not run as root.
        run(command("chown").arg("postgres").arg(&folder))?;
    }
    let port = free_port()?;
    run(unprivileged(&program("initdb")?)
        .args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--no-sync",
            "-D",
        ])
        .arg(&data)
        .stdout(Stdio::null()))?;
    let child = unprivileged(&program("postgres")?)
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.to_string()])
        .args(POSTGRES_SETTINGS.iter().flat_map(|set| ["-c", set]))
        .arg("-c")
        .arg(format!("unix_socket_directories={}", folder.display()))
        // Once, and not again in the process of each connection.
        .env("LD_BIND_NOW", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start PostgreSQL: {error}"))?;
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    wait_for_port(Service { url, child, folder }, port)
}

/// Starts NATS.
pub fn nats() -> Result<Service, String> {
    let folder = scratch(&std::env::temp_dir(), "nats")?;
    let port = free_port()?;
    let child = Command::new(program("nats-server")?)
        .args(["-a", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start nats-server: {error}"))?;
    let url = format!("nats://127.0.0.1:{port}");
    wait_for_port(Service { url, child, folder }, port)
}

fn program(name: &str) -> Result<PathBuf, String> {
    find(name).ok_or_else(|| format!("there is no {name} on this machine"))
}

/// The program as it is, or as the postgres user where this runs as root.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    // `setpriv` becomes the program, so that killing the one ends the other.
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(program);
    command.current_dir("/");
    command
}

/// Where files go that nothing has to outlast: each test makes some and drops them again, for which
/// disks' file systems take processor time, memory's next to none.
pub fn memory_or_disk() -> PathBuf {
    let memory = Path::new("/dev/shm");
    match free_kilobytes(memory) {
        Some(free) if free > SCRATCH_KILOBYTES => memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}

fn free_kilobytes(folder: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(folder).output().ok()?;
    let output = String::from_utf8(output.stdout).ok()?;
    output
        .lines()
        .nth(1)?
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()
}

/// An empty folder of this run's own.
pub fn scratch(parent: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = parent.join(format!("sc-test-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    Ok(folder)
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener
        .local_addr()
        .map(|address| address.port())
        .map_err(|error| error.to_string())
}

fn wait_for_port(mut service: Service, port: u16) -> Result<Service, String> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let deadline = Instant::now() + START_WITHIN;
    while TcpStream::connect(address).is_err() {
        if let Ok(Some(status)) = service.child.try_wait() {
            return Err(format!("{} ended at once: {status}", service.url));
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{} did not start within {START_WITHIN:?}",
                service.url
            ));
        }
        sleep(Duration::from_millis(50));
    }
    Ok(service)
}
