//! `starchild up`, `down`, `ps` and `init`: a team from one file.

mod init;
mod screen;

pub use init::{InitArgs, init};

use super::{
    failure::Failure,
    show::{self, Spinner, Table},
};
use crate::{
    daemon::{process, signals},
    home::files,
    up::{
        UpError,
        project::Project,
        team::{Status, Team},
    },
};
use clap::Args;
use runtime::Shutdown;
use screen::Screen;
use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

/// How long a team may take to be up, or down.
const WITHIN: Duration = Duration::from_secs(120);
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// Which team.
#[derive(Args)]
pub struct TeamArg {
    /// A folder with a starchild.yaml, or the file itself; otherwise this folder.
    #[arg(value_name = "FOLDER|FILE", default_value = ".")]
    path: PathBuf,
}

/// What `up` takes.
#[derive(Args)]
pub struct UpArgs {
    #[command(flatten)]
    team: TeamArg,
    /// Come back once everything runs; starchild down ends it.
    #[arg(long, short)]
    detach: bool,
    /// Set by `up -d` itself.
    #[arg(long, hide = true, conflicts_with = "detach")]
    detached: bool,
}

/// What `ps` takes.
#[derive(Args)]
pub struct PsArgs {
    #[command(flatten)]
    team: TeamArg,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl From<UpError> for Failure {
    fn from(error: UpError) -> Self {
        match error {
            UpError::Client(error) => error.into(),
            error => Self::permanent(error.to_string()),
        }
    }
}

/// Takes a team up.
pub async fn up(args: UpArgs) -> Result<(), Failure> {
    let project = Project::find(&args.team.path)?;
    if args.detach {
        return start_detached(&project, &args.team.path).await;
    }
    if args.detached {
        process::detach();
    }
    let shutdown = Shutdown::default();
    tokio::select! {
        done = run(project, &shutdown) => done,
        failed = signals::forward_signals(&shutdown) => Ok(failed?),
    }
}

async fn run(project: Project, shutdown: &Shutdown) -> Result<(), Failure> {
    let mut screen = Screen::new();
    let starting = Team::start(project.clone(), |news| show::note(&news));
    let mut team = tokio::select! {
        team = starting => team?,
        // What was started is dropped, and so ended.
        () = shutdown.begun() => return Ok(()),
    };
    let links = match team.sign_in_links().await {
        Ok(links) => links,
        Err(error) => {
            team.end(shutdown).await;
            return Err(error.into());
        }
    };
    screen.heading(&team.server.url, &links);
    team.write_status();
    while !shutdown.has_begun() {
        screen.draw(&team.board, &team.states());
        tokio::select! {
            news = team.tick() => screen.tell(news),
            () = shutdown.begun() => {}
        }
    }
    screen.tell(vec![
        "taking the team down, after what is in hand; Ctrl-C again does not wait".into(),
    ]);
    team.end(shutdown).await;
    show::note("The team is down.");
    Ok(())
}

async fn start_detached(project: &Project, named: &Path) -> Result<(), Failure> {
    if let Some(pid) = process::running_of(&project.pid_file()) {
        let pid = pid.as_raw_nonzero();
        show::note(&format!("The team is up already, as process {pid}."));
        return Ok(());
    }
    // What the file gets wrong is said here, and not in a log.
    crate::up::file::TeamFile::load(project.file())?;
    project.prepare()?;
    let _ = files::remove(&project.status_file());
    let path = project.logs().join("up.log");
    let _ = files::remove(&path);
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)?;
    let mut child = std::process::Command::new(std::env::current_exe()?)
        .args(["up", "--detached"])
        .arg(project.file())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    let spinner = Spinner::new("starting");
    let begun = Instant::now();
    loop {
        tokio::time::sleep(CHECK_EVERY).await;
        let status: Option<Status> = files::read_json(&project.status_file()).ok().flatten();
        if status.is_some_and(|status| status.ready) {
            drop(spinner);
            // It holds the links with which people sign in.
            show::print(&std::fs::read_to_string(&path)?)?;
            let named = match named.to_str() {
                Some(".") => String::new(),
                _ => format!(" {}", named.display()),
            };
            show::next(&format!("starchild ps{named}, or starchild down{named}"));
            return Ok(());
        }
        let ended = child.try_wait()?.is_some();
        if ended || begun.elapsed() > WITHIN {
            drop(spinner);
            let said = std::fs::read_to_string(&path).unwrap_or_default();
            let said = said.trim().trim_start_matches("starchild: ");
            return Err(Failure::permanent(format!("the team is not up: {said}")));
        }
    }
}

/// Takes a team down.
pub async fn down(team: TeamArg) -> Result<(), Failure> {
    let project = Project::find(&team.path)?;
    let path = project.pid_file();
    let Some(pid) = process::running_of(&path) else {
        show::note("The team is not up.");
        return Ok(());
    };
    let spinner = Spinner::new("finishing what is in hand");
    process::terminate(pid)?;
    let ended = process::wait_for_exit_of(&path, WITHIN).await;
    drop(spinner);
    match ended {
        true => {
            show::note("The team is down.");
            Ok(())
        }
        false => Err(Failure::transient(
            "the team is still up; try again in a moment",
        )),
    }
}

/// Says what runs.
pub fn ps(args: &PsArgs) -> Result<(), Failure> {
    let project = Project::find(&args.team.path)?;
    let status = match process::running_of(&project.pid_file()) {
        Some(_) => files::read_json(&project.status_file())?.unwrap_or_default(),
        None => Status::default(),
    };
    if args.json {
        return Ok(show::json(&status)?);
    }
    let rows = status.programs.into_iter().map(|(name, state)| {
        let running = if state.pid.is_some() {
            "running"
        } else {
            "starting again"
        };
        let pid = state.pid.map_or("-".into(), |pid| pid.to_string());
        [
            name,
            running.to_owned(),
            pid,
            state.restarts.to_string(),
            state.last_end.unwrap_or_default(),
        ]
    });
    let table = Table {
        columns: ["NAME", "STATE", "PID", "RESTARTS", "LAST END"],
        rows: rows.collect(),
        empty: "The team is not up. Take it up: starchild up",
    };
    Ok(table.show()?)
}
