//! A message to answer, for tests.

use super::{DaemonSession, Inbound, Me};
use protocol::{Message, MessageType, RoomText, Via};
use std::sync::Arc;

/// A message in `rm_8f3kz2` for an agent that is called MyBot.
pub fn inbound(content: &str) -> Inbound {
    let message = message(42, "Alice", content);
    Inbound {
        room_id: "rm_8f3kz2".parse().unwrap(),
        room_name: "rm_8f3kz2".into(),
        me: Me {
            user_id: "ext_my_bot.v2-3a9f1c20".into(),
            user_name: Some("MyBot".into()),
            mention_key: "@MyBot".into(),
            owner_user_id: None,
        },
        rules: Some(Arc::new(RoomText {
            content: "Be brief.".into(),
            version: message.rules_version,
            updated_at: None,
            updated_by: None,
        })),
        message,
        client: client::Client::new("http://127.0.0.1:9").unwrap(),
        recent: Vec::new(),
        session: Arc::new(DaemonSession {
            id: "20260503-024118".into(),
            log_dir: std::env::temp_dir(),
        }),
    }
}

/// A message of a person.
pub fn message(seq: i64, name: &str, content: &str) -> Message {
    Message {
        seq,
        sender_user_id: format!("ext_{}", name.to_lowercase()),
        sender_user_name: Some(name.into()),
        via: Via::Web,
        r#type: MessageType::Chat,
        content: content.into(),
        reply_to_seq: None,
        reply_chain_depth: 0,
        rules_version: 3,
        created_at: 1_745_300_000,
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
