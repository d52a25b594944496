//! `organism guard`: stands between the pump and a command. It bounds what the
//! command may use and write, and ends all that it has started when it ends, also
//! what has left its process group or its parents behind.

use clap::Args;
use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper, waitpid,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

/// What a command may use.
#[derive(Args)]
pub struct GuardArguments {
    /// Memory of each process, in KiB.
    #[arg(long)]
    memory_kib: u64,
    /// Seconds of processor time of each process.
    #[arg(long)]
    cpu_seconds: u64,
    /// A folder it may write to.
    #[arg(long)]
    write: Vec<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The kernel's rules on files that are asked for.
const RULES: ABI = ABI::V3;

/// How often the guard looks whether its organism is still there.
const LOOK: Duration = Duration::from_millis(500);

/// Runs the command to its end, or until this process is told to stop.
pub async fn run(arguments: GuardArguments) -> ExitCode {
    match guard(&arguments).await {
        Ok(status) => ExitCode::from(status.map_or(143, code)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(126)
        }
    }
}

/// Whether the kernel can keep a command from writing where it should not.
pub fn can_confine() -> bool {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1));
    ruleset.and_then(Ruleset::create).is_ok()
}

async fn guard(arguments: &GuardArguments) -> Result<Option<ExitStatus>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let parent = getppid();
    let mut stop = signal(SignalKind::terminate()).map_err(|error| text(&error))?;
    // Whoever loses its parent below becomes a child of this process.
    set_child_subreaper(Some(getpid())).map_err(|error| text(&error))?;
    let mut child = start(arguments)?;
    let status = tokio::select! {
        status = child.wait() => Some(status.map_err(|error| text(&error))?),
        _ = stop.recv() => None,
        () = orphaned(parent) => None,
    };
    end_children();
    Ok(status)
}

/// Waits until whoever started this process is gone.
async fn orphaned(parent: Option<Pid>) {
    while getppid() == parent {
        tokio::time::sleep(LOOK).await;
    }
}

/// Starts the command under its limits, from a thread of its own: the kernel's
/// rules are that thread's and what it starts. This one is outside, where the
/// command cannot send it a signal.
fn start(arguments: &GuardArguments) -> Result<Child, String> {
    let runtime = Handle::current();
    std::thread::scope(|scope| {
        let started = scope.spawn(|| {
            let _entered = runtime.enter();
            start_confined(arguments)
        });
        started.join().map_err(|_| "it could not be started")?
    })
}

fn start_confined(arguments: &GuardArguments) -> Result<Child, String> {
    let GuardArguments {
        memory_kib,
        cpu_seconds,
        write,
        command,
    } = arguments;
    drop_capabilities();
    confine(write).map_err(|error| format!("the kernel's rules: {error}"))?;
    // The limits are set by the process that becomes the command.
    let spawned = Command::new("/bin/sh")
        .args(["-c", LIMITED, "sh"])
        .args([memory_kib.to_string(), cpu_seconds.to_string()])
        .args(command)
        .spawn();
    spawned.map_err(|error| format!("/bin/sh: {error}"))
}

const LIMITED: &str = r#"ulimit -v "$1" && ulimit -t "$2" && shift 2 && exec "$@""#;

/// As root a command could read the environment and the memory of the organism, whatever
/// the kernel's rules say.
fn drop_capabilities() {
    for capability in [
        CapabilitySet::SYS_PTRACE,
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::PERFMON,
    ] {
        // Who is not root has none, and may not drop any.
        let _ = remove_capability_from_bounding_set(capability);
    }
}

/// Reading is free, writing is for these folders and signals for its own processes,
/// as far as the kernel's Landlock goes.
fn confine(write: &[PathBuf]) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(RULES))?
        .scope(Scope::Signal)?
        .create()?;
    let devices = ["/dev/null", "/dev/zero", "/dev/tty"].map(Path::new);
    for path in write.iter().map(PathBuf::as_path).chain(devices) {
        if let Ok(file) = PathFd::new(path) {
            let access = match path.is_dir() {
                true => AccessFs::from_write(RULES),
                false => AccessFs::from_write(RULES) & AccessFs::from_file(RULES),
            };
            ruleset = ruleset.add_rule(PathBeneath::new(file, access))?;
        }
    }
    ruleset.restrict_self().map(drop)
}

/// Ends every process that is left below this one.
fn end_children() {
    loop {
        for pid in children() {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        // The children of those that end come next.
        if waitpid(None, WaitOptions::empty()).is_err() {
            return;
        }
    }
}

fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(own))
        .filter_map(Pid::from_raw)
        .collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
