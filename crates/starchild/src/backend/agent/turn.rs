//! One turn of a room's session, from the question to its outcome.

use super::Agent;
use crate::backend::{BackendError, Call, Inbound};
use openstarry::session::{Outcome, SessionEvent, TurnEvents};
use std::sync::PoisonError;

/// A turn that somebody waits for. Where nobody does any more it is cancelled; where the program ends,
/// it is left as it is for the next one to go on with.
pub struct RoomTurn<'a> {
    pub agent: &'a Agent,
    /// The session.
    pub id: &'a str,
    pub inbound: &'a Inbound,
    pub call: &'a Call,
    /// Nothing once it is over.
    pub events: Option<TurnEvents>,
}

impl RoomTurn<'_> {
    /// Waits for the end, and passes on what happens until then.
    pub async fn outcome(&mut self) -> Result<Outcome, BackendError> {
        let timeout = self.agent.timeout;
        let overdue = self.call.overdue(timeout);
        tokio::pin!(overdue);
        while let Some(events) = &mut self.events {
            let event = tokio::select! {
                event = events.next() => event,
                () = &mut overdue => {
                    // Dropping it cancels it.
                    self.events = None;
                    self.agent.forget(self.id);
                    return Err(BackendError::TimedOut(timeout));
                }
            };
            match event {
                Some(SessionEvent::End(outcome)) => {
                    self.events = None;
                    return Ok(outcome);
                }
                Some(event) => self.pass_on(event),
                None => self.events = None,
            }
        }
        self.agent.forget(self.id);
        Err(BackendError::Unavailable("the session ended".into()))
    }

    fn pass_on(&self, event: SessionEvent) {
        match event {
            SessionEvent::Text { text } => self.call.report_more_text(&text),
            SessionEvent::Reasoning { .. } | SessionEvent::Activity => self.call.report_thinking(),
            SessionEvent::ToolStarted { call, .. } => {
                // The answer is what it says last.
                self.call.report_whole_text("");
                self.call.report_tool(&call.name, &call.args_text());
            }
            SessionEvent::ToolFinished { .. } => self.call.report_thinking(),
            _ => {}
        }
    }
}

impl Drop for RoomTurn<'_> {
    fn drop(&mut self) {
        let Some(events) = self.events.take() else {
            return;
        };
        if self.call.is_shutting_down() {
            events.leave_for_shutdown();
            self.agent.forget(self.id);
            return;
        }
        drop(events);
        if !self.call.is_stopped() {
            return;
        }
        let rooms = self.agent.rooms.lock();
        let mut rooms = rooms.unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get_mut(self.id) {
            let seq = self.inbound.message.seq;
            room.stopped_seq = Some(seq);
            room.seen_seq = seq;
        }
    }
}
