//! Telling the readers of a room, on all nodes: what was committed, and what happens just now.

use super::{
    at_work::AtWork,
    bus::Bus,
    frame::ephemeral,
    hub::{Audience, Commit, Ephemeral, Hub},
};
use protocol::{
    AgentStop, AgentTyping, Cursor, EventKind, IdleReason, Message, MessageType, Notice, RoleClass,
    RoomId, UserId, Via,
};
use serde::Serialize;
use std::sync::Arc;

/// The way to the readers of this node and of the others.
pub struct Live {
    hub: Arc<Hub>,
    bus: Option<Arc<Bus>>,
    at_work: Arc<AtWork>,
}

impl Live {
    pub fn new(hub: Arc<Hub>, bus: Option<Arc<Bus>>, at_work: Arc<AtWork>) -> Self {
        Self { hub, bus, at_work }
    }

    /// Who is at work, as this node knows.
    pub fn at_work(&self) -> &Arc<AtWork> {
        &self.at_work
    }

    /// Hands a commit to its readers. Whoever has posted or left is at work no more.
    pub fn publish(&self, commit: Commit) {
        for message in commit.frames.messages() {
            self.end_turns_of(&commit.room_id, message);
        }
        if let Some(bus) = &self.bus {
            bus.publish_commit(&commit.room_id, commit.head);
        }
        self.hub.publish(commit);
    }

    /// Whether anybody reads the room.
    pub fn is_read(&self, room: &RoomId) -> bool {
        self.hub.has_listeners(room) || self.bus.as_ref().is_some_and(|bus| bus.is_read(room))
    }

    /// Tells what a member does, and what it has written so far.
    pub fn publish_typing(&self, room: &RoomId, event: AgentTyping, text: Option<String>) {
        if let Some(bus) = &self.bus {
            let text = text.clone().filter(|_| bus.is_read(room));
            bus.publish_typing(room, event.clone(), text);
        }
        self.at_work.record_typing(room, event, text);
    }

    /// Ends a member's turn.
    pub fn end_turn(&self, room: &RoomId, user: &str, role: RoleClass, reason: &IdleReason) {
        if let Some(event) = self.at_work.end_turn(room, user, role, reason)
            && let Some(bus) = &self.bus
        {
            bus.publish_typing(room, event, None);
        }
    }

    /// An agent that is called is still at work.
    pub fn refresh_turn(&self, room: &RoomId, user: &UserId) {
        if let Some(event) = self.at_work.refresh_turn(room, user)
            && let Some(bus) = &self.bus
        {
            bus.publish_typing(room, event, None);
        }
    }

    /// Stops an agent, whichever node calls it or is read by it.
    pub fn stop_agent(&self, room: &RoomId, stop: AgentStop) {
        self.at_work.stop_agent(room, &stop);
        if let Some(bus) = &self.bus {
            bus.publish_stop(room, stop);
        }
    }

    /// Lets whoever makes the calls for a room look at it, on any node. It has not moved on.
    pub fn wake_dispatcher(&self, room: &RoomId, head: Cursor) {
        self.hub.dirty_rooms().mark_dirty(room);
        if let Some(bus) = &self.bus {
            bus.publish_commit(room, head);
        }
    }

    /// Tells a member on its own streams.
    pub fn publish_to_member(
        &self,
        room: &RoomId,
        user: &UserId,
        kind: EventKind,
        data: &impl Serialize,
    ) {
        let frame = ephemeral(kind, data);
        if let Some(bus) = &self.bus {
            bus.publish_to_member(room, user, &frame);
        }
        let to = Audience::Member(user.clone());
        self.hub.publish_ephemeral(room, Ephemeral { to, frame });
    }

    fn end_turns_of(&self, room: &RoomId, message: &Message) {
        match (&message.r#type, &message.event) {
            (MessageType::Chat, _) if message.edited_at.is_none() => {
                let role = match message.via {
                    Via::Web => RoleClass::Human,
                    _ => RoleClass::Agent,
                };
                self.end_turn(room, &message.sender_user_id, role, &IdleReason::Posted);
            }
            (
                _,
                Some(Notice::MemberLeft { user_id, .. } | Notice::MemberRemoved { user_id, .. }),
            ) => {
                for role in [RoleClass::Agent, RoleClass::Human] {
                    self.end_turn(room, user_id, role, &IdleReason::Left);
                }
            }
            _ => {}
        }
    }
}
