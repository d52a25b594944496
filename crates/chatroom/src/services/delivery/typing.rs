//! Letting the room see that an agent is called, and what it has written so far.

use super::{Lane, reply::Reply};
use crate::{app::App, clock::Now};
use protocol::{AgentTyping, IdleReason, RoleClass, TypingState};
use std::time::{Duration, Instant};

/// An answer that grows is shown at most this often.
const EVERY: Duration = Duration::from_millis(100);

/// One answer, as the room's readers see it.
pub struct Typing<'a> {
    app: &'a App,
    lane: &'a Lane,
    event: AgentTyping,
    shown: usize,
    last: Option<Instant>,
    reason: IdleReason,
}

impl<'a> Typing<'a> {
    /// The agent is called: it thinks from now on.
    pub fn begin(app: &'a App, lane: &'a Lane, seq: i64) -> Self {
        let typing = Self {
            app,
            lane,
            event: AgentTyping {
                user_id: lane.user_id.to_string(),
                role_class: RoleClass::Agent,
                reply_to_seq: Some(seq),
                typing: true,
                state: TypingState::Thinking,
                since: Now::get().seconds(),
                activity: None,
                reason: None,
                by_user_id: None,
            },
            shown: 0,
            last: None,
            reason: IdleReason::Done,
        };
        typing.publish(None);
        typing
    }

    /// The answer has grown. Where that is too soon to be shown, says when to ask again.
    pub fn heard(&mut self, reply: &Reply) -> Option<Duration> {
        let text = reply.so_far().filter(|text| text.len() != self.shown)?;
        let began = self.event.state != TypingState::Writing;
        if !began && !self.app.live.is_read(&self.lane.room_id) {
            return None;
        }
        let early = self.last.map(|last| EVERY.saturating_sub(last.elapsed()));
        if let Some(wait) = early.filter(|wait| !wait.is_zero()) {
            return Some(wait);
        }
        self.last = Some(Instant::now());
        self.shown = text.len();
        self.event.state = TypingState::Writing;
        self.publish(Some(text.to_owned()));
        None
    }

    /// The call came to nothing.
    pub fn failed(&mut self) {
        self.reason = IdleReason::Failed;
    }

    fn publish(&self, text: Option<String>) {
        let room = &self.lane.room_id;
        self.app.live.publish_typing(room, self.event.clone(), text);
    }
}

impl Drop for Typing<'_> {
    /// However the call ended, nobody is left waiting for more.
    fn drop(&mut self) {
        let (room, user) = (&self.lane.room_id, self.lane.user_id.as_str());
        self.app
            .live
            .end_turn(room, user, RoleClass::Agent, &self.reason);
    }
}
