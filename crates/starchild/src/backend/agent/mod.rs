//! An agent of ours: a model with tools, from its `agent.yaml`. It has one session for each room,
//! which is its memory of it, and tools that act in that room with the agent's own key.

mod gate;
mod notes;
mod tools;
mod turn;
mod workspace;

use super::{
    Backend, BackendError, Call, Inbound, Me, Reply,
    config::BackendConfig,
    prompt::{Prompt, is_about, quote, stopped_note},
};
use futures_util::future::BoxFuture;
use gate::RoomGate;
use openstarry::{
    config::{AgentConfig, AgentDependencies, Built},
    segment::Usage,
    session::{
        EndReason, FileAudit, Outcome, Session, SessionStore, StoreError,
        slash::{self, Typed},
    },
};
use protocol::{Via, mentions::has_part_of};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::OnceCell;
use tools::{ToolRoom, ToolRooms};
use turn::RoomTurn;

/// What the agent keeps of its rooms, in its folder.
const STATE: &str = "agent";

/// An agent with a session for each room.
pub struct Agent {
    config: AgentConfig,
    /// What its owner tells it besides.
    owner: String,
    state: PathBuf,
    timeout: Duration,
    contexts: ToolRooms,
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
    /// Whether a call for this message waited for a yes when the program last ended.
    waits: bool,
    /// The message whose answer somebody stopped, until the model is told.
    stopped_seq: Option<i64>,
    /// What the session had used when it was last asked what.
    counted: Usage,
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
            contexts: ToolRooms::default(),
            started: OnceCell::new(),
            rooms: Mutex::default(),
            config: agent,
        })
    }

    async fn start(&self) -> Result<Started, BackendError> {
        let failed = |error: &dyn std::fmt::Display| BackendError::Unavailable(error.to_string());
        std::fs::create_dir_all(&self.state).map_err(|error| failed(&error))?;
        let dependencies = AgentDependencies {
            audit: Arc::new(FileAudit::new(&self.state.join("audit.jsonl"))),
            gate: Arc::new(RoomGate(self.contexts.clone())),
            // The server says when a question has waited long enough.
            approval_timeout: None,
            folder: Some(self.state.clone()),
            tools: tools::all(&self.contexts),
            ..AgentDependencies::default()
        };
        let built = self.config.build(dependencies).await;
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

    async fn ask(&self, inbound: &Inbound, call: &Call) -> Result<Reply, BackendError> {
        let started = self.started.get_or_try_init(|| self.start()).await?;
        let id = session_id(&inbound.room_name);
        let room = self.room(started, &id, inbound)?;
        let notes = self.state.join("notes").join(format!("{id}.md"));
        let context = ToolRoom::new(inbound, call, notes);
        let material = material(inbound, &room, &context.notes.text());
        // Before the turn begins: its tools and questions look for their room here.
        self.contexts.insert(&id, context);
        let turn = match (room.waits, command(inbound)) {
            (true, _) => room.session.go_on(),
            (false, Some(line)) => room.session.ruled_command(line),
            (false, None) => room.session.say(material),
        };
        let turn = turn.map_err(|error| BackendError::Unavailable(error.to_string()))?;
        let mut turn = RoomTurn {
            agent: self,
            id: &id,
            inbound,
            call,
            events: Some(turn),
        };
        let outcome = turn.outcome().await?;
        self.count(&id, &outcome, call);
        let reply = reply(&outcome);
        self.pass(&id, inbound, reply.is_ok());
        reply
    }

    /// Tells what the turn has cost: an outcome tells what the session has.
    fn count(&self, id: &str, outcome: &Outcome, call: &Call) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(room) = rooms.get_mut(id) else {
            return;
        };
        let counted = std::mem::replace(&mut room.counted, outcome.usage);
        let used = Usage {
            input_tokens: outcome
                .usage
                .input_tokens
                .saturating_sub(counted.input_tokens),
            output_tokens: outcome
                .usage
                .output_tokens
                .saturating_sub(counted.output_tokens),
            cached_tokens: outcome
                .usage
                .cached_tokens
                .saturating_sub(counted.cached_tokens),
            estimated: outcome.usage.estimated,
        };
        call.report_usage(|usage| {
            usage.model.clone_from(&outcome.model);
            usage.input_tokens = Some(used.input_tokens);
            usage.output_tokens = Some(used.output_tokens);
            usage.cost_usd = self.config.limits.price.map(|price| price.of(used));
        });
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
        let waits = state.waits() && is_about(&state.last_words(), inbound.message.seq);
        let counted = state.spent.usage;
        let system = Prompt::new(inbound, Some(&self.owner)).instructions;
        let agent = started.built.agent.with_system(system);
        let room = RoomSession {
            session: agent.session(state, Some(file)),
            seen_seq: 0,
            rules_version: None,
            waits,
            stopped_seq: None,
            counted,
        };
        rooms.insert(id.to_owned(), room.clone());
        Ok(room)
    }

    /// The session is opened anew the next time.
    fn forget(&self, id: &str) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.remove(id);
    }

    /// A turn is over. A session that failed is opened anew the next time.
    fn pass(&self, id: &str, inbound: &Inbound, went_well: bool) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        match rooms.get_mut(id) {
            Some(room) if went_well => {
                room.seen_seq = inbound.message.seq;
                room.rules_version = inbound.rules.as_ref().map(|rules| rules.version);
                room.waits = false;
                room.stopped_seq = None;
            }
            _ => drop(rooms.remove(id)),
        }
    }
}

