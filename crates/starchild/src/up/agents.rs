//! The agents: their settings written, and each brought into its rooms. Joining is done by this
//! program's own `room join`, as an owner would.

use super::{
    UpError,
    file::Plan,
    project::{Project, Provisioned},
    server::RoomServer,
    supervisor::SupervisedProgram,
};
use crate::{
    home::{AgentHome, agent_id, files},
    host::rooms::HostedRooms,
};
use client::Client;
use protocol::{CreateInvite, RoomId};
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant, SystemTime},
};

/// How long rooms may take to call an agent that was just started.
const CALLED_WITHIN: Duration = Duration::from_secs(60);
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// An agent as it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningAgent {
    /// As it is to be.
    pub plan: Plan,
    /// When the files it depends on were last changed.
    changed: Vec<Option<SystemTime>>,
    /// Its id, e.g. `billing_agent-3a9f1c20`.
    pub id: String,
}

impl RunningAgent {
    /// Whether it is the same as before: then it goes on running.
    pub fn is_still(&self, plan: &Plan) -> bool {
        self.plan == *plan && self.changed == changed(plan)
    }
}

fn changed(plan: &Plan) -> Vec<Option<SystemTime>> {
    let time = |path: &PathBuf| std::fs::metadata(path).ok()?.modified().ok();
    plan.watched.iter().map(time).collect()
}

/// An id's first half from a name: 8 to 20 characters of a-z 0-9 . _
fn prefix(key: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let mut prefix: String = key.chars().map(plain).collect();
    if prefix.len() < 8 {
        prefix.push_str("_agent");
    }
    while prefix.len() < 8 {
        prefix.push('_');
    }
    prefix.truncate(20);
    prefix
}

/// Writes an agent's settings.
pub fn write(
    project: &Project,
    server: &RoomServer,
    plan: &Plan,
    provisioned: &mut Provisioned,
) -> Result<RunningAgent, UpError> {
    let home = project.home();
    let id =
        agent_id(&home, &prefix(&plan.key)).map_err(|error| UpError::Failed(error.to_string()))?;
    let taken = provisioned
        .agents
        .iter()
        .find(|(key, known)| *known == id.as_str() && **key != plan.key);
    if let Some((other, _)) = taken {
        return Err(UpError::File(format!(
            "the agents {other} and {} would have one id; rename one",
            plan.key
        )));
    }
    provisioned.agents.insert(plan.key.clone(), id.to_string());
    let agent = home.agent(&id);
    files::make_folder(&agent.rooms_folder())?;
    let mut settings = plan.settings.clone();
    settings.insert("server".into(), json!(server.url));
    files::write(
        &agent.config_file(),
        Value::Object(settings).to_string().as_bytes(),
    )?;
    if let Some(definition) = &plan.agent_file {
        let path = agent.folder().join("agent.yaml");
        files::write(&path, definition.to_string().as_bytes())?;
    }
    Ok(RunningAgent {
        changed: changed(plan),
        plan: plan.clone(),
        id: id.to_string(),
    })
}

/// Whether an agent that follows rooms is to be called by them from now on, or the other way round.
/// It is made anew then: one that is both would answer twice.
pub fn changes_sides(project: &Project, id: &str, plan: &Plan) -> Result<bool, UpError> {
    let agent = find(project, id)?;
    Ok(match plan.host {
        Some(_) => !agent.rooms()?.is_empty(),
        None => !HostedRooms::open(agent, None)?.all().is_empty(),
    })
}

/// Brings an agent into its rooms, and out of those that the file does not name any more. Gives the
/// invites with which a host enters by itself.
pub async fn enter_rooms(
    project: &Project,
    server: &RoomServer,
    owner: &Client,
    agent: &RunningAgent,
    provisioned: &Provisioned,
    mut told: impl FnMut(String),
) -> Result<Vec<String>, UpError> {
    let home = find(project, &agent.id)?;
    let hosted = HostedRooms::open(home.clone(), None)?;
    let mut known: Vec<RoomId> = Vec::new();
    for file in home.rooms()? {
        if file.server == server.url && file.left.is_none() {
            known.push(file.room_id);
        }
    }
    for room in hosted.all() {
        if room.server == server.url {
            known.push(room.room_id);
        }
    }
    let wanted = wanted(agent, provisioned);
    for room in &known {
        let is_wanted = wanted.iter().any(|(_, id)| *id == room);
        let is_ours = provisioned.rooms.values().any(|ours| ours == room);
        if is_wanted || !is_ours {
            continue;
        }
        match hosted.all().iter().find(|one| one.room_id == *room) {
            Some(room) => hosted.leave(room).await?,
            None => {
                let leave = ["room", "leave", room.as_str(), "--agent", &agent.id];
                starchild(project, &leave).await?;
            }
        }
        told(format!("{} left {room}", agent.plan.key));
    }
    let mut invites = Vec::new();
    for (name, room) in wanted {
        if known.contains(room) {
            continue;
        }
        let invite = CreateInvite {
            display_name: Some(agent.plan.display_name.clone()),
            ..CreateInvite::default()
        };
        let code = owner.create_invite(room, &invite).await?.invite_code;
        if agent.plan.host.is_some() {
            invites.push(code);
            continue;
        }
        let join = ["room", "join", &code, "--agent", &agent.id];
        starchild(project, &[&join[..], &["--server", &server.url]].concat()).await?;
        told(format!("{} is in {name}", agent.plan.key));
    }
    Ok(invites)
}

