//! From stored rows to what travels.

use super::posting::exchanges;
use crate::{
    auth::secrets::Secrets,
    clock::Now,
    config::Limits,
    error::{Error, Result},
    store::{group::NewMessage, members::MemberRow, messages::MessageRow, rooms::RoomRow},
};
use protocol::{MemberView, Message, MessageType, Room, Via};
use std::{collections::BTreeMap, str::FromStr};

/// A word or id from the store as its type. What is stored was checked when it came in.
pub fn stored<T: FromStr<Err: std::fmt::Display>>(word: &str) -> Result<T> {
    word.parse()
        .map_err(|error: T::Err| Error::internal(format!("stored {word:?}: {error}")))
}

pub fn message(row: MessageRow, rules_version: i64) -> Message {
    Message {
        seq: row.seq,
        sender_user_id: row.sender_user_id,
        sender_user_name: row.sender_user_name,
        via: row.via.parse().unwrap_or(Via::System),
        r#type: row.r#type.parse().unwrap_or(MessageType::System),
        content: row.content,
        reply_to_seq: row.reply_to_seq,
        reply_chain_depth: row.reply_chain_depth,
        rules_version,
        created_at: row.created_at,
        deleted: row.deleted,
        edited_at: row.edited_at,
        reactions: BTreeMap::new(),
        mentions_me: None,
        content_html: None,
        event: row
            .event
            .and_then(|event| serde_json::from_str(&event).ok()),
    }
}

pub fn new_message(new: NewMessage, rules_version: i64) -> Message {
    Message {
        seq: new.seq,
        sender_user_id: new.sender_user_id,
        sender_user_name: new.sender_user_name,
        via: new.via.parse().unwrap_or(Via::System),
        r#type: new.r#type.parse().unwrap_or(MessageType::System),
        content: new.content,
        reply_to_seq: new.reply_to_seq,
        reply_chain_depth: new.reply_chain_depth,
        rules_version,
        created_at: new.created_at,
        deleted: false,
        edited_at: None,
        reactions: BTreeMap::new(),
        mentions_me: None,
        content_html: None,
        event: None,
    }
}

pub fn room(row: &RoomRow, limits: &Limits, now: Now) -> Result<Room> {
    Ok(Room {
        room_id: stored(&row.room_id)?,
        name: row.name.clone(),
        owner_user_id: stored(&row.owner_user_id)?,
        created_at: row.created_at,
        archived: row.archived,
        visibility: stored(&row.visibility)?,
        agent_exchanges_without_person: exchanges::allowed(row, limits),
        agent_exchanges_left: exchanges::left(row, limits, now),
    })
}

pub fn member(row: &MemberRow, online: bool, secrets: &Secrets) -> Result<MemberView> {
    Ok(MemberView {
        user_id: stored(&row.user_id)?,
        user_name: row.user_name.clone(),
        member_kind: stored(&row.member_kind)?,
        role: stored(&row.role)?,
        joined_at: row.joined_at,
        has_agent_endpoint: row.agent_endpoint.is_some(),
        has_akm_key: row.has_akm_key,
        key_stale: row.key_stale,
        online,
        agent_card_url: row.agent_card_url.clone(),
        avatar_seed: secrets.pseudonym(&row.user_id),
        last_error: None,
        welcome_score: None,
    })
}
