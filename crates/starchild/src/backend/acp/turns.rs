//! What an agent has said so far in each of its sessions.

use super::{grants::Grants, notice::is_notice, policy::ToolCall};
use crate::backend::{
    Call,
    consent::{Asker, ConsentAnswer, ConsentQuestion},
};
use agent_client_protocol::v1::schema::{
    ContentBlock, SessionId, SessionUpdate, ToolCallId, ToolCallLocation, ToolCallUpdate, ToolKind,
};
use runtime::CancellationToken;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What is kept of one answer; a message is shorter.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// How many tool calls of one turn are remembered.
const MAX_CALLS: usize = 256;

/// The turns that are under way, and what was allowed for good.
#[derive(Debug)]
pub struct Turns {
    turns: Mutex<HashMap<SessionId, Turn>>,
    grants: Arc<Grants>,
}

/// What came of a turn.
#[derive(Debug, Default)]
pub struct Said {
    /// The answer.
    pub text: String,
    /// What the whole session has cost, in US dollars, where the agent tells it.
    pub session_cost: Option<f64>,
    /// The tool that was denied last.
    pub denied: Option<&'static str>,
}

#[derive(Debug)]
struct Turn {
    /// What the room is called on this machine.
    room: String,
    said: Said,
    calls: HashMap<ToolCallId, ToolCall>,
    /// Who is told how it comes along.
    progress: Call,
    /// Who says yes to what needs one.
    asker: Asker,
    /// How often each question was asked.
    asked: HashMap<String, u32>,
    /// Cancelled when the turn is over: then nobody is asked any more.
    over: CancellationToken,
}

/// A call that somebody has to say yes to.
#[derive(Debug)]
pub struct AskedPermission {
    asker: Asker,
    question: ConsentQuestion,
    over: CancellationToken,
}

