//! Room keys: getting a new one when the old one is lost or ends soon.

use crate::home::{AgentHome, FileError, Identity, RoomAddress, RoomFile, Secret};
use client::{Client, ClientError};
use protocol::IdentityCreated;
use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

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

/// Gets a room's key back with the agent's identity token, or where that does not hold with the
/// key of another room, and keeps it.
pub async fn recover(
    home: &AgentHome,
    client: &Client,
    address: &RoomAddress,
) -> Result<RoomFile, KeyError> {
    let mut refused = KeyError::NoIdentity(address.server.clone());
    for token in tokens(home, address)? {
        let bearer = client.with_token(token.expose())?;
        match reissue(home, &bearer, address).await {
            Ok(file) => {
                home.remember_room(address)?;
                return Ok(file);
            }
            Err(KeyError::Client(error)) if error.status() == Some(401) => refused = error.into(),
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// What the agent can show to a server, the best first, without the key of this room.
fn tokens(home: &AgentHome, address: &RoomAddress) -> Result<Vec<Secret>, FileError> {
    let RoomAddress { server, room } = address;
    let identity = home.identity(server)?.map(|known| known.identity_token);
    let rooms = home.rooms()?.into_iter();
    let others =
        rooms.filter(|file| file.server == *server && file.room_id != *room && file.left.is_none());
    let keys = others.map(|file| file.member_token);
    Ok(identity.into_iter().chain(keys).collect())
}

/// Trades any token of the agent's for a new key of the room, and keeps it.
pub async fn reissue(
    home: &AgentHome,
    bearer: &Client,
    address: &RoomAddress,
) -> Result<RoomFile, KeyError> {
    let known = home.room(address).ok().flatten();
    let user_id = home.user_id();
    let issued = bearer.reissue_token(&address.room, &user_id).await?;
    let file = RoomFile {
        room_id: address.room.clone(),
        server: address.server.clone(),
        user_id,
        user_name: known.as_ref().and_then(|file| file.user_name.clone()),
        answer: known.as_ref().and_then(|file| file.answer),
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
pub fn save_identity(
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
        left: Default::default(),
    })
}

/// Replaces identity tokens that end soon, and makes them where there are only room keys. Gives the
/// time until the next one is due.
pub async fn refresh_identities(
    home: &AgentHome,
    client_of: impl Fn(&str) -> Result<Client, ClientError>,
) -> Result<Duration, KeyError> {
    let rooms = home.rooms()?;
    let rooms: Vec<_> = rooms.iter().filter(|room| room.left.is_none()).collect();
    let known = home.identities()?;
    let known = known.iter().flat_map(|file| file.all());
    let servers: BTreeSet<&str> = known
        .map(|identity| identity.server.as_str())
        .chain(rooms.iter().map(|room| room.server.as_str()))
        .collect();
    let mut due = Duration::MAX;
    for server in servers {
        let fresh_for = match home.identity(server)? {
            Some(identity) => fresh_for(identity.issued_at, identity.expires_at),
            None => Duration::ZERO,
        };
        due = due.min(match fresh_for.is_zero() {
            true => renew_identity(home, &client_of(server)?, server).await?,
            false => fresh_for,
        });
    }
    for room in rooms {
        home.remember_room(&room.address())?;
    }
    Ok(due)
}

/// Gets a new identity token for the old one, or where that does not hold for the key of a room.
/// Gives the time until it is due again.
async fn renew_identity(
    home: &AgentHome,
    client: &Client,
    server: &str,
) -> Result<Duration, KeyError> {
    let old = home.identity(server)?;
    let refreshed = match &old {
        Some(old) => {
            let bearer = client.with_token(old.identity_token.expose())?;
            Some(bearer.refresh_identity().await)
        }
        None => None,
    };
    let made = match refreshed {
        Some(Err(error)) if error.status() == Some(401) => {
            make_identity(home, client, server).await?.ok_or(error)?
        }
        Some(refreshed) => refreshed?,
        None => match make_identity(home, client, server).await? {
            Some(made) => made,
            None => return Ok(Duration::MAX),
        },
    };
    save_identity(home, server, made.identity_token.into(), made.expires_at)?;
    if old.is_some() {
        tracing::info!(server, "the identity token is renewed");
    }
    Ok(fresh_for(now(), made.expires_at))
}

/// An identity token for the first room key that holds.
async fn make_identity(
    home: &AgentHome,
    client: &Client,
    server: &str,
) -> Result<Option<IdentityCreated>, KeyError> {
    for room in home.rooms()? {
        if room.server == server && room.left.is_none() {
            let bearer = client.with_token(room.member_token.expose())?;
            match bearer.create_identity().await {
                Err(error) if error.status() == Some(401) => {}
                made => return Ok(Some(made?)),
            }
        }
    }
    Ok(None)
}
