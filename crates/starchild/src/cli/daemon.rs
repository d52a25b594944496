//! `starchild run`, `stop`, `restart`, `status` and `logs`.

use super::{
    byoa,
    failure::Failure,
    room::AgentArg,
    show::{self, Spinner, Table},
};
use crate::{
    backend::config::BackendConfig,
    daemon::{
        Daemon,
        credentials::refresh,
        log,
        process::{self, Report},
    },
    home::{AgentHome, Home, RoomFile},
    terminal::printable,
};
use clap::Args;
use client::Client;
use serde::Serialize;
use std::{
    collections::{BTreeSet, VecDeque},
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, Write},
    os::unix::fs::MetadataExt,
    path::Path,
    time::Duration,
};

/// What the daemon may need to end besides its backend's own time.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(45);
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// How long a server may take to show that it is there.
const REACHED_WITHIN: Duration = Duration::from_secs(3);
/// How much of a log that grows is shown at a time.
const MAX_CHUNK_BYTES: u64 = 1 << 20;

/// What `run` takes.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// Stay in the terminal; Ctrl-C ends it.
    #[arg(long)]
    foreground: bool,
    /// Set by `run` itself when it starts the daemon apart from the terminal.
    #[arg(long, hide = true)]
    detached: bool,
}

/// What `stop` takes.
#[derive(Args)]
pub struct StopArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// Do not wait for the message in hand; it is answered at the next start.
    #[arg(long)]
    now: bool,
}

/// What `logs` takes.
#[derive(Args)]
pub struct LogsArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// Go on as lines come.
    #[arg(long, short)]
    follow: bool,
    /// How many lines to begin with.
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    lines: usize,
}

/// Starts the daemon.
pub async fn run(home: &Home, args: RunArgs) -> Result<(), Failure> {
    let agent = byoa::choose_agent(home, args.agent.id.as_ref())?;
    if args.detached {
        return run_detached(agent).await;
    }
    if args.foreground {
        let daemon = Daemon::prepare(agent, true)?;
        return Ok(daemon.run().await?);
    }
    start(&agent).await
}

/// What runs in the process that `start` made.
async fn run_detached(agent: AgentHome) -> Result<(), Failure> {
    process::detach();
    match Daemon::prepare(agent, false) {
        Ok(daemon) => {
            process::report(&Report::Ready {
                rooms: daemon.rooms(),
            })?;
            Ok(daemon.run().await?)
        }
        Err(error) => {
            let failure = Failure::from(error);
            process::report(&Report::Failed {
                message: failure.to_string(),
                transient: failure.is_transient(),
            })?;
            Ok(())
        }
    }
}

/// Starts the daemon apart from the terminal, unless it runs.
pub async fn start(agent: &AgentHome) -> Result<(), Failure> {
    let id = agent.id();
    if let Some(pid) = process::running(agent) {
        show::note(&format!("{id} runs already, as process {pid}."));
        return Ok(());
    }
    let spinner = Spinner::new("starting");
    let report = process::spawn_detached(agent).await?;
    drop(spinner);
    match report {
        Report::Ready { rooms } => {
            match rooms {
                0 => {
                    show::note(&format!("{id} runs, in no room yet."));
                    for RoomFile { room_id, left, .. } in agent.rooms()? {
                        let why = left.unwrap_or_default();
                        show::note(&format!("It is out of {room_id}: {why}."));
                    }
                    show::next(&format!("starchild room join CODE --agent {id}"));
                }
                n => {
                    let s = if n == 1 { "" } else { "s" };
                    show::note(&format!("{id} runs, in {n} room{s}."));
                    show::next(&format!("starchild logs -f --agent {id}"));
                }
            }
            Ok(())
        }
        Report::Failed { message, transient } if transient => Err(Failure::transient(message)),
        Report::Failed { message, .. } => Err(Failure::permanent(message)),
    }
}

/// Ends the daemon.
pub async fn stop(home: &Home, args: StopArgs) -> Result<(), Failure> {
    let agent = byoa::choose_agent(home, args.agent.id.as_ref())?;
    stop_agent(&agent, args.now).await
}

/// Ends the daemon and starts it anew.
pub async fn restart(home: &Home, args: StopArgs) -> Result<(), Failure> {
    let agent = byoa::choose_agent(home, args.agent.id.as_ref())?;
    stop_agent(&agent, args.now).await?;
    start(&agent).await
}

async fn stop_agent(agent: &AgentHome, now: bool) -> Result<(), Failure> {
    let id = agent.id();
    let Some(pid) = process::running(agent) else {
        show::note(&format!("{id} does not run."));
        return Ok(());
    };
    let spinner = Spinner::new("finishing the message in hand");
    process::terminate(pid)?;
    if now {
        // The second request forces only once the first has begun the shutdown.
        process::wait_for_exit(agent, CHECK_EVERY).await;
        let _ = process::terminate(pid);
    }
    let config = BackendConfig::load(&agent.config_file());
    let deadline = config.map_or(SHUTDOWN_GRACE, |config| config.timeout() + SHUTDOWN_GRACE);
    let ended = process::wait_for_exit(agent, deadline).await;
    drop(spinner);
    if ended {
        show::note(&format!("{id} is stopped."));
        return Ok(());
    }
    Err(
        Failure::transient(format!("{id} still runs, as process {pid}")).with_hint(format!(
            "starchild stop --now --agent {id} does not wait for the message in hand."
        )),
    )
}

#[derive(Serialize)]
struct Status {
    agent: String,
    running: bool,
    pid: Option<i32>,
    rooms: usize,
    left: usize,
    log: String,
    /// Where its rooms are; the server that it is set to, where it is in none.
    servers: Vec<ServerStatus>,
}

