//! What an agent has said so far in each of its sessions.

use super::policy::Call;
use agent_client_protocol::v1::schema::{
    ContentBlock, SessionId, SessionUpdate, ToolCallId, ToolCallLocation, ToolCallUpdate,
};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What is kept of one answer; a message is shorter.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// How many tool calls of one turn are remembered.
const MAX_CALLS: usize = 256;

/// The turns that are under way.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<SessionId, Turn>>);

#[derive(Debug, Default)]
struct Turn {
    text: String,
    calls: HashMap<ToolCallId, Call>,
}

impl Turns {
    /// A turn begins.
    pub fn begin(&self, session: &SessionId) {
        self.turns().insert(session.clone(), Turn::default());
    }

    /// The turn is over: what was said in it.
    pub fn end(&self, session: &SessionId) -> String {
        let turn = self.turns().remove(session);
        turn.map(|turn| turn.text).unwrap_or_default()
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
                    turn.push_text(&text.text);
                }
            }
            SessionUpdate::ToolCall(call) => {
                turn.break_paragraph();
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
    pub fn permission_call(&self, session: &SessionId, update: &ToolCallUpdate) -> Call {
        let mut turns = self.turns();
        match turns.get_mut(session) {
            Some(turn) => turn.update_call(update),
            None => Call::default(),
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<SessionId, Turn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    fn push_text(&mut self, text: &str) {
        let left = MAX_TEXT_BYTES.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(left)]);
    }

    /// What is said before a tool call and after it are two paragraphs.
    fn break_paragraph(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.push_text("\n\n");
        }
    }

    fn call(&mut self, id: &ToolCallId) -> Option<&mut Call> {
        match self.calls.contains_key(id) || self.calls.len() < MAX_CALLS {
            true => Some(self.calls.entry(id.clone()).or_default()),
            false => None,
        }
    }

    /// A call that is one too many is unknown, which no rule allows.
    fn update_call(&mut self, update: &ToolCallUpdate) -> Call {
        let Some(call) = self.call(&update.tool_call_id) else {
            return Call::default();
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

fn paths(locations: &[ToolCallLocation]) -> Vec<String> {
    let shown = locations.iter().map(|place| place.path.to_string_lossy());
    shown.map(String::from).collect()
}
