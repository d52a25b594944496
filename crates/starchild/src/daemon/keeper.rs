//! Keeps the agent's credentials: identity tokens are replaced before they end, and a key is fetched
//! for a room that has none here: its file is lost, or it is a reserved room, which is joined
//! without one.

use super::{
    pause::Pause,
    verdict::{Verdict, verdict},
};
use crate::{
    home::AgentHome,
    rooms::key::{self, KeyError},
};
use client::{Client, ClientError};
use protocol::RoomId;
use std::{rc::Rc, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

/// How often identity tokens are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// The rooms that the agent is in and whose file is not there, with their servers.
pub fn lost_rooms(home: &AgentHome) -> Vec<(String, RoomId)> {
    let known = home.identities().ok().flatten();
    let rooms = known
        .iter()
        .flat_map(|file| file.all())
        .flat_map(|identity| {
            let rooms = identity.rooms.iter();
            rooms.map(|room| (identity.server.clone(), room.clone()))
        });
    let lost = |(_, room): &(String, RoomId)| !matches!(home.room(room), Ok(Some(_)));
    rooms.filter(lost).collect()
}

/// Works for as long as the daemon does; woken when a file is missed.
pub async fn keep(
    home: AgentHome,
    missed: Rc<Notify>,
    client_of: impl Fn(&str) -> Result<Client, ClientError>,
) {
    let mut fresh_at = Instant::now();
    loop {
        if Instant::now() >= fresh_at {
            fresh_at = Instant::now() + LOOK_EVERY;
            if let Err(error) = key::keep_identities_fresh(&home, &client_of).await {
                tracing::warn!(%error, "the identity token is not renewed yet");
            }
        }
        recover_all(&home, &client_of).await;
        let rest = fresh_at.saturating_duration_since(Instant::now());
        let _ = timeout(rest, missed.notified()).await;
    }
}

async fn recover_all(home: &AgentHome, client_of: &impl Fn(&str) -> Result<Client, ClientError>) {
    let mut pause = Pause::default();
    while let Some((server, room)) = lost_rooms(home).into_iter().next() {
        let recovered = match client_of(&server) {
            Ok(client) => key::recover(home, &client, &server, &room).await,
            Err(error) => Err(error.into()),
        };
        match recovered {
            Ok(_) => {
                pause.reset();
                tracing::info!(%room, "the room has a new key");
            }
            Err(error) => match recovery_verdict(&error) {
                Verdict::Wait(asked) => {
                    tracing::info!(%room, %error, "the room has no key here yet; asking again");
                    sleep(asked.unwrap_or_else(|| pause.next())).await;
                }
                _ => {
                    tracing::warn!(%room, %error, "there is no key for the room, so it is not followed");
                    if home.unremember_room(&server, &room).is_err() {
                        return;
                    }
                }
            },
        }
    }
}

fn recovery_verdict(error: &KeyError) -> Verdict {
    match error {
        KeyError::Client(error) => verdict(error),
        KeyError::File(_) => Verdict::Wait(None),
        KeyError::NoIdentity(_) => Verdict::Skip,
    }
}
