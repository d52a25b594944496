//! `POST /chat/stream`, read: who says what, in which thread. What a caller claims counts only as far
//! as its key goes: the room is the thread's, never what the request says besides.

use super::refusal::Refusal;
use crate::backend::Me;
use protocol::{Message, MessageType, RoomId, Via};
use serde::Deserialize;

/// Threads of rooms begin with this.
const ROOM_THREAD: &str = "chatroom-";
/// Longer than any message of a room, with its heading.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// How many messages of context are taken; the newest.
const MAX_CONTEXT: usize = 200;

/// The thread in which a room speaks.
pub fn thread_of(room: &RoomId) -> String {
    format!("{ROOM_THREAD}{room}")
}

/// What a caller sends. Fields that nobody knows are passed over: servers may add some.
#[derive(Debug, Deserialize)]
pub struct ChatRequest {
    message: String,
    /// Which thread.
    pub thread_id: String,
    #[serde(default)]
    thread_metadata: Option<ThreadMetadata>,
    #[serde(default)]
    context: Vec<ContextMessage>,
    #[serde(default)]
    recipient: Option<Recipient>,
}

#[derive(Debug, Deserialize)]
struct ThreadMetadata {
    room_id: Option<RoomId>,
    seq: i64,
    sender_user_id: String,
    via: Via,
    #[serde(default)]
    reply_to_seq: Option<i64>,
    #[serde(default)]
    reply_chain_depth: i64,
    #[serde(default)]
    room_rules_version: i64,
}

#[derive(Debug, Deserialize)]
struct ContextMessage {
    seq: i64,
    sender_user_id: String,
    #[serde(default)]
    sender_user_name: Option<String>,
    via: Via,
    content: String,
    #[serde(default)]
    reply_to_seq: Option<i64>,
    #[serde(default)]
    created_at: i64,
}

/// Whom the caller means to call.
#[derive(Debug, Deserialize)]
struct Recipient {
    user_id: String,
    #[serde(default)]
    user_name: Option<String>,
    /// Whether the message mentions it, as the room sees it.
    #[serde(default)]
    mentioned: Option<bool>,
}

/// A request that was understood.
#[derive(Debug)]
pub enum Incoming {
    /// A room tells of a message.
    Room(Box<RoomCall>),
    /// The owner, or a program of theirs, asks something.
    Direct {
        /// In which thread.
        thread: String,
        /// What is asked.
        text: String,
    },
}

/// A room tells of a message.
#[derive(Debug)]
pub struct RoomCall {
    /// Which room.
    pub room: RoomId,
    /// The message.
    pub message: Message,
    /// What was said before, oldest first.
    pub recent: Vec<Message>,
    /// Who the room says the agent is.
    pub recipient: Option<Me>,
}

impl ChatRequest {
    /// Checks it, and tells rooms from everybody else.
    pub fn understood(self) -> Result<Incoming, Refusal> {
        if self.message.len() > MAX_MESSAGE_BYTES {
            return Err(Refusal::bad_request(format!(
                "message has more than {MAX_MESSAGE_BYTES} bytes"
            )));
        }
        if !super::keys::is_thread(&self.thread_id) {
            return Err(Refusal::bad_request(
                "thread_id is 1 to 200 characters of a-z A-Z 0-9 _ - . : @",
            ));
        }
        let room = self.thread_id.strip_prefix(ROOM_THREAD);
        let room: Option<RoomId> = room.and_then(|room| room.parse().ok());
        match (room, self.thread_metadata) {
            (Some(room), Some(metadata)) => {
                if metadata.room_id.is_some_and(|claimed| claimed != room) {
                    return Err(Refusal::bad_request(
                        "thread_metadata.room_id is not the thread's room",
                    ));
                }
                let heading = format!("[{room}] {} ({}): ", metadata.sender_user_id, metadata.via);
                let content = self.message.strip_prefix(&heading).unwrap_or(&self.message);
                let recent: Vec<_> = self.context.into_iter().map(Message::from).collect();
                let newest = recent.len().saturating_sub(MAX_CONTEXT);
                let from_context = recent.iter().find(|said| said.seq == metadata.seq);
                let sender_user_name = from_context.and_then(|said| said.sender_user_name.clone());
                Ok(Incoming::Room(Box::new(RoomCall {
                    message: Message {
                        seq: metadata.seq,
                        sender_user_name,
                        r#type: kind(&metadata.via),
                        sender_user_id: metadata.sender_user_id,
                        via: metadata.via,
                        content: content.to_owned(),
                        reply_to_seq: metadata.reply_to_seq,
                        reply_chain_depth: metadata.reply_chain_depth,
                        rules_version: metadata.room_rules_version,
                        mentions_me: self.recipient.as_ref().and_then(|me| me.mentioned),
                        ..blank()
                    },
                    recent: recent.into_iter().skip(newest).collect(),
                    recipient: self.recipient.map(Me::from),
                    room,
                })))
            }
            _ => Ok(Incoming::Direct {
                thread: self.thread_id,
                text: self.message,
            }),
        }
    }
}

