//! A team that is up: everything its file names, kept running, and changed when the file changes.

use super::{
    UpError,
    agents::{self, RunningAgent},
    board::{self, SharedBoard},
    file::TeamFile,
    project::Project,
    rooms,
    server::RoomServer,
    supervisor::{ProgramState, TeamSupervisor},
};
use crate::{
    daemon::process::{self, LockError, PidLock},
    home::files,
};
use client::Client;
use runtime::Shutdown;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant, SystemTime},
};
use tokio::{sync::mpsc, task::JoinSet};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The owner's token is replaced in half of its life.
const TOKEN_EVERY: Duration = Duration::from_secs(6 * 3600);
/// How long what a killed `up` left running may take to end.
const ORPHANS_WITHIN: Duration = Duration::from_secs(30);
const SERVER: &str = "server";

/// What runs, for `starchild ps`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Where the rooms are.
    pub url: String,
    /// Whether everything was started.
    pub ready: bool,
    /// The rooms' ids by name.
    pub rooms: BTreeMap<String, String>,
    /// The programs by name.
    pub programs: BTreeMap<String, ProgramState>,
}

/// A team that is up.
pub struct Team {
    project: Project,
    /// Where the rooms are.
    pub server: RoomServer,
    file: TeamFile,
    seen: Option<SystemTime>,
    owner: Client,
    signed_at: Instant,
    agents: BTreeMap<String, RunningAgent>,
    supervisor: TeamSupervisor,
    news: mpsc::UnboundedReceiver<String>,
    /// Who is where and what they say.
    pub board: SharedBoard,
    followers: JoinSet<()>,
    written: Status,
    _lock: PidLock,
}

impl Team {
    /// Takes a team up. Whatever fails, what was started is ended again.
    pub async fn start(project: Project, mut told: impl FnMut(String)) -> Result<Self, UpError> {
        let file = TeamFile::load(project.file())?;
        project.prepare()?;
        let lock = PidLock::acquire_file(&project.pid_file());
        let lock = lock.map_err(|error| {
            UpError::Failed(match error {
                LockError::Running(pid) => {
                    format!("the team is up already, as process {pid}; starchild down ends it")
                }
                error => error.to_string(),
            })
        })?;
        end_orphans(&project, &mut told).await?;
        let server = RoomServer::find(&file)?;
        let (news_sender, news) = mpsc::unbounded_channel();
        let mut supervisor = TeamSupervisor::new(news_sender);
        if let Some(program) = server.program(&file, &project) {
            refuse_taken(file.server.listen)?;
            supervisor.start(program);
        }
        let started = async {
            tokio::select! {
                ready = server.ready() => ready?,
                () = first_failure(&supervisor) => {
                    let log = project.logs().join("server.log");
                    return Err(UpError::Failed(format!(
                        "the server does not start; {} says why", log.display()
                    )));
                }
            }
            server.owner(&file, &project).await
        };
        let owner = match started.await {
            Ok(owner) => owner,
            Err(error) => {
                supervisor.stop(SERVER).await;
                return Err(error);
            }
        };
        let mut team = Self {
            seen: modified(&project),
            project,
            server,
            owner,
            signed_at: Instant::now(),
            agents: BTreeMap::new(),
            supervisor,
            news,
            board: SharedBoard::default(),
            followers: JoinSet::new(),
            written: Status::default(),
            file: TeamFile {
                agents: BTreeMap::new(),
                organisms: BTreeMap::new(),
                ..file.clone()
            },
            _lock: lock,
        };
        if let Err(error) = team.apply(file, &mut told).await {
            team.end(&Shutdown::default()).await;
            return Err(error);
        }
        Ok(team)
    }

    /// The links with which people sign in.
    pub async fn sign_in_links(&self) -> Result<Vec<(String, String)>, UpError> {
        self.server.sign_in_links(&self.file, &self.project).await
    }

    /// How everything fares.
    pub fn states(&self) -> BTreeMap<String, ProgramState> {
        self.supervisor.states()
    }

    /// Looks after the team once, and gives what happened.
    pub async fn tick(&mut self) -> Vec<String> {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut told = Vec::new();
        while let Ok(news) = self.news.try_recv() {
            told.push(news);
        }
        if self.signed_at.elapsed() > TOKEN_EVERY {
            match self.server.owner(&self.file, &self.project).await {
                Ok(owner) => {
                    self.owner = owner;
                    self.signed_at = Instant::now();
                    self.follow_rooms();
                }
                Err(error) => told.push(format!("the owner's token is not renewed: {error}")),
            }
        }
        let seen = modified(&self.project);
        let plans_changed = self.has_changed_plans();
        if seen != self.seen || plans_changed {
            self.seen = seen;
            match TeamFile::load(self.project.file()) {
                Ok(file) if file == self.file && !plans_changed => {}
                Ok(file) => {
                    told.push("the file has changed".into());
                    if let Err(error) = self.apply(file, &mut |news| told.push(news)).await {
                        told.push(format!("not all of the change is done: {error}"));
                    }
                }
                Err(error) => told.push(format!("{error}; the team goes on as it was")),
            }
        }
        self.write_status();
        if let Err(error) = self.project.rotate_logs() {
            tracing::debug!(%error, "the logs are not looked after");
        }
        told
    }

    fn has_changed_plans(&self) -> bool {
        self.agents
            .values()
            .any(|agent| !agent.is_still(&agent.plan))
    }

