//! Building messages. Each takes its room's next seq.

use super::Admission;
use crate::{
    clock::Now,
    config::Limits,
    store::{group::NewMessage, posting::AddressedBy, rooms::RoomRow},
};
use protocol::{MessageType, SYSTEM_USER, Usage, UserId, Via};

/// What a member says, before it has a seq.
#[derive(Debug)]
pub struct Draft<'a> {
    pub user_id: UserId,
    pub user_name: Option<String>,
    pub via: Via,
    pub content: String,
    pub reply_to_seq: Option<i64>,
    pub client_key: Option<String>,
    pub usage: Option<Usage>,
    /// Whether agents are called for it.
    pub calls_agents: bool,
    /// The members that it mentions.
    pub mentions: &'a [UserId],
    /// Whose message it answers.
    pub answered: Option<&'a UserId>,
}

/// A message that has entered a room, and what the server says about it right after.
#[derive(Debug)]
pub struct Entered<'a> {
    pub message: NewMessage,
    pub notice: Option<NewMessage>,
    pub mentions: &'a [UserId],
    answered: Option<&'a UserId>,
}

/// Lets a message that was admitted into the room.
pub fn enter<'a>(
    room: &mut RoomRow,
    admission: Admission,
    draft: Draft<'a>,
    limits: &Limits,
    now: Now,
) -> Entered<'a> {
    let notice = admission.enter(room, &draft.user_id, limits, now);
    let message = NewMessage {
        room_id: room.room_id.clone(),
        seq: room.next_seq(),
        sender_user_id: draft.user_id,
        sender_user_name: draft.user_name,
        via: draft.via,
        r#type: MessageType::Chat,
        content: draft.content,
        reply_to_seq: draft.reply_to_seq,
        reply_chain_depth: admission.depth,
        created_at: now.seconds(),
        client_key: draft.client_key,
        calls_agents: draft.calls_agents,
        usage: draft.usage,
    };
    let notice = notice.map(|words| self::notice(room, words, now));
    Entered {
        message,
        notice,
        mentions: draft.mentions,
        answered: draft.answered,
    }
}

impl Entered<'_> {
    /// Who is addressed by the message, and which agent, having spoken, has answered what it was told.
    /// An agent that does not say what it answers is taken to answer the newest message that addressed
    /// it.
    pub fn addressed(&self) -> impl Iterator<Item = (&UserId, Option<AddressedBy>)> {
        let message = &self.message;
        let by = AddressedBy {
            seq: message.seq,
            depth: message.reply_chain_depth,
            at: message.created_at,
        };
        // A person may speak to the agent of the same id.
        let spoke = Some(&message.sender_user_id).filter(|_| message.via == Via::Agent);
        let to = self.answered.into_iter().chain(self.mentions);
        to.filter(move |user| Some(*user) != spoke && user.as_str() != SYSTEM_USER)
            .map(move |user| (user, Some(by)))
            .chain(spoke.map(|user| (user, None)))
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

/// What somebody said elsewhere.
#[derive(Debug)]
pub struct ImportedDraft {
    pub user_id: UserId,
    pub user_name: Option<String>,
    pub content: String,
    pub reply_to_seq: Option<i64>,
    pub created_at: i64,
}

/// A message from elsewhere. It calls nobody.
pub fn imported(room: &mut RoomRow, draft: ImportedDraft) -> NewMessage {
    NewMessage {
        room_id: room.room_id.clone(),
        seq: room.next_seq(),
        sender_user_id: draft.user_id,
        sender_user_name: draft.user_name,
        via: Via::Import,
        // Whatever it was elsewhere, here it does not speak for the server.
        r#type: MessageType::Chat,
        content: draft.content,
        reply_to_seq: draft.reply_to_seq,
        reply_chain_depth: 0,
        created_at: draft.created_at,
        client_key: None,
        calls_agents: false,
        usage: None,
    }
}