#[derive(Serialize)]
struct ServerStatus {
    server: String,
    /// Whether it answers now.
    reached: bool,
}

/// Says which daemons run.
pub async fn status(home: &Home, agent: &AgentArg, as_json: bool) -> Result<(), Failure> {
    let agents = match &agent.id {
        Some(id) => vec![byoa::find_agent(home, id)?],
        None => home.agents()?,
    };
    let mut all: Vec<_> = agents.iter().map(status_of).collect();
    look_for_servers(&mut all).await;
    if as_json {
        return Ok(show::json(&all)?);
    }
    let rows = all.into_iter().map(|status| {
        let state = if status.running { "running" } else { "stopped" };
        let pid = status.pid.map_or("-".into(), |pid| pid.to_string());
        let rooms = status.rooms.to_string();
        let servers = status.servers.iter().map(|one| match one.reached {
            true => format!("{} reached", one.server),
            false => format!("{} not reached", one.server),
        });
        let servers: Vec<String> = servers.collect();
        let servers = servers.join(", ");
        [status.agent, state.into(), pid, rooms, status.log, servers]
    });
    let table = Table {
        columns: ["AGENT", "STATE", "PID", "ROOMS", "LOG", "SERVER"],
        rows: rows.collect(),
        empty: byoa::NO_AGENTS,
    };
    Ok(table.show()?)
}

fn status_of(agent: &AgentHome) -> Status {
    let pid = process::running(agent);
    let rooms = agent.rooms().unwrap_or_default();
    let left = rooms.iter().filter(|room| room.left.is_some()).count();
    Status {
        agent: agent.id().to_string(),
        running: pid.is_some(),
        pid: pid.map(|pid| pid.as_raw_nonzero().get()),
        rooms: refresh::count_rooms(agent),
        left,
        log: agent.log_file().display().to_string(),
        servers: servers_of(agent, &rooms),
    }
}

fn servers_of(agent: &AgentHome, rooms: &[RoomFile]) -> Vec<ServerStatus> {
    let joined = rooms.iter().filter(|room| room.left.is_none());
    let mut servers: BTreeSet<String> = joined.map(|room| room.server.clone()).collect();
    if servers.is_empty() {
        let config = BackendConfig::load(&agent.config_file());
        servers.extend(config.ok().map(|config| config.server));
    }
    let not_asked = |server| ServerStatus {
        server,
        reached: false,
    };
    servers.into_iter().map(not_asked).collect()
}

/// Asks every server once whether it is there, all together.
async fn look_for_servers(all: &mut [Status]) {
    let servers = all.iter().flat_map(|one| &one.servers);
    let servers: BTreeSet<String> = servers.map(|one| one.server.clone()).collect();
    let reached = servers.into_iter().map(async |server| {
        let client = Client::new(&server).ok()?;
        let health = tokio::time::timeout(REACHED_WITHIN, client.health()).await;
        matches!(health, Ok(Ok(_))).then_some(server)
    });
    let reached = futures_util::future::join_all(reached).await;
    let reached: BTreeSet<String> = reached.into_iter().flatten().collect();
    for one in all.iter_mut().flat_map(|one| &mut one.servers) {
        one.reached = reached.contains(&one.server);
    }
}

/// Shows the daemon's log.
pub async fn logs(home: &Home, args: LogsArgs) -> Result<(), Failure> {
    let agent = byoa::choose_agent(home, args.agent.id.as_ref())?;
    let path = agent.log_file();
    if !path.exists() && !args.follow {
        let id = agent.id();
        return Err(Failure::permanent(format!("{id} has no log yet"))
            .with_hint(format!("It begins with: starchild run --agent {id}")));
    }
    match print_log(&path, &args).await {
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

async fn print_log(path: &Path, args: &LogsArgs) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut at = print_last(path, args.lines, &mut out)?;
    if !args.follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(CHECK_EVERY).await;
        at = print_new(path, at, &mut out)?;
    }
}

/// Where a log was read up to, and which file it was.
struct LogPosition {
    inode: u64,
    bytes: u64,
}

fn print_last(path: &Path, lines: usize, out: &mut impl Write) -> io::Result<Option<LogPosition>> {
    let mut last = VecDeque::new();
    let mut at = None;
    for path in [&log::older(path), path] {
        let Ok(file) = File::open(path) else { continue };
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            last.push_back(std::mem::take(&mut line));
            if last.len() > lines {
                last.pop_front();
            }
        }
        at = Some(LogPosition {
            bytes: reader.stream_position()?,
            inode: reader.get_ref().metadata()?.ino(),
        });
    }
    print_lines(&Vec::from(last).concat(), out)?;
    Ok(at)
}

fn print_new(
    path: &Path,
    at: Option<LogPosition>,
    out: &mut impl Write,
) -> io::Result<Option<LogPosition>> {
    let Ok(mut file) = File::open(path) else {
        return Ok(at);
    };
    let inode = file.metadata()?.ino();
    // A file that was begun anew is read from its beginning.
    let from = at.filter(|at| at.inode == inode).map_or(0, |at| at.bytes);
    file.seek(io::SeekFrom::Start(from))?;
    let mut new = Vec::new();
    file.take(MAX_CHUNK_BYTES).read_to_end(&mut new)?;
    print_lines(&new, out)?;
    Ok(Some(LogPosition {
        inode,
        bytes: from + new.len() as u64,
    }))
}

/// Programs other than the daemon may have written to the log, and old daemons wrote what they heard.
fn print_lines(lines: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(printable(&String::from_utf8_lossy(lines)).as_bytes())?;
    out.flush()
}
