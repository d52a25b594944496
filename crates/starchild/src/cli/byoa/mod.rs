//! `starchild agents` (also `byoa`) and `starchild id`: the agents of this machine.

mod settings;
pub mod yaml;

use super::{
    confirm::confirm,
    failure::Failure,
    room,
    show::{self, Table},
};
use crate::{
    backend::config::{BackendConfig, BackendKind},
    daemon::{credentials::refresh, process},
    home::{AgentHome, Home, agent_id, files},
    host::rooms::HostedRooms,
};
use clap::{Args, Subcommand};
use serde::Serialize;
use settings::Settings;
use std::io::IsTerminal;

/// What can be done with agents.
#[derive(Subcommand)]
pub enum Command {
    /// Make an agent. Its id is the only line on standard output.
    #[command(
        after_help = "Examples:\n  starchild agents add --prefix curious_otter --backend handler --handler-path ./handler.sh\n  starchild agents add --prefix my_coder --backend codex --server https://rooms.example.org\n\nThen: starchild room join CODE --agent ID, and starchild run --agent ID"
    )]
    Add(AddArgs),
    /// List the agents of this machine.
    #[command(
        after_help = "In a pipe: id, backend, server, number of rooms, running or stopped; with tabs between."
    )]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Change an agent's settings; without any, open handler.yaml in $EDITOR.
    #[command(
        after_help = "Example:\n  starchild agents edit curious_otter-3a9f1c20 --timeout-seconds 300\n\nA daemon that runs takes the change up with starchild restart."
    )]
    Edit {
        /// The agent, or any part of its id that no other has.
        agent: String,
        /// The room server. What the environment says is for new agents alone.
        #[arg(long, value_name = "URL")]
        server: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Leave the agent's rooms and forget the agent.
    Remove {
        /// The agent, or any part of its id that no other has.
        agent: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

/// What `add` takes.
#[derive(Args)]
pub struct AddArgs {
    /// The first half of the agent's id: 8 to 20 characters of a-z 0-9 . _
    #[arg(long)]
    prefix: String,
    /// The room server.
    #[arg(long, value_name = "URL", env = "STARCHILD_SERVER")]
    server: Option<String>,
    #[command(flatten)]
    settings: Settings,
}

/// Runs one command.
pub async fn run(home: &Home, command: Command) -> Result<(), Failure> {
    match command {
        Command::Add(args) => add(home, args),
        Command::List { json } => list(home, json),
        Command::Edit {
            agent,
            server,
            settings,
        } => {
            let changes = settings.changes(server.as_deref())?;
            edit(&find_agent(home, &agent)?, &changes)
        }
        Command::Remove { agent, yes } => remove(&find_agent(home, &agent)?, yes).await,
    }
}

/// Prints the id that an agent with this prefix has on this machine.
pub fn id(home: &Home, prefix: &str) -> Result<(), Failure> {
    Ok(show::print(&format!("{}\n", agent_id(home, prefix)?))?)
}

/// An agent of this machine: by its id, or by any part of it that no other agent has.
pub fn find_agent(home: &Home, part: &str) -> Result<AgentHome, Failure> {
    let part = part.trim_start_matches('@');
    let part = part.strip_prefix(protocol::EXTERNAL_PREFIX).unwrap_or(part);
    let agents = home.agents()?;
    if let Some(agent) = agents.iter().find(|agent| agent.id().as_str() == part) {
        return Ok(agent.clone());
    }
    let folded = part.to_lowercase().replace(' ', "_");
    let is_meant = |agent: &&AgentHome| !folded.is_empty() && agent.id().as_str().contains(&folded);
    let meant: Vec<&AgentHome> = agents.iter().filter(is_meant).collect();
    match meant[..] {
        [agent] => Ok(agent.clone()),
        [] => Err(
            Failure::permanent(format!("there is no agent {part} on this machine")).with_hint(
                "starchild agents list shows those there are, starchild agents add makes one.",
            ),
        ),
        _ => {
            let ids: Vec<_> = meant.iter().map(|agent| agent.id().as_str()).collect();
            let message = format!("{part} is part of several agents' ids: {}", ids.join(", "));
            Err(Failure::permanent(message).with_hint("Write more of the one that you mean."))
        }
    }
}

/// The agent that is named, or the only one there is.
pub fn choose_agent(home: &Home, id: Option<&String>) -> Result<AgentHome, Failure> {
    if let Some(id) = id {
        return find_agent(home, id);
    }
    let agents = home.agents()?;
    match <[AgentHome; 1]>::try_from(agents) {
        Ok([only]) => Ok(only),
        Err(agents) if agents.is_empty() => {
            Err(Failure::permanent("there is no agent on this machine").with_hint(NO_AGENTS))
        }
        Err(agents) => {
            let ids: Vec<_> = agents.iter().map(|agent| agent.id().as_str()).collect();
            Err(Failure::permanent("which agent? There are several")
                .with_hint(format!("Say --agent and one of: {}", ids.join(", "))))
        }
    }
}

/// What to do where there is no agent.
pub const NO_AGENTS: &str =
    "Bring one into a room: starchild join LINK. Make one: starchild agents add --prefix NAME";

/// Makes an agent that answers without a model, at home on this server.
pub fn add_plain(home: &Home, prefix: &str, server: Option<String>) -> Result<(), Failure> {
    let args = AddArgs {
        prefix: prefix.to_owned(),
        server,
        settings: Settings::default(),
    };
    make(home, args).map(drop)
}

fn add(home: &Home, args: AddArgs) -> Result<(), Failure> {
    let agent = make(home, args)?;
    show::print(&format!("{}\n", agent.id()))?;
    show::next(&format!("starchild room join CODE --agent {}", agent.id()));
    Ok(())
}

fn make(home: &Home, mut args: AddArgs) -> Result<AgentHome, Failure> {
    let agent = home.agent(&agent_id(home, &args.prefix)?);
    let is_chosen = args.settings.backend.is_some();
    // It runs nothing and needs nothing.
    args.settings.backend.get_or_insert(BackendKind::Plain);
    let text = args.settings.new_file(args.server.as_deref())?;
    let wanted = BackendConfig::parse(&text).map_err(Failure::permanent)?;
    if agent.exists() {
        if BackendConfig::load(&agent.config_file())? != wanted {
            let id = agent.id();
            return Err(Failure::permanent(format!(
                "the agent {id} is there already, with other settings"
            ))
            .with_hint(format!(
                "Change them: starchild agents edit {id} …, or choose another --prefix."
            )));
        }
    } else {
        files::make_folder(&agent.rooms_folder())?;
        files::write(&agent.config_file(), text.as_bytes())?;
    }
    if let Err(error) = crate::backend::build::build(&wanted, agent.folder()) {
        show::note(&format!("note: {error}"));
    }
    if !is_chosen {
        show::note(&format!(
            "It answers with the backend plain. Another one: starchild agents edit {} --backend NAME; docs/backends.md tells of each",
            agent.id()
        ));
    }
    Ok(agent)
}

#[derive(Serialize)]
struct Listed {
    agent: String,
    backend: String,
    server: String,
    rooms: usize,
    running: bool,
}

fn list(home: &Home, as_json: bool) -> Result<(), Failure> {
    let agents = home.agents()?;
    let listed = agents.iter().map(|agent| {
        let config = BackendConfig::load(&agent.config_file());
        Listed {
            agent: agent.id().to_string(),
            backend: config
                .as_ref()
                .map_or("?".into(), |config| config.backend.to_string()),
            server: config.map_or("?".into(), |config| config.server),
            rooms: refresh::count_rooms(agent),
            running: process::running(agent).is_some(),
        }
    });
    let listed: Vec<_> = listed.collect();
    if as_json {
        return Ok(show::json(&listed)?);
    }
    let rows = listed.into_iter().map(|agent| {
        let state = if agent.running { "running" } else { "stopped" };
        let rooms = agent.rooms.to_string();
        [
            agent.agent,
            agent.backend,
            agent.server,
            rooms,
            state.into(),
        ]
    });
    let table = Table {
        columns: ["AGENT", "BACKEND", "SERVER", "ROOMS", "STATE"],
        rows: rows.collect(),
        empty: NO_AGENTS,
    };
    Ok(table.show()?)
}

fn edit(agent: &AgentHome, changes: &[yaml::Change]) -> Result<(), Failure> {
    let path = agent.config_file();
    if changes.is_empty() {
        return edit_by_hand(agent);
    }
    let text = std::fs::read_to_string(&path)?;
    let text = yaml::edit(&text, changes).map_err(|why| yaml::EditError {
        path: path.clone(),
        why,
    })?;
    files::write(&path, text.as_bytes())?;
    hint_restart(agent);
    Ok(())
}

fn edit_by_hand(agent: &AgentHome) -> Result<(), Failure> {
    let path = agent.config_file();
    if !std::io::stdin().is_terminal() {
        return Err(Failure::permanent("nothing to change").with_hint(format!(
            "Name a setting, e.g. --timeout-seconds 300, or edit {}.",
            path.display()
        )));
    }
    let editor = ["VISUAL", "EDITOR"].iter().find_map(std::env::var_os);
    let editor = editor.unwrap_or_else(|| "vi".into());
    let status = std::process::Command::new("sh")
        .args(["-c", "exec $0 \"$1\""])
        .arg(&editor)
        .arg(&path)
        .status()?;
    if !status.success() {
        return Err(Failure::permanent(format!(
            "{} ended with {status}",
            editor.display()
        )));
    }
    BackendConfig::load(&path)?;
    hint_restart(agent);
    Ok(())
}

/// Says that a daemon that runs does not know of a change yet.
pub fn hint_restart(agent: &AgentHome) {
    if process::running(agent).is_some() {
        let id = agent.id();
        show::note(&format!(
            "It runs with the old settings until: starchild restart --agent {id}"
        ));
    }
}

async fn remove(agent: &AgentHome, yes: bool) -> Result<(), Failure> {
    let id = agent.id();
    if process::running(agent).is_some() {
        return Err(Failure::permanent(format!("the agent {id} runs"))
            .with_hint(format!("Stop it first: starchild stop --agent {id}")));
    }
    let question = format!("Leave all rooms and forget {id}?");
    if !yes && confirm(&question, false)? != Some(true) {
        return Err(
            Failure::permanent("nothing was removed").with_hint("--yes removes it without asking.")
        );
    }
    for file in agent.rooms()? {
        if let Err(error) = room::leave_room(agent, &file).await {
            show::note(&format!("note: {} was not told: {error}", file.room_id));
        }
    }
    let hosted = HostedRooms::open(agent.clone(), None)?;
    for room in hosted.all() {
        if let Err(error) = hosted.leave(&room).await {
            show::note(&format!("note: {} was not told: {error}", room.room_id));
        }
    }
    std::fs::remove_dir_all(agent.folder())?;
    show::note(&format!(
        "{id} is forgotten. Its identity token is kept, in case it comes back."
    ));
    Ok(())
}
