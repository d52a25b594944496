//! Who may enter a room, and as what.

use crate::{
    auth::{self, Caller, TokenType, User},
    error::{Error, Result},
    services::rooms::reserved,
    store::{Conn, keys::KeyRow, members::MemberRow, rooms::RoomRow},
};
use protocol::{ErrorCode, RoomId};

/// A caller who is a member of the room, or holds a member's key.
pub struct Entry {
    pub room: RoomRow,
    pub member: MemberRow,
    /// The key the caller came with, where it is one.
    pub key: Option<KeyRow>,
}

/// A caller who may read the room.
pub enum Reading {
    /// As a member.
    Member(Box<Entry>),
    /// Because the room is public.
    Visitor(Box<RoomRow>),
}

/// Whether the room is held until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It may change meanwhile.
    No,
    /// Nobody else changes it meanwhile: the caller is about to. A key that may only read is
    /// refused.
    Yes,
}

/// The user of a user token; what else was presented does not do.
pub fn user(caller: &Caller) -> Result<&User> {
    match caller {
        Caller::User(user) => Ok(user),
        Caller::Anonymous => Err(Error::missing_bearer()),
        Caller::RoomKey(_) | Caller::Identity(_) => Err(Error::new(
            ErrorCode::TokenInvalid,
            "This endpoint takes a user token",
        )),
    }
}

/// Refuses whoever is no operator.
pub fn operator(caller: &Caller) -> Result<()> {
    match user(caller)?.token_type {
        TokenType::Admin => Ok(()),
        TokenType::Container | TokenType::Access => {
            Err(Error::forbidden("This endpoint takes an admin token"))
        }
    }
}

/// Whether an endpoint that the caller names may be on a private network, where the settings let
/// trusted callers do so. A person who signed in from outside is no more trusted than an invitee.
pub fn may_name_private_endpoint(caller: &Caller) -> bool {
    matches!(caller, Caller::User(user) if user.internal)
}

/// The caller as a member of the room.
pub async fn member(conn: &mut Conn, caller: &Caller, room: &RoomId, hold: Hold) -> Result<Entry> {
    if matches!(caller, Caller::Anonymous) {
        return Err(Error::missing_bearer());
    }
    let found = find(conn, room, hold).await?;
    let entry = enter(conn, caller, found).await?;
    match (hold, &entry.key) {
        (Hold::Yes, Some(key)) if !key.may_post() => Err(scope_insufficient()),
        _ => Ok(entry),
    }
}

/// The caller as somebody who may read the room.
pub async fn reader(conn: &mut Conn, caller: &Caller, room: &RoomId) -> Result<Reading> {
    let found = find(conn, room, Hold::No).await?;
    if matches!(caller, Caller::Anonymous) {
        return visitor(found);
    }
    match (caller, enter(conn, caller, found.clone()).await) {
        (_, Ok(entry)) => Ok(Reading::Member(Box::new(entry))),
        // Whoever signed in reads no less than nobody at all does.
        (Caller::User(_), Err(refused)) => visitor(found).map_err(|_| refused),
        (_, Err(refused)) => Err(refused),
    }
}

fn visitor(found: Option<RoomRow>) -> Result<Reading> {
    let room = found.filter(RoomRow::is_public);
    let room = room.ok_or_else(Error::room_not_found)?;
    Ok(Reading::Visitor(Box::new(room)))
}

async fn find(conn: &mut Conn, room: &RoomId, hold: Hold) -> Result<Option<RoomRow>> {
    Ok(match hold {
        Hold::No => conn.room(room).await?,
        Hold::Yes => conn.lock_room(room).await?,
    })
}

async fn enter(conn: &mut Conn, caller: &Caller, room: Option<RoomRow>) -> Result<Entry> {
    match caller {
        Caller::Anonymous => Err(Error::missing_bearer()),
        Caller::Identity(_) => Err(Error::new(
            ErrorCode::TokenInvalid,
            "An identity token opens no room by itself; mint a room key with reissue-token",
        )),
        Caller::User(user) => {
            let room = room.ok_or_else(Error::room_not_found)?;
            let member = conn.member(&room.room_id, &user.id).await?.ok_or_else(|| {
                Error::new(
                    ErrorCode::NotAMember,
                    "You are not a member of this room; join it first",
                )
            })?;
            Ok(Entry {
                room,
                member,
                key: None,
            })
        }
        Caller::RoomKey(key) => {
            let room = room.ok_or_else(Error::room_not_found)?;
            if key.room_id != room.room_id {
                return Err(foreign_key(&room));
            }
            // A key ends with the membership that it was made for.
            let member = conn
                .member(&room.room_id, &key.user_id)
                .await?
                .ok_or_else(auth::key_ended)?;
            Ok(Entry {
                room,
                member,
                key: Some(key.clone()),
            })
        }
    }
}

/// What the holder of another room's key is told: nothing of a private room.
pub fn foreign_key(room: &RoomRow) -> Error {
    if room.is_public() {
        Error::new(
            ErrorCode::KeyScopeInsufficient,
            "This room key is for another room",
        )
    } else {
        Error::room_not_found()
    }
}

impl Entry {
    /// The owner, with a user token: a key that was shared to let somebody post must not let them
    /// change the room.
    pub fn as_owner(self) -> Result<Self> {
        if self.room.is_reserved() {
            return Err(reserved::system_room());
        }
        if self.key.is_some() {
            return Err(Error::new(
                ErrorCode::KeyScopeInsufficient,
                "A room key does not let you manage the room; use the owner's user token",
            ));
        }
        if !self.member.is_owner() {
            return Err(Error::forbidden("Only the room's owner may do this"));
        }
        Ok(self)
    }

    /// The member itself: whoever was given a key of theirs reads and posts, and changes nothing
    /// about the member.
    pub fn as_oneself(self) -> Result<Self> {
        self.key.as_ref().map_or(Ok(()), refuse_shared)?;
        Ok(self)
    }

    /// The room while it can be changed.
    pub fn not_archived(self) -> Result<Self> {
        refuse_archived(&self.room)?;
        Ok(self)
    }
}

/// A key that was made to be given away opens its room and does nothing else.
pub fn refuse_shared(key: &KeyRow) -> Result<()> {
    match key.is_own() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::KeyScopeInsufficient,
            "This room key was made to be shared: it opens its room and nothing else. Use the \
             member_token or the identity_token that you got for yourself",
        )),
    }
}

/// The error for a key that may only read.
pub fn scope_insufficient() -> Error {
    Error::new(
        ErrorCode::KeyScopeInsufficient,
        "This room key may read and change nothing",
    )
}

/// An archived room takes no changes.
pub fn refuse_archived(room: &RoomRow) -> Result<()> {
    match room.archived {
        true => Err(archived()),
        false => Ok(()),
    }
}

/// The error for a room that takes no changes.
pub fn archived() -> Error {
    Error::new(
        ErrorCode::Archived,
        "The room is archived, so it is read-only",
    )
}
