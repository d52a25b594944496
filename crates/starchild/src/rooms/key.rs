//! Room keys: getting a new one when the old one is lost or ends soon.

use crate::home::{AgentHome, FileError, Identity, RoomFile, Secret};
use client::{Client, ClientError};
use protocol::{IdentityCreated, RoomId};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Why there is no new key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The server said no, or was not reached.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What is kept on this machine cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is nothing to show to the server.
    #[error("there is no identity token for {0} on this machine")]
    NoIdentity(String),
}

/// The time, in unix seconds.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}

/// How long a token may still be used before it should be replaced: for two thirds of its life.
pub fn fresh_for(issued_at: i64, expires_at: i64) -> Duration {
    let life = (expires_at - issued_at).max(0);
    let due = expires_at - life / 3;
    Duration::from_secs(u64::try_from(due - now()).unwrap_or(0))
}

/// Gets a room's key back with the agent's identity token, and keeps it.
pub async fn recover(
    home: &AgentHome,
    client: &Client,
    server: &str,
    room: &RoomId,
) -> Result<RoomFile, KeyError> {
    let identity = home
        .identity(server)?
        .ok_or_else(|| KeyError::NoIdentity(server.to_owned()))?;
    let bearer = client.with_token(identity.identity_token.expose())?;
    let file = reissue(home, &bearer, server, room).await?;
    home.remember_room(server, room)?;
    Ok(file)
}

/// Trades any token of the agent's for a new key of the room, and keeps it.
pub async fn reissue(
    home: &AgentHome,
    bearer: &Client,
    server: &str,
    room: &RoomId,
) -> Result<RoomFile, KeyError> {
    let known = home.room(room).ok().flatten();
    let user_id = home.user_id();
    let issued = bearer.reissue_token(room, &user_id).await?;
    let file = RoomFile {
        room_id: room.clone(),
        server: server.to_owned(),
        user_id,
        user_name: known.as_ref().and_then(|file| file.user_name.clone()),
        joined_with: known.and_then(|file| file.joined_with),
        member_token: issued.member_token.into(),
        issued_at: now(),
        expires_at: issued.expires_at,
        left: None,
    };
    home.save_room(&file)?;
    Ok(file)
}

/// Keeps an identity token.
pub fn keep_identity(
    home: &AgentHome,
    server: &str,
    token: Secret,
    expires_at: i64,
) -> Result<(), FileError> {
    home.save_identity(Identity {
        server: server.to_owned(),
        identity_token: token,
        issued_at: now(),
        expires_at,
        rooms: Default::default(),
    })
}

/// Replaces identity tokens that end soon, and makes them where there are only room keys.
pub async fn keep_identities_fresh(
    home: &AgentHome,
    client_of: impl Fn(&str) -> Result<Client, ClientError>,
) -> Result<(), KeyError> {
    let known = home.identities()?;
    for identity in known.iter().flat_map(|file| file.all()) {
        if fresh_for(identity.issued_at, identity.expires_at).is_zero() {
            let bearer =
                client_of(&identity.server)?.with_token(identity.identity_token.expose())?;
            let fresh: IdentityCreated = bearer.refresh_identity().await?;
            let token = fresh.identity_token.into();
            keep_identity(home, &identity.server, token, fresh.expires_at)?;
            tracing::info!(server = identity.server, "the identity token is renewed");
        }
    }
    for room in home.rooms()?.iter().filter(|room| room.left.is_none()) {
        if home.identity(&room.server)?.is_none() {
            let bearer = client_of(&room.server)?.with_token(room.member_token.expose())?;
            let made = bearer.create_identity().await?;
            let token = made.identity_token.into();
            keep_identity(home, &room.server, token, made.expires_at)?;
        }
        home.remember_room(&room.server, &room.room_id)?;
    }
    Ok(())
}
