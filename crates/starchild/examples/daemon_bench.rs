//! Measures the daemon: how long a message takes from its 201 to the handler's first byte, beside
//! what starting the same script costs, and what an idle daemon in 20 rooms uses.
//!
//! `cargo build --release -p chatroom -p starchild`, then
//! `cargo run --release -p starchild --example daemon_bench`

use client::{Client, PostMessage, protocol::RoomId};
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const MESSAGES: usize = 300;
const ROOMS: usize = 20;
const IDLE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(60);

/// Writes down when its first byte came, and for which message.
const SCRIPT: &str = "#!/bin/bash
IFS= read -rn1 first
now=$EPOCHREALTIME
IFS= read -r rest
seq=${rest#*'\"seq\":'}
echo \"${seq%%,*} $now\" >> \"$TIMES\"
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let bench = Bench::start().await?;
    let room = bench.join().await?;
    let mut daemon = bench.daemon()?;
    let through = bench.through_the_daemon(&room).await?;
    let bare = bench.bare().await?;
    println!("{MESSAGES} messages, milliseconds        p50     p99");
    for (what, times) in [
        ("starting the script by itself", &bare),
        ("from 201 through the daemon", &through),
    ] {
        let (p50, p99) = (quantile(times, 0.5), quantile(times, 0.99));
        println!("{what:32} {p50:7.2} {p99:7.2}");
    }
    let above = quantile(&through, 0.5) - quantile(&bare, 0.5);
    println!("the daemon's part, p50           {above:7.2}");

    for _ in 1..ROOMS {
        bench.join().await?;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = processor_ticks(daemon.id())?;
    tokio::time::sleep(IDLE).await;
    let ticks = processor_ticks(daemon.id())? - before;
    let resident = resident_kilobytes(daemon.id())?;
    println!(
        "idle in {ROOMS} rooms: {:.1} MB resident, {ticks} clock ticks of processor time in {IDLE:?}",
        resident as f64 / 1024.0
    );
    daemon.kill()?;
    daemon.wait()?;
    Ok(())
}

/// A server, Alice, and an agent's home.
struct Bench {
    folder: tempfile::TempDir,
    programs: PathBuf,
    server: Child,
    url: String,
    alice: Client,
}

impl Bench {
    async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let example = std::env::current_exe()?;
        let programs = example.ancestors().nth(2).ok_or("no folder")?.to_owned();
        let data = folder.path().join("data");
        let mut server = Command::new(programs.join("sc-chatroom"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .env("SC_CHATROOM__LIMITS__AGENT_COOLDOWN_SECONDS", "0")
            .env("SC_CHATROOM__LIMITS__AGENT_EXCHANGES_WITHOUT_PERSON", "0")
            .env("SC_CHATROOM__LIMITS__AGENT_MESSAGES_PER_MINUTE", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let stdout = server.stdout.take().ok_or("no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let url = line
            .trim()
            .trim_start_matches("Open ")
            .trim_end_matches('/')
            .to_owned();
        let token = Command::new(programs.join("sc-chatroom"))
            .args(["token", "--user", "u_alice", "--data"])
            .arg(&data)
            .output()?;
        let alice = Client::new(&url)?.with_token(String::from_utf8(token.stdout)?.trim())?;
        let script = folder.path().join("handler.sh");
        fs::write(&script, SCRIPT)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        let bench = Self {
            folder,
            programs,
            server,
            url,
            alice,
        };
        let add = [
            "byoa",
            "add",
            "--prefix",
            "bench_agent",
            "--backend",
            "handler",
        ];
        let status = bench
            .starchild(&add)
            .args(["--handler-path", "handler.sh", "--server", &bench.url])
            .status()?;
        status.success().then_some(()).ok_or("byoa add failed")?;
        Ok(bench)
    }

    fn starchild(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join("starchild"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("STARCHILD_HOME", self.folder.path().join("home"))
            .env("TIMES", self.times_file())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn times_file(&self) -> PathBuf {
        self.folder.path().join("times")
    }

    async fn join(&self) -> Result<RoomId> {
        let room = self.alice.create_room("bench", None).await?.room_id;
        let invite = self.alice.create_invite(&room, &Default::default()).await?;
        let status = self
            .starchild(&["room", "join", &invite.short_code])
            .status()?;
        status.success().then_some(()).ok_or("room join failed")?;
        Ok(room)
    }

    fn daemon(&self) -> Result<Child> {
        Ok(self.starchild(&["run", "--foreground"]).spawn()?)
    }

    async fn through_the_daemon(&self, room: &RoomId) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for n in 0..MESSAGES {
            let message = PostMessage {
                content: format!("message {n}"),
                ..Default::default()
            };
            let posted = self.alice.post_message(room, &message, None).await?;
            let answered = now();
            let began = self.handler_began(posted.seq).await?;
            times.push((began - answered) * 1000.0);
        }
        // The first comes while the daemon still starts.
        times.remove(0);
        Ok(times)
    }

    async fn bare(&self) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for n in 0..MESSAGES {
            let seq = -1 - n as i64;
            let started = now();
            let mut child = Command::new(self.folder.path().join("handler.sh"))
                .env("TIMES", self.times_file())
                .stdin(Stdio::piped())
                .spawn()?;
            let mut stdin = child.stdin.take().ok_or("no input")?;
            stdin
                .write_all(format!("{{\"room_id\":\"rm_x\",\"seq\":{seq},\"x\":0}}").as_bytes())?;
            drop(stdin);
            child.wait()?;
            times.push((self.handler_began(seq).await? - started) * 1000.0);
        }
        Ok(times)
    }

    /// When the script that was run for this message had its first byte, in unix seconds.
    async fn handler_began(&self, seq: i64) -> Result<f64> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < TIMEOUT {
            let times = read_times(&self.times_file());
            if let Some(time) = times.get(&seq) {
                return Ok(*time);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err(format!("no handler was run for {seq}").into())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn read_times(path: &Path) -> HashMap<i64, f64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let (seq, time) = line.split_once(' ')?;
        Some((seq.parse().ok()?, time.parse().ok()?))
    });
    lines.collect()
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

fn quantile(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (share * (sorted.len() - 1) as f64).round() as usize;
    sorted[at]
}

fn processor_ticks(pid: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in /proc")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    Ok(ticks
        .map(str::parse::<u64>)
        .sum::<std::result::Result<_, _>>()?)
}

fn resident_kilobytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    Ok(kilobytes.ok_or("no VmRSS in /proc")?.trim().parse()?)
}
