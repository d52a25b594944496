//! The agents: their settings written, and each brought into its rooms. Joining is done by this
//! program's own `room join`, as an owner would.

use super::{
    UpError,
    file::Plan,
    project::{Made, Project},
    server::RoomServer,
    supervisor::Program,
};
use crate::home::{AgentHome, agent_id, files};
use client::Client;
use protocol::{CreateInvite, RoomId};
use serde_json::{Value, json};
use std::{path::PathBuf, process::Stdio, time::SystemTime};

/// An agent as it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    /// As it is to be.
    pub plan: Plan,
    /// When the files it depends on were last changed.
    changed: Vec<Option<SystemTime>>,
    /// Its id, e.g. `billing_agent-3a9f1c20`.
    pub id: String,
}

impl Ready {
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
    made: &mut Made,
) -> Result<Ready, UpError> {
    let home = project.home();
    let id =
        agent_id(&home, &prefix(&plan.key)).map_err(|error| UpError::Failed(error.to_string()))?;
    let taken = made
        .agents
        .iter()
        .find(|(key, known)| *known == id.as_str() && **key != plan.key);
    if let Some((other, _)) = taken {
        return Err(UpError::File(format!(
            "the agents {other} and {} would have one id; rename one",
            plan.key
        )));
    }
    made.agents.insert(plan.key.clone(), id.to_string());
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
    Ok(Ready {
        changed: changed(plan),
        plan: plan.clone(),
        id: id.to_string(),
    })
}

/// Brings an agent into its rooms, and out of those that the file does not name any more.
pub async fn join_rooms(
    project: &Project,
    server: &RoomServer,
    owner: &Client,
    ready: &Ready,
    made: &Made,
    mut told: impl FnMut(String),
) -> Result<(), UpError> {
    let agent = find(project, &ready.id)?;
    let wanted: Vec<&RoomId> = ready
        .plan
        .rooms
        .iter()
        .filter_map(|name| made.rooms.get(name))
        .collect();
    let files = agent.rooms()?;
    let is_in = |room: &RoomId| {
        let mut files = files.iter();
        files.any(|file| file.room_id == *room && file.server == server.url && file.left.is_none())
    };
    for (name, room) in ready.plan.rooms.iter().zip(&wanted) {
        if is_in(room) {
            continue;
        }
        let invite = CreateInvite {
            display_name: Some(ready.plan.display_name.clone()),
            ..CreateInvite::default()
        };
        let code = owner.create_invite(room, &invite).await?.invite_code;
        starchild(
            project,
            &[
                "room",
                "join",
                &code,
                "--agent",
                &ready.id,
                "--server",
                &server.url,
            ],
        )
        .await?;
        told(format!("{} is in {name}", ready.plan.key));
    }
    let ours: Vec<&RoomId> = made.rooms.values().collect();
    for file in &files {
        let is_ours = ours.contains(&&file.room_id) && file.server == server.url;
        if is_ours && !wanted.contains(&&file.room_id) {
            let room = file.room_id.as_str();
            starchild(project, &["room", "leave", room, "--agent", &ready.id]).await?;
            told(format!("{} left {room}", ready.plan.key));
        }
    }
    Ok(())
}

/// Takes an agent that the file does not name any more out of its rooms, and forgets it.
pub async fn remove(project: &Project, id: &str) -> Result<(), UpError> {
    starchild(project, &["byoa", "remove", id, "--yes"]).await
}

/// What is to be run for an agent.
pub fn program(project: &Project, ready: &Ready) -> Result<Program, UpError> {
    let home = project.home().folder().to_owned();
    Ok(Program {
        name: ready.plan.key.clone(),
        command: std::env::current_exe()?,
        args: ["run", "--foreground", "--agent", &ready.id]
            .map(Into::into)
            .into(),
        env: vec![("STARCHILD_HOME".into(), home.display().to_string())],
        folder: project.folder().to_owned(),
        log: project.logs().join(format!("{}.log", ready.id)),
    })
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
