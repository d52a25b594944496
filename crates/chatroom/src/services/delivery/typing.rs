//! Letting the room see that an agent writes, and what it has written so far.

use super::{Lane, reply::Reply};
use crate::app::App;
use protocol::{AgentDelta, AgentTyping, EventKind};
use serde::Serialize;
use std::time::{Duration, Instant};

/// An answer that grows is shown at most this often.
const EVERY: Duration = Duration::from_millis(100);

/// One answer, as those see it who asked to.
pub struct Typing<'a> {
    app: &'a App,
    lane: &'a Lane,
    seq: i64,
    told: bool,
    shown: usize,
    last: Option<Instant>,
}

impl<'a> Typing<'a> {
    pub fn new(app: &'a App, lane: &'a Lane, seq: i64) -> Self {
        Self {
            app,
            lane,
            seq,
            told: false,
            shown: 0,
            last: None,
        }
    }

    /// The answer has grown. Where that is too soon to be shown, says when to ask again.
    pub fn heard(&mut self, reply: &Reply) -> Option<Duration> {
        if !reply.is_begun() || !self.app.anyone_watches_typing(&self.lane.room_id) {
            return None;
        }
        if !self.told {
            self.told = true;
            self.tell(true);
        }
        let text = reply.so_far().filter(|text| text.len() != self.shown)?;
        let early = self.last.map(|last| EVERY.saturating_sub(last.elapsed()));
        if let Some(wait) = early.filter(|wait| !wait.is_zero()) {
            return Some(wait);
        }
        self.last = Some(Instant::now());
        self.shown = text.len();
        let delta = AgentDelta {
            user_id: self.lane.user_id.to_string(),
            reply_to_seq: self.seq,
            text: text.to_owned(),
        };
        self.send(EventKind::AgentDelta, &delta);
        None
    }

    fn tell(&self, typing: bool) {
        let event = AgentTyping {
            user_id: self.lane.user_id.to_string(),
            reply_to_seq: self.seq,
            typing,
        };
        self.send(EventKind::AgentTyping, &event);
    }

    fn send(&self, kind: EventKind, data: &impl Serialize) {
        self.app.publish_ephemeral(&self.lane.room_id, kind, data);
    }
}

impl Drop for Typing<'_> {
    /// However the call ended, nobody is left waiting for more.
    fn drop(&mut self) {
        if self.told {
            self.tell(false);
        }
    }
}
