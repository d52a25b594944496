//! From stored rows to what travels.

use crate::{
    auth::secrets::Secrets,
    clock::Now,
    config::Limits,
    error::{Error, Result},
    services::change::exchanges,
    store::{members::MemberRow, rooms::RoomRow},
};
use protocol::{MemberView, Room};
use std::str::FromStr;

/// A word or id from the store as its type. What is stored was checked when it came in.
pub fn stored<T: FromStr<Err: std::fmt::Display>>(word: &str) -> Result<T> {
    word.parse()
        .map_err(|error: T::Err| Error::internal(format!("stored {word:?}: {error}")))
}

pub fn room(row: &RoomRow, limits: &Limits, now: Now) -> Result<Room> {
    Ok(Room {
        room_id: row.room_id.clone(),
        name: row.name.clone(),
        owner_user_id: stored(&row.owner_user_id)?,
        created_at: row.created_at,
        archived: row.archived,
        visibility: row.visibility,
        agent_exchanges_without_person: exchanges::allowed(row, limits),
        agent_exchanges_left: exchanges::left(row, limits, now),
    })
}

pub fn member(row: &MemberRow, online: bool, secrets: &Secrets) -> Result<MemberView> {
    Ok(MemberView {
        user_id: stored(&row.user_id)?,
        user_name: row.user_name.clone(),
        member_kind: row.member_kind.clone(),
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
