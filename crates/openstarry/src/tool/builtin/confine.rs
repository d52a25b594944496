//! Keeps a program inside the folders it may use, where Linux has Landlock.

use std::io;
use std::path::{Path, PathBuf};
use tokio::process::{Child, Command};

/// What programs, their libraries and their settings are read from.
const SYSTEM: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys",
    "/var/lib",
    // Of all devices these: root could read whole disks.
    "/dev/random",
    "/dev/urandom",
];
/// Of the home folder, what tools of programmers are kept in, and no secrets.
const HOME: [&str; 11] = [
    ".gitconfig",
    ".config/git/config",
    ".cargo/bin",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/config.toml",
    ".rustup",
    ".nvm",
    ".pyenv",
    ".local/bin",
    ".local/lib",
];
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

/// The folders that a program may use.
#[derive(Clone, Debug)]
pub(crate) struct Confinement {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

impl Confinement {
    /// The system to read, the workspace to write, and what else is granted.
    pub(crate) fn new(workspace: &Path, read: &[PathBuf], write: &[PathBuf]) -> Self {
        let home = std::env::home_dir();
        let in_home = |path: &Path| match (path.strip_prefix("~"), &home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        };
        let mut reads: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        if let Some(home) = &home {
            reads.extend(HOME.iter().map(|name| home.join(name)));
        }
        if let Some(path) = std::env::var_os("PATH") {
            reads.extend(std::env::split_paths(&path).filter(|folder| folder.is_absolute()));
        }
        reads.extend(read.iter().map(|path| in_home(path)));
        let mut writes: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        writes.push(workspace.to_owned());
        writes.extend(write.iter().map(|path| in_home(path)));
        Self {
            read: reads,
            write: writes,
        }
    }

    /// One more folder to write to.
    pub(crate) fn with_write(mut self, folder: &Path) -> Self {
        self.write.push(folder.to_owned());
        self
    }

    /// Starts a program that can use nothing else. What holds for a thread holds
    /// for all it starts, so that the thread is one of its own.
    pub(crate) async fn spawn(self, mut command: Command) -> io::Result<Child> {
        let runtime = tokio::runtime::Handle::current();
        let (tell, told) = tokio::sync::oneshot::channel();
        std::thread::Builder::new()
            .name("confine".into())
            .spawn(move || {
                let _in_runtime = runtime.enter();
                let started = self.enter().and_then(|()| command.spawn());
                // A program that nobody waits for any more is killed with it.
                let _ = tell.send(started);
            })?;
        told.await.map_err(io::Error::other)?
    }

    #[cfg(target_os = "linux")]
    fn enter(&self) -> io::Result<()> {
        linux::drop_capabilities();
        linux::restrict(&self.read, &self.write)
            .map(|_| ())
            .map_err(io::Error::other)
    }

    #[cfg(not(target_os = "linux"))]
    fn enter(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether this system can confine programs.
pub(crate) fn is_available() -> bool {
    #[cfg(target_os = "linux")]
    {
        static AVAILABLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *AVAILABLE.get_or_init(|| {
            // The thread that tries it is confined for good.
            let tried = std::thread::spawn(|| linux::restrict(&[], &[]));
            matches!(tried.join(), Ok(Ok(true)))
        })
    }
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use landlock::{
        ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
        RulesetStatus, Scope, path_beneath_rules,
    };
    use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
    use std::path::PathBuf;

    /// The newest rules that are asked for; an older kernel keeps those it knows.
    const ABI_WANTED: ABI = ABI::V6;

    /// What root can look into other processes with, past Landlock.
    const INSPECTING_CAPABILITIES: [CapabilitySet; 3] = [
        CapabilitySet::PERFMON,
        CapabilitySet::SYS_PTRACE,
        CapabilitySet::SYS_ADMIN,
    ];

    /// Landlock keeps a program from looking into processes that are not confined with it, so that
    /// our keys are safe in our environment; but not from root. So a program of root's is started
    /// without the rights to do so.
    pub(super) fn drop_capabilities() {
        for right in INSPECTING_CAPABILITIES {
            // Who is not root has none of them to lose.
            let _ = remove_capability_from_bounding_set(right);
        }
    }

    /// Confines this thread, and tells whether the kernel does so.
    pub(super) fn restrict(read: &[PathBuf], write: &[PathBuf]) -> Result<bool, RulesetError> {
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(ABI_WANTED))?
            .scope(Scope::from_all(ABI_WANTED))?
            .create()?
            .add_rules(path_beneath_rules(read, AccessFs::from_read(ABI_WANTED)))?
            .add_rules(path_beneath_rules(write, AccessFs::from_all(ABI_WANTED)))?
            .restrict_self()?;
        Ok(status.ruleset != RulesetStatus::NotEnforced)
    }
}