impl Backend for Agent {
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.ask(inbound, call))
    }
}

/// What is new since the session was last asked, and what it wrote down.
fn material(inbound: &Inbound, room: &RoomSession, notes: &str) -> String {
    let unseen = inbound.unseen(room.seen_seq, room.rules_version);
    let mut text = room.stopped_seq.map(stopped_note).unwrap_or_default();
    if !notes.is_empty() {
        text.push_str("What you wrote down about this room:\n");
        quote(&mut text, notes.trim_end());
        text.push('\n');
    }
    text + &Prompt::new(&unseen, None).material
}

/// The slash command that the agent's owner typed, if it is one. Who the owner is, the server knows;
/// anyone else's commands are words. A key that the owner has shared writes in the owner's name too, so
/// what needs a yes is still asked for.
fn command(inbound: &Inbound) -> Option<String> {
    let message = &inbound.message;
    let owner = inbound.me.owner_user_id.as_deref();
    if owner != Some(message.sender_user_id.as_str()) || message.via != Via::Web {
        return None;
    }
    let words = without_mention(&message.content, &inbound.me);
    match slash::typed(words) {
        Typed::Command(line) => Some(line.to_owned()),
        Typed::Words(_) => None,
    }
}

/// What was said, without the agent's name in front.
fn without_mention<'a>(content: &'a str, me: &Me) -> &'a str {
    let content = content.trim_start();
    let bare = me.user_id.strip_prefix("ext_").unwrap_or(&me.user_id);
    let names = [me.mention_key.trim_start_matches('@'), &me.user_id, bare];
    let Some(rest) = content.strip_prefix('@') else {
        return content;
    };
    let called = names.iter().find_map(|name| {
        let head = rest.get(..name.len())?;
        let is_name = head.to_lowercase() == name.to_lowercase();
        is_name.then(|| &rest[name.len()..])
    });
    let after = called.filter(|after| !after.starts_with(char::is_alphanumeric));
    let first_word = content.split_whitespace().next().unwrap_or_default();
    let is_part = has_part_of(first_word, me.mentionable());
    let by_part = || is_part.then(|| &content[first_word.len()..]);
    after.or_else(by_part).map_or(content, |after| {
        after.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':'))
    })
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
    fn only_the_owners_commands_are_commands() {
        use crate::backend::testing::inbound;
        let mut asked = inbound("@MyBot /compact");
        assert_eq!(command(&asked), None, "nobody is known as the owner");
        asked.me.owner_user_id = Some(asked.message.sender_user_id.clone());
        assert_eq!(command(&asked).as_deref(), Some("/compact"));
        asked.message.content = "@mybot: /fs.read {\"path\":\"a\"}".into();
        assert_eq!(
            command(&asked).as_deref(),
            Some("/fs.read {\"path\":\"a\"}")
        );
        for words in ["@MyBot what is /compact?", "@MyBots /compact", "@MyBot //x"] {
            asked.message.content = words.into();
            assert_eq!(command(&asked), None, "{words}");
        }
        asked.message.content = "/cost".into();
        assert_eq!(command(&asked).as_deref(), Some("/cost"));
        asked.message.via = Via::Agent;
        assert_eq!(command(&asked), None, "an agent in the owner's name");
        asked.message.via = Via::Web;
        asked.message.sender_user_id = "ext_mallory".into();
        assert_eq!(command(&asked), None, "a stranger with the owner's name");
    }

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
