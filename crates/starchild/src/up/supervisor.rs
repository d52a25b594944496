//! Keeps programs running: one that ends is started again, after a backoff that grows while it does
//! not stay up. Programs end with the supervisor, gracefully first.

use runtime::{Backoff, ProcessGroup, Shutdown};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{process::Command, sync::mpsc, task::JoinHandle};

/// Delays between starts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// A program that ran for so long is no longer in trouble.
const STEADY_AFTER: Duration = Duration::from_secs(30);
/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(20);

/// What is to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct SupervisedProgram {
    /// What it is called on the board.
    pub name: String,
    /// The program.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables that it gets besides.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Where its output goes.
    pub log: PathBuf,
}

/// How a program fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramState {
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// How often it was started again.
    pub restarts: u32,
    /// Why it last ended.
    pub last_end: Option<String>,
}

/// All programs of a team.
pub struct TeamSupervisor {
    running: BTreeMap<String, Running>,
    states: Arc<Mutex<BTreeMap<String, ProgramState>>>,
    /// What happens, in words.
    news: mpsc::UnboundedSender<String>,
}

struct Running {
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl TeamSupervisor {
    /// One that runs nothing yet.
    pub fn new(news: mpsc::UnboundedSender<String>) -> Self {
        Self {
            running: BTreeMap::new(),
            states: Arc::default(),
            news,
        }
    }

    /// Keeps a program running from now on.
    pub fn start(&mut self, program: SupervisedProgram) {
        let shutdown = Shutdown::default();
        let supervisor = ProgramSupervisor {
            states: self.states.clone(),
            news: self.news.clone(),
            shutdown: shutdown.clone(),
            program,
        };
        let name = supervisor.program.name.clone();
        let task = tokio::spawn(supervisor.run());
        self.running.insert(name, Running { shutdown, task });
    }

    /// Ends a program, after what it has in hand.
    pub async fn stop(&mut self, name: &str) {
        if let Some(running) = self.running.remove(name) {
            running.shutdown.begin();
            let _ = running.task.await;
        }
        lock(&self.states).remove(name);
    }

    /// Ends them all: the agents together, then the server, which they post to.
    pub async fn stop_all(&mut self, last: &str, forced: &Shutdown) {
        let names: Vec<String> = self
            .running
            .keys()
            .filter(|name| *name != last)
            .cloned()
            .collect();
        for name in &names {
            self.running[name].shutdown.begin();
        }
        for name in names.iter().map(String::as_str).chain([last]) {
            tokio::select! {
                () = self.stop(name) => {}
                // What is dropped is killed.
                () = forced.forced() => self.running.values().for_each(|running| running.shutdown.force()),
            }
        }
    }

    /// How everything fares.
    pub fn states(&self) -> BTreeMap<String, ProgramState> {
        lock(&self.states).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One program.
struct ProgramSupervisor {
    program: SupervisedProgram,
    states: Arc<Mutex<BTreeMap<String, ProgramState>>>,
    news: mpsc::UnboundedSender<String>,
    shutdown: Shutdown,
}

impl ProgramSupervisor {
    async fn run(self) {
        let name = &self.program.name;
        let mut backoff = BACKOFF;
        while !self.shutdown.has_begun() {
            let begun = std::time::Instant::now();
            let end = self.run_once().await;
            if self.shutdown.has_begun() {
                return;
            }
            if begun.elapsed() > STEADY_AFTER {
                backoff.reset();
            }
            let delay = backoff.next_delay();
            let seconds = delay.as_secs_f32();
            let log = self.program.log.display();
            self.tell(format!(
                "{name} ended ({end}); it is started again in {seconds:.1} s. {log} may say why"
            ));
            self.change(|state| {
                state.pid = None;
                state.restarts += 1;
                state.last_end = Some(end);
            });
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.shutdown.begun() => return,
            }
        }
    }

    /// Runs it until it ends, or is asked to; gives how it ended.
    async fn run_once(&self) -> String {
        let (mut child, mut group) = match self.spawn() {
            Ok(started) => started,
            Err(error) => return format!("it cannot be started: {error}"),
        };
        self.change(|state| state.pid = child.id());
        tokio::select! {
            ended = child.wait() => match ended {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
            () = self.shutdown.begun() => {
                tokio::select! {
                    () = group.terminate(&mut child, GRACE) => {}
                    () = self.shutdown.forced() => {}
                }
                "asked to end".into()
            }
        }
    }

    fn spawn(&self) -> std::io::Result<(tokio::process::Child, ProcessGroup)> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.program.log)?;
        let mut command = Command::new(&self.program.command);
        command
            .args(&self.program.args)
            .envs(self.program.env.iter().cloned())
            .current_dir(&self.program.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        ProcessGroup::spawn(&mut command)
    }

    fn tell(&self, news: String) {
        // Nobody listens any more when all ends.
        let _ = self.news.send(news);
    }

    fn change(&self, change: impl FnOnce(&mut ProgramState)) {
        change(
            lock(&self.states)
                .entry(self.program.name.clone())
                .or_default(),
        );
    }
}