impl AskedPermission {
    /// What the owner says; nothing where nobody waits for it any more.
    pub async fn answer(self) -> Option<ConsentAnswer> {
        tokio::select! {
            answer = self.asker.ask(&self.question) => Some(answer),
            () = self.over.cancelled() => None,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl Turns {
    /// None yet.
    pub fn new(grants: Arc<Grants>) -> Self {
        Self {
            turns: Mutex::default(),
            grants,
        }
    }

    /// A turn begins.
    pub fn begin(&self, session: &SessionId, room: &str, progress: &Call, asker: Asker) {
        let turn = Turn {
            room: room.to_owned(),
            said: Said::default(),
            calls: HashMap::new(),
            progress: progress.clone(),
            asker,
            asked: HashMap::new(),
            over: CancellationToken::new(),
        };
        self.turns().insert(session.clone(), turn);
    }

    /// The turn is over: what was said in it.
    pub fn end(&self, session: &SessionId) -> Said {
        let turn = self.turns().remove(session);
        turn.map(|mut turn| std::mem::take(&mut turn.said))
            .unwrap_or_default()
    }

    /// Something happened in a session. What comes outside of a turn is nobody's answer.
    pub fn update(&self, session: &SessionId, update: SessionUpdate) {
        let mut turns = self.turns();
        let Some(turn) = turns.get_mut(session) else {
            return;
        };
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                if let ContentBlock::Text(text) = chunk.content {
                    match turn.said.text.is_empty() && is_notice(&text.text) {
                        true => tracing::info!("the agent notes: {}", text.text),
                        false => turn.push_text(&text.text),
                    }
                }
            }
            SessionUpdate::AgentThoughtChunk(_) => turn.progress.report_thinking(),
            SessionUpdate::UsageUpdate(usage) => {
                let cost = usage.cost.filter(|cost| cost.currency == "USD");
                turn.said.session_cost = cost.map(|cost| cost.amount).or(turn.said.session_cost);
            }
            SessionUpdate::ToolCall(call) => {
                turn.break_paragraph();
                turn.progress.report_tool(kind_name(call.kind), &call.title);
                let known = turn.call(&call.tool_call_id);
                if let Some(known) = known {
                    known.kind = call.kind;
                    known.title = call.title;
                    known.paths = paths(&call.locations);
                }
            }
            SessionUpdate::ToolCallUpdate(update) => {
                turn.update_call(&update);
            }
            _ => {}
        }
    }

    /// The call that an agent asks a permission for: what it says now, and what it said before.
    pub fn permission_call(&self, session: &SessionId, update: &ToolCallUpdate) -> ToolCall {
        let mut turns = self.turns();
        match turns.get_mut(session) {
            Some(turn) => turn.update_call(update),
            None => ToolCall::default(),
        }
    }

    /// What to ask the owner about a call; nothing where no turn is under way.
    pub fn question(&self, session: &SessionId, call: &ToolCall) -> Option<AskedPermission> {
        let mut turns = self.turns();
        let turn = turns.get_mut(session)?;
        let kind = kind_name(call.kind);
        let what = subject(call);
        // The same call twice is two questions, in the same order after a restart.
        let times = turn.asked.entry(what.clone()).or_default();
        *times += 1;
        let hash = Sha256::digest(format!("{what}\0{times}").as_bytes());
        let id: String = hash
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let paths = call.paths.join("\n");
        Some(AskedPermission {
            asker: turn.asker.clone(),
            question: ConsentQuestion {
                id,
                tool: kind.to_owned(),
                summary: format!("{kind}: {}", call.title),
                detail: Some(format!("{}\n{paths}", call.title).trim_end().to_owned()),
            },
            over: turn.over.clone(),
        })
    }

    /// A call was denied. Some agents end their turn then.
    pub fn deny(&self, session: &SessionId, call: &ToolCall) {
        if let Some(turn) = self.turns().get_mut(session) {
            turn.said.denied = Some(kind_name(call.kind));
        }
    }

    /// Whether the owner allowed the same in this room for good.
    pub fn is_granted(&self, session: &SessionId, call: &ToolCall) -> bool {
        let turns = self.turns();
        let turn = turns.get(session);
        turn.is_some_and(|turn| self.grants.contains(&turn.room, &subject(call)))
    }

    /// The owner allows this in this room for good.
    pub fn grant(&self, session: &SessionId, call: &ToolCall) {
        if let Some(turn) = self.turns().get(session) {
            self.grants.add(&turn.room, &subject(call));
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<SessionId, Turn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    fn push_text(&mut self, text: &str) {
        let left = MAX_TEXT_BYTES.saturating_sub(self.said.text.len());
        let text = &text[..text.floor_char_boundary(left)];
        self.said.text.push_str(text);
        self.progress.report_more_text(text);
    }

    /// What is said before a tool call and after it are two paragraphs.
    fn break_paragraph(&mut self) {
        if !self.said.text.is_empty() && !self.said.text.ends_with("\n\n") {
            self.push_text("\n\n");
        }
    }

    fn call(&mut self, id: &ToolCallId) -> Option<&mut ToolCall> {
        match self.calls.contains_key(id) || self.calls.len() < MAX_CALLS {
            true => Some(self.calls.entry(id.clone()).or_default()),
            false => None,
        }
    }

    /// A call that is one too many is unknown, which no rule allows.
    fn update_call(&mut self, update: &ToolCallUpdate) -> ToolCall {
        let Some(call) = self.call(&update.tool_call_id) else {
            return ToolCall::default();
        };
        let fields = &update.fields;
        call.kind = fields.kind.unwrap_or(call.kind);
        if let Some(title) = &fields.title {
            call.title.clone_from(title);
        }
        if let Some(locations) = &fields.locations {
            call.paths = paths(locations);
        }
        call.clone()
    }
}

/// What a call is about: the same kind, words and files are the same.
fn subject(call: &ToolCall) -> String {
    let parts = [kind_name(call.kind), &call.title, &call.paths.join("\0")];
    parts.join("\0")
}

/// The kind of a tool, in the protocol's word. Its title may hold arguments.
fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        _ => "tool",
    }
}

fn paths(locations: &[ToolCallLocation]) -> Vec<String> {
    let shown = locations.iter().map(|place| place.path.to_string_lossy());
    shown.map(String::from).collect()
}