    /// Makes the team what the file says. What is the same goes on undisturbed.
    async fn apply(
        &mut self,
        file: TeamFile,
        told: &mut impl FnMut(String),
    ) -> Result<(), UpError> {
        let text = std::fs::read_to_string(self.project.file())?;
        let plans = file.plans(&text, self.project.folder());
        let plans = plans.map_err(UpError::File)?;
        if file.server != self.file.server {
            told("what the file says of the server holds from the next starchild up on".into());
        }
        let mut provisioned = self.project.provisioned()?;
        rooms::reconcile(&self.owner, &file.rooms, &mut provisioned, &mut *told).await?;
        self.project.save_provisioned(&provisioned)?;
        for person in file.people.iter().skip(1) {
            let Some(client) = self.server.person(&self.project, person).await? else {
                break;
            };
            for room in rooms::admit(&self.owner, &client, &provisioned).await? {
                told(format!("{person} is in {room}"));
            }
        }
        for (key, id) in provisioned.agents.clone() {
            if !plans.iter().any(|plan| plan.key == key) {
                self.supervisor.stop(&key).await;
                self.agents.remove(&key);
                agents::remove(&self.project, &id).await?;
                provisioned.agents.remove(&key);
                self.project.save_provisioned(&provisioned)?;
                told(format!("{key} is gone"));
            }
        }
        for plan in &plans {
            if self
                .agents
                .get(&plan.key)
                .is_some_and(|known| known.is_still(plan))
            {
                continue;
            }
            let was_up = self.agents.remove(&plan.key).is_some();
            self.supervisor.stop(&plan.key).await;
            if let Some(id) = provisioned.agents.get(&plan.key)
                && agents::changes_sides(&self.project, id, plan)?
            {
                agents::remove(&self.project, id).await?;
            }
            let agent = agents::write(&self.project, &self.server, plan, &mut provisioned)?;
            self.project.save_provisioned(&provisioned)?;
            let (project, owner) = (&self.project, &self.owner);
            let entering = agents::enter_rooms(
                project,
                &self.server,
                owner,
                &agent,
                &provisioned,
                &mut *told,
            );
            let invites = entering.await?;
            let program = agents::program(project, &agent, &invites)?;
            self.supervisor.start(program);
            if !invites.is_empty() {
                agents::wait_until_called(project, owner, &agent, &provisioned, &mut *told).await?;
            }
            if was_up {
                told(format!("{} is started anew", plan.key));
            }
            self.agents.insert(plan.key.clone(), agent);
        }
        self.written.rooms = provisioned
            .rooms
            .iter()
            .map(|(name, id)| (name.clone(), id.to_string()))
            .collect();
        self.file = file;
        self.follow_rooms();
        Ok(())
    }

    fn follow_rooms(&mut self) {
        self.board.set_agents(self.agents.values().map(|agent| {
            let user_id = format!("{}{}", protocol::EXTERNAL_PREFIX, agent.id);
            (agent.plan.key.clone(), user_id, agent.plan.rooms.clone())
        }));
        self.followers = JoinSet::new();
        for (name, id) in &self.written.rooms {
            if let Ok(room) = id.parse() {
                let follow =
                    board::follow(self.board.clone(), self.owner.clone(), name.clone(), room);
                self.followers.spawn(follow);
            }
        }
    }

    /// Keeps how everything fares where `starchild ps` finds it.
    pub fn write_status(&mut self) {
        let status = Status {
            url: self.server.url.clone(),
            ready: true,
            rooms: self.written.rooms.clone(),
            programs: self.supervisor.states(),
        };
        if status != self.written && files::write_json(&self.project.status_file(), &status).is_ok()
        {
            self.written = status;
        }
    }

    /// Takes the team down, after what is in hand; at once where the shutdown is forced.
    pub async fn end(mut self, shutdown: &Shutdown) {
        self.followers.abort_all();
        self.supervisor.stop_all(SERVER, shutdown).await;
        let _ = files::remove(&self.project.status_file());
    }
}

fn modified(project: &Project) -> Option<SystemTime> {
    std::fs::metadata(project.file()).ok()?.modified().ok()
}

/// Waits until a program that was just started has ended.
async fn first_failure(supervisor: &TeamSupervisor) {
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if supervisor.states().values().any(|state| state.restarts > 0) {
            return;
        }
    }
}

/// Somebody else's server must not be taken for ours.
fn refuse_taken(listen: SocketAddr) -> Result<(), UpError> {
    match TcpStream::connect_timeout(&listen, Duration::from_millis(500)) {
        Ok(_) => Err(UpError::Failed(format!(
            "something listens at {listen} already; give the server another place (server: {{listen: 127.0.0.1:8090}}), or name the one that runs (server: {{url: http://{listen}}})"
        ))),
        Err(_) => Ok(()),
    }
}

/// Ends what an `up` that was killed left running.
async fn end_orphans(project: &Project, told: &mut impl FnMut(String)) -> Result<(), UpError> {
    for agent in project.home().agents()? {
        if let Some(pid) = process::running(&agent) {
            told(format!("ending {}, which was left running", agent.id()));
            process::terminate(pid)?;
            if !process::wait_for_exit(&agent, ORPHANS_WITHIN).await {
                let _ = process::terminate(pid);
                process::wait_for_exit(&agent, ORPHANS_WITHIN).await;
            }
        }
    }
    let status: Option<Status> = files::read_json(&project.status_file()).ok().flatten();
    let server = status.and_then(|status| status.programs.get(SERVER)?.pid);
    if let Some(pid) = server
        && is_server(pid)
        && let Some(pid) = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
    {
        told("ending the server, which was left running".into());
        process::terminate(pid)?;
        let begun = Instant::now();
        while rustix::process::test_kill_process(pid).is_ok() && begun.elapsed() < ORPHANS_WITHIN {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

/// Whether a process is a room server: numbers of processes are used again.
fn is_server(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|program| {
        let name = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.trim_end_matches(" (deleted)") == "sc-chatroom"
    })
}