impl From<ContextMessage> for Message {
    fn from(said: ContextMessage) -> Self {
        Self {
            seq: said.seq,
            sender_user_id: said.sender_user_id,
            sender_user_name: said.sender_user_name,
            r#type: kind(&said.via),
            via: said.via,
            content: said.content,
            reply_to_seq: said.reply_to_seq,
            created_at: said.created_at,
            ..blank()
        }
    }
}

impl From<Recipient> for Me {
    fn from(recipient: Recipient) -> Self {
        let name = recipient.user_name.as_deref().unwrap_or(&recipient.user_id);
        Self {
            mention_key: format!("@{name}"),
            user_id: recipient.user_id,
            user_name: recipient.user_name,
            owner_user_id: None,
        }
    }
}

/// What the owner asks, as a message.
pub fn direct_message(seq: i64, text: String) -> Message {
    Message {
        seq,
        sender_user_id: "owner".into(),
        content: text,
        ..blank()
    }
}

fn kind(via: &Via) -> MessageType {
    match via {
        Via::System => MessageType::System,
        _ => MessageType::Chat,
    }
}

fn blank() -> Message {
    Message {
        seq: 0,
        sender_user_id: String::new(),
        sender_user_name: None,
        via: Via::Web,
        r#type: MessageType::Chat,
        content: String::new(),
        reply_to_seq: None,
        reply_chain_depth: 0,
        rules_version: 0,
        created_at: 0,
        deleted: false,
        edited_at: None,
        reactions: Default::default(),
        mentions_me: None,
        content_html: None,
        event: None,
        usage: None,
        answers: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn request(thread: &str, metadata: Value) -> ChatRequest {
        serde_json::from_value(json!({
            "message": "[rm_a] u_alice (agent): Hello", "thread_id": thread, "channel": "chatroom",
            "thread_metadata": metadata, "something_new": 1,
            "recipient": {"user_id": "ext_otter", "user_name": "Otter"},
        }))
        .unwrap()
    }

    fn metadata(room: &str) -> Value {
        json!({"room_id": room, "seq": 43, "sender_user_id": "u_alice", "via": "agent",
               "reply_to_seq": 41, "reply_chain_depth": 1, "room_rules_version": 6})
    }

    #[test]
    fn a_rooms_call_is_read_without_its_heading() {
        let call = request("chatroom-rm_a", metadata("rm_a")).understood();
        let Ok(Incoming::Room(call)) = call else {
            panic!("{call:?}")
        };
        assert_eq!(call.message.content, "Hello");
        assert_eq!(
            (call.message.seq, call.message.reply_to_seq),
            (43, Some(41))
        );
        assert_eq!(call.message.rules_version, 6);
        assert_eq!(call.recipient.unwrap().mention_key, "@Otter");
    }

    #[test]
    fn a_room_is_what_the_key_is_for_and_not_what_the_request_claims() {
        assert!(
            request("chatroom-rm_a", metadata("rm_b"))
                .understood()
                .is_err()
        );
        // Another thread is no room, whatever stands beside it.
        let call = request("starchild-cli", metadata("rm_b")).understood();
        assert!(matches!(call, Ok(Incoming::Direct { .. })), "{call:?}");
    }
}
