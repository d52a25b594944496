//! Agents at work: what they say of a turn while it goes on, and how it is stopped, begun again, or
//! allowed what it asks for.

pub mod answer_anew;
pub mod consents;
pub mod stop;
pub mod typing;

use crate::{
    auth::{Caller, TokenType},
    error::{Error, Result},
    services::access::RoomAccess,
    store::{Conn, members::MemberRow, rooms::RoomRow},
};
use protocol::{RoleClass, UserId, Via};

/// An agent's owner: the user whose token it came with, or whoever made the invite it came with. The
/// room's owner where that person is not in the room any more, or was a visitor.
pub async fn owner_of(conn: &mut Conn, room: &RoomRow, agent: &MemberRow) -> Result<UserId> {
    if !agent.member_kind.is_external() {
        return Ok(agent.user_id.clone());
    }
    let inviter = conn.inviter_of(&room.room_id, &agent.user_id).await?;
    if let Some(inviter) = inviter
        && conn.member(&room.room_id, &inviter).await?.is_some()
    {
        return Ok(inviter);
    }
    Ok(room.owner_user_id.clone())
}

/// Whether the caller is a person who signed in, and so not an agent with its owner's token.
pub fn is_person(caller: &Caller) -> bool {
    matches!(caller, Caller::User(user) if user.token_type == TokenType::Access)
}

/// Whether what the caller says is a person's word or an agent's: as for what it posts.
pub fn role_of(caller: &Caller, entry: &RoomAccess) -> RoleClass {
    let posts_as = entry.key.as_ref().map(|key| &key.posts_as);
    match posts_as {
        Some(Via::Web) => RoleClass::Human,
        None if is_person(caller) => RoleClass::Human,
        _ => RoleClass::Agent,
    }
}

/// A message that somebody names has to be there.
pub fn refuse_unknown(room: &RoomRow, seq: Option<i64>) -> Result<()> {
    match seq {
        Some(seq) if !(1..=room.last_seq).contains(&seq) => Err(Error::bad_request(format!(
            "reply_to_seq {seq} names no message in this room"
        ))),
        _ => Ok(()),
    }
}
