//! Who may enter a room, and as what. Decided here, for every handler, and for posts, which ask with
//! what they have loaded for a whole group.

use crate::{
    auth::{self, Caller, Credential, ReadRight, TokenType, User},
    error::{Error, Result},
    services::rooms::reserved,
    store::{Conn, keys::KeyRow, members::MemberRow, rooms::RoomRow},
};
use protocol::{ErrorCode, RoomId, Scope, UserId};
use std::borrow::Borrow;

/// A caller who is a member of the room, or holds a member's key.
pub struct RoomAccess {
    pub room: RoomRow,
    pub member: MemberRow,
    /// The key the caller came with, where it is one.
    pub key: Option<KeyRow>,
}

/// A caller who may read the room.
pub enum ReadAccess {
    /// As a member.
    Member(Box<RoomAccess>),
    /// Because the room is public.
    Visitor(Box<RoomRow>),
}

/// Whether the room is locked until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomLock {
    /// It may change meanwhile.
    Unlocked,
    /// Nobody else changes it meanwhile: the caller is about to. A key that may only read is
    /// refused.
    Locked,
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
pub async fn member(
    conn: &mut Conn,
    caller: &Caller,
    room: &RoomId,
    lock: RoomLock,
) -> Result<RoomAccess> {
    if matches!(caller, Caller::Anonymous) {
        return Err(Error::missing_bearer());
    }
    let found = find(conn, room, lock).await?;
    let entry = enter(conn, caller, found).await?;
    if let (RoomLock::Locked, Some(key)) = (lock, &entry.key) {
        refuse_read_only(key.scope)?;
    }
    Ok(entry)
}

/// The caller as somebody who may read the room.
pub async fn reader(conn: &mut Conn, caller: &Caller, room: &RoomId) -> Result<ReadAccess> {
    let found = find(conn, room, RoomLock::Unlocked).await?;
    if matches!(caller, Caller::Anonymous) {
        return visitor(found);
    }
    match (caller, enter(conn, caller, found.clone()).await) {
        (_, Ok(entry)) => Ok(ReadAccess::Member(Box::new(entry))),
        // Whoever signed in reads no less than nobody at all does.
        (Caller::User(_), Err(refused)) => visitor(found).map_err(|_| refused),
        (_, Err(refused)) => Err(refused),
    }
}

fn visitor(found: Option<RoomRow>) -> Result<ReadAccess> {
    Ok(ReadAccess::Visitor(Box::new(public_room(found)?)))
}

/// The room, if anybody may see it.
pub fn public_room(found: Option<RoomRow>) -> Result<RoomRow> {
    let room = found.filter(RoomRow::is_public);
    room.ok_or_else(Error::room_not_found)
}

/// The room for its owner, or for an operator, who may do this in any room.
pub async fn owner_or_operator(
    conn: &mut Conn,
    caller: &Caller,
    room: &RoomId,
    lock: RoomLock,
) -> Result<RoomRow> {
    if operator(caller).is_ok() {
        return find(conn, room, lock)
            .await?
            .ok_or_else(Error::room_not_found);
    }
    Ok(member(conn, caller, room, lock).await?.as_owner()?.room)
}

async fn find(conn: &mut Conn, room: &RoomId, lock: RoomLock) -> Result<Option<RoomRow>> {
    Ok(match lock {
        RoomLock::Unlocked => conn.room(room).await?,
        RoomLock::Locked => conn.lock_room(room).await?,
    })
}

async fn enter(conn: &mut Conn, caller: &Caller, room: Option<RoomRow>) -> Result<RoomAccess> {
    let bearer = Bearer::from(caller);
    let room = bearer.open(room)?;
    let found = match bearer.user() {
        Some(user) => conn.member(&room.room_id, user).await?,
        None => None,
    };
    Ok(RoomAccess {
        member: bearer.member(found)?,
        room,
        key: match caller {
            Caller::RoomKey(key) => Some(key.clone()),
            _ => None,
        },
    })
}

