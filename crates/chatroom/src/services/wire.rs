//! From stored rows to what travels.

use crate::{
    auth::secrets::Secrets,
    clock::Now,
    config::Limits,
    services::change::exchanges,
    store::{members::MemberRow, rooms::RoomRow},
};
use protocol::{MemberView, Room};

pub fn room(row: &RoomRow, limits: &Limits, now: Now) -> Room {
    Room {
        room_id: row.room_id.clone(),
        name: row.name.clone(),
        owner_user_id: row.owner_user_id.clone(),
        created_at: row.created_at,
        archived: row.archived,
        visibility: row.visibility,
        topic: row.topic.clone(),
        agent_exchanges_without_person: exchanges::allowed(row, limits),
        agent_exchanges_left: exchanges::left(row, limits, now),
    }
}

pub fn member(row: &MemberRow, online: bool, secrets: &Secrets) -> MemberView {
    MemberView {
        user_id: row.user_id.clone(),
        user_name: row.user_name.clone(),
        member_kind: row.member_kind.clone(),
        role: row.role.clone(),
        joined_at: row.joined_at,
        has_agent_endpoint: row.agent_endpoint.is_some(),
        has_akm_key: row.has_akm_key,
        key_stale: row.key_stale,
        online,
        agent_card_url: row.agent_card_url.clone(),
        picture: None,
        avatar_seed: secrets.pseudonym(row.user_id.as_str()),
        last_error: None,
        wake: None,
        welcome_score: None,
    }
}
