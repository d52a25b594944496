//! An agent of ours: a model with tools, from its `agent.yaml`. It has one session for each room,
//! which is its memory of it, and tools that act in that room with the agent's own key.

mod notes;
mod tools;
mod workspace;

use super::{
    Backend, BackendError, Inbound, Reply,
    config::BackendConfig,
    prompt::{Prompt, quote},
};
use futures_util::future::BoxFuture;
use openstarry::{
    config::{AgentConfig, Built, Surroundings},
    session::{EndReason, FileAudit, Outcome, Session, SessionStore, StoreError},
};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::OnceCell;
use tools::{RoomContext, RoomContexts};

/// What the agent keeps of its rooms, in its folder.
const STATE: &str = "agent";

/// An agent with a session for each room.
pub struct Agent {
    config: AgentConfig,
    /// What its owner tells it besides.
    owner: String,
    state: PathBuf,
    timeout: Duration,
    contexts: RoomContexts,
    started: OnceCell<Started>,
    rooms: Mutex<HashMap<String, RoomSession>>,
}

/// The agent as it runs, with its MCP servers.
struct Started {
    built: Built,
    sessions: SessionStore,
}

/// What is open of one room.
#[derive(Clone)]
struct RoomSession {
    session: Session,
    /// The newest message that it was shown.
    seen_seq: i64,
    rules_version: Option<i64>,
    /// Whether a call waited for a yes when the daemon last ended.
    waits: bool,
}

impl Agent {
    /// Reads `agent:` of the configuration, and checks what can be checked without starting
    /// anything.
    pub fn new(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        let missing = |what: String| BackendError::Missing {
            what,
            hint: "mend agent.yaml; starchild agent run --config FILE tries it".into(),
        };
        let file = config.agent.as_deref().unwrap_or(Path::new("agent.yaml"));
        let mut agent =
            AgentConfig::load(&folder.join(file)).map_err(|error| missing(error.to_string()))?;
        workspace::check(&agent, folder)?;
        let env = |name: &str| std::env::var(name).ok();
        agent
            .providers
            .build(&env)
            .map_err(|pain| missing(pain.to_string()))?;
        let pinned = &mut agent.tools.retrieval.pinned;
        pinned.extend(tools::NAMES.map(str::to_owned));
        let words = [config.system_prompt.as_deref(), Some(agent.system.as_str())];
        let words: Vec<_> = words.into_iter().flatten().map(str::trim).collect();
        Ok(Self {
            owner: words.join("\n"),
            state: folder.join(STATE),
            timeout: config.timeout(),
            contexts: RoomContexts::default(),
            started: OnceCell::new(),
            rooms: Mutex::default(),
            config: agent,
        })
    }

    async fn start(&self) -> Result<Started, BackendError> {
        let failed = |error: &dyn std::fmt::Display| BackendError::Unavailable(error.to_string());
        std::fs::create_dir_all(&self.state).map_err(|error| failed(&error))?;
        let around = Surroundings {
            audit: Arc::new(FileAudit::new(&self.state.join("audit.jsonl"))),
            folder: Some(self.state.clone()),
            tools: tools::all(&self.contexts),
            ..Surroundings::default()
        };
        let built = self.config.build(around).await;
        let built = built.map_err(|error| failed(&error))?;
        for warning in &built.warnings {
            tracing::warn!("{warning}");
        }
        let sessions = SessionStore::open(&self.state.join("sessions"));
        Ok(Started {
            built,
            sessions: sessions.map_err(|error| failed(&error))?,
        })
    }

    async fn ask(&self, inbound: &Inbound) -> Result<Reply, BackendError> {
        let started = self.started.get_or_try_init(|| self.start()).await?;
        let id = session_id(&inbound.room_name);
        let room = self.room(started, &id, inbound)?;
        let context = RoomContext::new(inbound, self.state.join("notes").join(format!("{id}.md")));
        let turn = match room.waits {
            true => room.session.go_on(),
            false => room
                .session
                .say(material(inbound, &room, &context.notes.text())),
        };
        self.contexts.insert(&id, context);
        let turn = turn.map_err(|error| BackendError::Unavailable(error.to_string()))?;
        let outcome = tokio::time::timeout(self.timeout, turn.outcome()).await;
        let outcome = outcome.map_err(|_| BackendError::TimedOut(self.timeout))?;
        let reply = reply(&outcome);
        self.pass(&id, inbound, reply.is_ok());
        reply
    }

    /// The room's session: open already, kept from before, or new.
    fn room(
        &self,
        started: &Started,
        id: &str,
        inbound: &Inbound,
    ) -> Result<RoomSession, BackendError> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get(id) {
            return Ok(room.clone());
        }
        let opened = match started.sessions.resume(Some(id)) {
            Err(StoreError::Unknown(_)) => started.sessions.create(id),
            opened => opened,
        };
        // One that was just given up may still be about to be saved.
        let (state, file) = opened.map_err(|error| BackendError::Unavailable(error.to_string()))?;
        let waits = state.waits();
        let system = Prompt::new(inbound, Some(&self.owner)).instructions;
        let agent = started.built.agent.with_system(system);
        let room = RoomSession {
            session: agent.session(state, Some(file)),
            seen_seq: 0,
            rules_version: None,
            waits,
        };
        rooms.insert(id.to_owned(), room.clone());
        Ok(room)
    }

    /// A turn is over. A session that failed is opened anew the next time.
    fn pass(&self, id: &str, inbound: &Inbound, went_well: bool) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        match rooms.get_mut(id) {
            Some(room) if went_well => {
                room.seen_seq = inbound.message.seq;
                room.rules_version = inbound.rules.as_ref().map(|rules| rules.version);
                room.waits = false;
            }
            _ => drop(rooms.remove(id)),
        }
    }
}

impl Backend for Agent {
    fn answer<'a>(&'a self, inbound: &'a Inbound) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.ask(inbound))
    }
}

/// What is new since the session was last asked, and what it wrote down.
fn material(inbound: &Inbound, room: &RoomSession, notes: &str) -> String {
    let unseen = inbound.unseen(room.seen_seq, room.rules_version);
    let mut text = String::new();
    if !notes.is_empty() {
        text.push_str("What you wrote down about this room:\n");
        quote(&mut text, notes.trim_end());
        text.push('\n');
    }
    text + &Prompt::new(&unseen, None).material
}

fn reply(outcome: &Outcome) -> Result<Reply, BackendError> {
    let text = outcome.text();
    match &outcome.end {
        EndReason::Answered | EndReason::Command => Ok(Reply::from_output(&text)),
        EndReason::Incomplete(why) if !text.trim().is_empty() => {
            Ok(Reply::from_output(&format!("{text}\n\n({why})")))
        }
        EndReason::Failed(why) => Err(BackendError::Unavailable(why.clone())),
        end => Err(BackendError::Failed(end.why().to_owned())),
    }
}

/// A room's name as an id of a session, which has fewer characters.
fn session_id(room_name: &str) -> String {
    use sha2::{Digest, Sha256};
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let shown: String = room_name.chars().filter(fits).take(32).collect();
    let hash = Sha256::digest(room_name.as_bytes());
    let hash: String = hash
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{shown}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rooms_never_share_a_session() {
        let names = [
            "rm_a",
            "rm_a@rooms.example.org",
            "rm_a@rooms.example-org",
            "ä",
            "ö",
        ];
        let ids: std::collections::HashSet<_> = names.iter().map(|name| session_id(name)).collect();
        assert_eq!(ids.len(), names.len());
        assert!(ids.iter().all(|id| id.len() <= 64), "{ids:?}");
    }
}