/// Waits until the rooms of a hosted agent call it.
pub async fn wait_until_called(
    project: &Project,
    owner: &Client,
    agent: &RunningAgent,
    provisioned: &Provisioned,
    mut told: impl FnMut(String),
) -> Result<(), UpError> {
    let user = format!("{}{}", protocol::EXTERNAL_PREFIX, agent.id);
    let begun = Instant::now();
    for (name, room) in wanted(agent, provisioned) {
        loop {
            let members = owner.members(room).await?.members;
            let mut members = members.iter();
            if members.any(|one| one.user_id.as_str() == user && one.has_agent_endpoint) {
                break;
            }
            if begun.elapsed() > CALLED_WITHIN {
                let log = log_file(project, agent);
                return Err(UpError::Failed(format!(
                    "{} did not come into {name}; {} may say why",
                    agent.plan.key,
                    log.display()
                )));
            }
            tokio::time::sleep(CHECK_EVERY).await;
        }
        told(format!("{} is in {name}, which calls it", agent.plan.key));
    }
    Ok(())
}

/// The rooms that an agent is to be in, with their names.
fn wanted<'a>(
    agent: &'a RunningAgent,
    provisioned: &'a Provisioned,
) -> Vec<(&'a String, &'a RoomId)> {
    let names = agent.plan.rooms.iter();
    names
        .filter_map(|name| Some((name, provisioned.rooms.get(name)?)))
        .collect()
}

/// Takes an agent that the file does not name any more out of its rooms, and forgets it.
pub async fn remove(project: &Project, id: &str) -> Result<(), UpError> {
    starchild(project, &["byoa", "remove", id, "--yes"]).await
}

/// What is to be run for an agent; a host comes into rooms with these invites.
pub fn program(
    project: &Project,
    agent: &RunningAgent,
    invites: &[String],
) -> Result<SupervisedProgram, UpError> {
    let home = project.home().folder().to_owned();
    let mut args: Vec<OsString> = match agent.plan.host {
        None => ["run", "--foreground"].map(OsString::from).into(),
        Some(address) => ["host", "--listen", &address.to_string()]
            .map(OsString::from)
            .into(),
    };
    args.extend(["--agent", &agent.id].map(OsString::from));
    for code in invites {
        args.extend(["--room", code].map(OsString::from));
    }
    Ok(SupervisedProgram {
        name: agent.plan.key.clone(),
        command: std::env::current_exe()?,
        args,
        env: vec![("STARCHILD_HOME".into(), home.display().to_string())],
        folder: project.folder().to_owned(),
        log: log_file(project, agent),
    })
}

fn log_file(project: &Project, agent: &RunningAgent) -> PathBuf {
    project.logs().join(format!("{}.log", agent.id))
}

/// An agent's folder.
pub fn find(project: &Project, id: &str) -> Result<AgentHome, UpError> {
    let id = id.parse();
    let id = id.map_err(|error: protocol::BadId| UpError::Failed(error.to_string()))?;
    Ok(project.home().agent(&id))
}

/// Runs a command of this program on the team's agents.
async fn starchild(project: &Project, args: &[&str]) -> Result<(), UpError> {
    let output = tokio::process::Command::new(std::env::current_exe()?)
        .args(args)
        .env("STARCHILD_HOME", project.home().folder())
        .env_remove("STARCHILD_SERVER")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.trim().trim_start_matches("starchild: ");
            Err(UpError::Failed(why.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gives_a_prefix() {
        for (name, wanted) in [
            ("billing", "billing_agent"),
            ("a", "a_agent_"),
            ("Tidy Falcon", "tidy_falcon"),
            ("an_agent_with_a_long_name", "an_agent_with_a_long"),
        ] {
            assert_eq!(prefix(name), wanted);
        }
    }
}