/// What somebody presents at a room's door: nothing, or a bearer that holds.
#[derive(Debug, Clone, Copy)]
pub enum Bearer<'a> {
    Nothing,
    User(&'a UserId),
    /// A key of this room, made for this member.
    RoomKey {
        room: &'a RoomId,
        user: &'a UserId,
    },
    Identity,
}

impl<'a> Bearer<'a> {
    /// The member that it would stand for.
    pub fn user(self) -> Option<&'a UserId> {
        match self {
            Self::User(user) | Self::RoomKey { user, .. } => Some(user),
            Self::Nothing | Self::Identity => None,
        }
    }

    /// The room that was asked for, if this may open it.
    pub fn open<R: Borrow<RoomRow>>(self, room: Option<R>) -> Result<R> {
        match self {
            Self::Nothing => Err(Error::missing_bearer()),
            Self::Identity => Err(Error::new(
                ErrorCode::TokenInvalid,
                "An identity token opens no room by itself; mint a room key with reissue-token",
            )),
            Self::User(_) => room.ok_or_else(Error::room_not_found),
            Self::RoomKey { room: own, .. } => {
                let room = room.ok_or_else(Error::room_not_found)?;
                match room.borrow().room_id == *own {
                    true => Ok(room),
                    false => Err(foreign_key(room.borrow())),
                }
            }
        }
    }

    /// The member that it stands for, as found in the room that it opened.
    pub fn member<M>(self, found: Option<M>) -> Result<M> {
        found.ok_or_else(|| match self {
            // A key ends with the membership that it was made for.
            Self::RoomKey { .. } => auth::key_ended(),
            Self::Nothing | Self::User(_) | Self::Identity => Error::new(
                ErrorCode::NotAMember,
                "You are not a member of this room; join it first",
            ),
        })
    }
}

impl<'a> From<&'a Caller> for Bearer<'a> {
    fn from(caller: &'a Caller) -> Self {
        match caller {
            Caller::Anonymous => Self::Nothing,
            Caller::User(user) => Self::User(&user.id),
            Caller::RoomKey(key) => Self::RoomKey {
                room: &key.room_id,
                user: &key.user_id,
            },
            Caller::Identity(_) => Self::Identity,
        }
    }
}

impl<'a> From<&'a Credential> for Bearer<'a> {
    fn from(credential: &'a Credential) -> Self {
        match credential {
            Credential::None => Self::Nothing,
            Credential::User(user) => Self::User(&user.id),
            Credential::RoomKey(claims) => Self::RoomKey {
                room: &claims.room_id,
                user: &claims.user_id,
            },
            Credential::Identity(_) => Self::Identity,
        }
    }
}

/// Whether a key with this scope may change anything.
pub fn refuse_read_only(scope: Scope) -> Result<()> {
    match scope {
        Scope::ViewPost => Ok(()),
        Scope::View => Err(Error::new(
            ErrorCode::KeyScopeInsufficient,
            "This room key may read and change nothing",
        )),
    }
}

/// What the holder of another room's key is told: nothing of a private room.
fn foreign_key(room: &RoomRow) -> Error {
    if room.is_public() {
        Error::new(
            ErrorCode::KeyScopeInsufficient,
            "This room key is for another room",
        )
    } else {
        Error::room_not_found()
    }
}

impl RoomAccess {
    /// The right to read that this caller has just proven.
    pub fn into_read_right(self, caller: &Caller) -> ReadRight {
        ReadRight {
            room_id: self.room.room_id,
            user_id: self.member.user_id,
            jti: self.key.map(|key| key.jti),
            issued_at: match caller {
                Caller::User(user) => user.issued_at,
                Caller::Anonymous | Caller::RoomKey(_) | Caller::Identity(_) => None,
            },
        }
    }

    /// Whether this is the owner, with a user token.
    pub fn is_owner(&self) -> bool {
        self.key.is_none() && self.member.is_owner()
    }

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

    /// Whether this is the member itself, and nobody who was given a key of theirs.
    pub fn is_oneself(&self) -> bool {
        self.key.as_ref().is_none_or(KeyRow::is_own)
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
