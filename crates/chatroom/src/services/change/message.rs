//! Building messages. Each takes its room's next seq.

use crate::{
    clock::Now,
    store::{group::NewMessage, rooms::RoomRow},
};
use protocol::{MessageType, Usage, UserId, Via};

/// What a member says.
#[derive(Debug)]
pub struct Said {
    pub user_id: UserId,
    pub user_name: Option<String>,
    pub via: Via,
    pub content: String,
    pub reply_to_seq: Option<i64>,
    pub depth: i64,
    pub client_key: Option<String>,
    pub usage: Option<Usage>,
    /// Whether agents are called for it.
    pub calls_agents: bool,
}

/// A member's message.
pub fn chat(room: &mut RoomRow, said: Said, now: Now) -> NewMessage {
    NewMessage {
        room_id: room.room_id.clone(),
        seq: room.next_seq(),
        sender_user_id: said.user_id,
        sender_user_name: said.user_name,
        via: said.via,
        r#type: MessageType::Chat,
        content: said.content,
        reply_to_seq: said.reply_to_seq,
        reply_chain_depth: said.depth,
        created_at: now.seconds(),
        client_key: said.client_key,
        calls_agents: said.calls_agents,
        usage: said.usage,
    }
}

/// A notice of the server's own. It calls nobody.
pub fn notice(room: &mut RoomRow, content: String, now: Now) -> NewMessage {
    NewMessage {
        room_id: room.room_id.clone(),
        seq: room.next_seq(),
        sender_user_id: UserId::system(),
        sender_user_name: None,
        via: Via::System,
        r#type: MessageType::System,
        content,
        reply_to_seq: None,
        reply_chain_depth: 0,
        created_at: now.seconds(),
        client_key: None,
        calls_agents: false,
        usage: None,
    }
}

/// A message of the server's own that agents are called for.
pub fn system_call(room: &mut RoomRow, content: String, now: Now) -> NewMessage {
    NewMessage {
        calls_agents: true,
        ..notice(room, content, now)
    }
}
