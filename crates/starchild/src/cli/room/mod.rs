//! `starchild room`: bringing an agent into rooms, and out again.

mod answering;
pub mod invite;
mod join;

pub use join::{JoinArgs, join};

use crate::{
    backend::{answer_in::AnswerIn, config::BackendConfig},
    cli::{
        byoa,
        failure::Failure,
        show::{self, Spinner, Table},
    },
    daemon::credentials::refresh,
    home::{AgentHome, Home, RoomAddress, RoomFile},
    host::rooms::is_out_already,
};
use clap::{Args, Subcommand};
use client::Client;
use protocol::RoomId;
use serde::Serialize;
use std::time::Duration;

/// How long a server may take to say what a room is called.
const NAMES_WITHIN: Duration = Duration::from_secs(3);

/// What can be done with rooms.
#[derive(Subcommand)]
pub enum Command {
    /// Bring an agent into a room.
    #[command(
        after_help = "CODE is what the room's owner gave you: a short code (i_…), an invite code (inv_…) or an install link.\n\nExamples:\n  starchild room join i_x9j2k7vp --agent curious_otter-3a9f1c20\n  starchild room join https://rooms.example.org/install/i_x9j2k7vp\n\nA daemon that runs takes the room up by itself."
    )]
    Join(JoinArgs),
    /// Take an agent out of a room.
    Leave {
        /// The room, e.g. rm_8f3kz2.
        room: RoomId,
        #[command(flatten)]
        agent: AgentArg,
        /// Its server, where the agent is in rooms of that id on several.
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
    /// List the rooms an agent is in.
    #[command(
        after_help = "In a pipe: room, server, the agent's name in it, state, whether it answers there, the room's name; with tabs between."
    )]
    List {
        #[command(flatten)]
        agent: AgentArg,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Whose rooms.
#[derive(Args)]
pub struct AgentArg {
    /// The agent, or any part of its id that no other has; not needed where there is only one.
    #[arg(id = "agent", long = "agent", value_name = "ID")]
    pub id: Option<String>,
}

/// Runs one command.
pub async fn run(home: &Home, command: Command) -> Result<(), Failure> {
    match command {
        Command::Join(args) => join(home, args).await,
        Command::Leave {
            room,
            agent,
            server,
        } => {
            let agent = byoa::choose_agent(home, agent.id.as_ref())?;
            leave(&agent, &room, server.as_deref()).await
        }
        Command::List { agent, json } => {
            list(&byoa::choose_agent(home, agent.id.as_ref())?, json).await
        }
    }
}

async fn leave(agent: &AgentHome, room: &RoomId, server: Option<&str>) -> Result<(), Failure> {
    let server = server.map(|server| server.trim_end_matches('/'));
    let is_meant = |address: &RoomAddress| {
        address.room == *room && server.is_none_or(|server| address.server == server)
    };
    let mut files = agent.rooms()?;
    files.retain(|file| is_meant(&file.address()));
    if let [_, another, ..] = &files[..] {
        return Err(Failure::permanent(format!(
            "{} is in rooms with the id {room} on several servers",
            agent.id()
        ))
        .with_hint(format!("Say which one, e.g. --server {}", another.server)));
    }
    let Some(file) = files.pop() else {
        let id = agent.id();
        if refresh::rooms_without_key(agent).iter().any(is_meant) {
            return Err(Failure::transient(format!("{id} has no key for {room} yet")).with_hint(
                "Its daemon fetches one within minutes while it runs; leave the room after that.",
            ));
        }
        return Err(Failure::permanent(format!("{id} is not in {room}"))
            .with_hint(format!("starchild room list --agent {id} shows its rooms.")));
    };
    leave_room(agent, &file).await?;
    if room.is_reserved() {
        agent.leave_behind(&file.address())?;
    }
    show::note(&format!("{} left {room}.", agent.id()));
    Ok(())
}

/// Tells the server, and forgets the room.
pub async fn leave_room(agent: &AgentHome, file: &RoomFile) -> Result<(), Failure> {
    let _spinner = Spinner::new("leaving");
    if file.left.is_none() {
        let client = Client::new(&file.server)?.with_token(file.member_token.expose())?;
        match client.remove_member(&file.room_id, &file.user_id).await {
            Err(error) if !is_out_already(&error) => return Err(error.into()),
            _ => {}
        }
    }
    agent.unremember_room(&file.address())?;
    agent.forget_room(&file.address())?;
    Ok(())
}

#[derive(Serialize)]
struct Listed {
    room_id: String,
    /// What the room is called; unknown where its server does not tell.
    room_name: Option<String>,
    server: String,
    user_name: Option<String>,
    state: String,
    /// Whether the agent answers there; unknown where there is no key yet.
    answers: Option<bool>,
    expires_at: Option<i64>,
}

async fn list(agent: &AgentHome, as_json: bool) -> Result<(), Failure> {
    let without_key = refresh::rooms_without_key(agent)
        .into_iter()
        .map(|address| Listed {
            room_id: address.room.to_string(),
            room_name: None,
            server: address.server,
            user_name: None,
            state: "joined, the daemon fetches its key".into(),
            answers: None,
            expires_at: None,
        });
    let config = BackendConfig::load(&agent.config_file()).ok();
    let answer_in = config.map_or(AnswerIn::Joined, |config| config.answer_in());
    let files = agent.rooms()?;
    let names = room_names(&files).await;
    let listed: Vec<_> = files
        .into_iter()
        .zip(names)
        .map(|(file, room_name)| Listed {
            answers: Some(file.left.is_none() && answer_in.includes(&file)),
            room_id: file.room_id.to_string(),
            room_name,
            server: file.server,
            user_name: file.user_name,
            state: file
                .left
                .map_or("joined".into(), |why| format!("left: {why}")),
            expires_at: Some(file.expires_at),
        })
        .chain(without_key)
        .collect();
    if as_json {
        return Ok(show::json(&listed)?);
    }
    let rows = listed.into_iter().map(|room| {
        let name = room.user_name.unwrap_or_else(|| "-".into());
        let answers = match room.answers {
            Some(true) => "answers",
            Some(false) => "silent",
            None => "-",
        };
        let answers = answers.to_owned();
        let called = room.room_name.unwrap_or_else(|| "-".into());
        [room.room_id, room.server, name, room.state, answers, called]
    });
    let table = Table {
        columns: ["ROOM", "SERVER", "AS", "STATE", "ANSWERS", "NAME"],
        rows: rows.collect(),
        empty: "In no room yet. Ask a room's owner for a code, then: starchild room join CODE",
    };
    Ok(table.show()?)
}

/// What the rooms are called, asked of their servers together. One that does not tell in time has no
/// name here.
async fn room_names(files: &[RoomFile]) -> Vec<Option<String>> {
    let name = async |file: &RoomFile| {
        let client = Client::new(&file.server).ok()?;
        let client = client.with_token(file.member_token.expose()).ok()?;
        let room = tokio::time::timeout(NAMES_WITHIN, client.room(&file.room_id)).await;
        Some(room.ok()?.ok()?.name)
    };
    futures_util::future::join_all(files.iter().map(name)).await
}
