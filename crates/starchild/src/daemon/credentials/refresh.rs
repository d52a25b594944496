//! Keeps the agent's credentials: identity tokens are replaced before they end, and a key is fetched
//! for a room that has none here: its file is lost, or it is a reserved room, which is joined
//! without one.

use super::{key, queue::KeyQueue};
use crate::{
    daemon::retry::ErrorAction,
    home::{AgentHome, RoomAddress},
};
use client::{Client, ClientError};
use std::{collections::HashSet, rc::Rc, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// How often identity tokens are looked at, at least and at most.
const CHECK_EVERY: Duration = Duration::from_secs(3600);
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// After a renewal that failed for now.
const RETRY_AFTER: Duration = Duration::from_secs(300);

/// The rooms that the agent is in and whose file is not there.
pub fn rooms_without_key(home: &AgentHome) -> Vec<RoomAddress> {
    let known = home.identities().ok().flatten();
    let rooms = known
        .iter()
        .flat_map(|file| file.all())
        .flat_map(|identity| {
            let rooms = identity.rooms.iter();
            rooms.map(|room| RoomAddress::new(&identity.server, room))
        });
    let lost = |room: &RoomAddress| !matches!(home.room(room), Ok(Some(_)));
    rooms.filter(lost).collect()
}

/// How many rooms the agent is in, whether their key is here yet or not.
pub fn count_rooms(home: &AgentHome) -> usize {
    let rooms = home.rooms().unwrap_or_default();
    let joined = rooms.iter().filter(|room| room.left.is_none()).count();
    joined + rooms_without_key(home).len()
}

/// Works for as long as the daemon does; woken when a key is missing.
pub async fn run(
    home: AgentHome,
    key_missing: Rc<Notify>,
    queue: KeyQueue,
    client_of: impl Fn(&str) -> Result<Client, ClientError>,
) {
    let mut fresh_at = Instant::now();
    loop {
        if Instant::now() >= fresh_at {
            let fresh_for = match key::refresh_identities(&home, &client_of).await {
                Ok(fresh_for) => fresh_for,
                Err(error) => {
                    tracing::warn!(%error, "the identity token is not renewed yet");
                    match error.action() {
                        ErrorAction::Retry(retry_after) => retry_after.unwrap_or(RETRY_AFTER),
                        _ => CHECK_EVERY,
                    }
                }
            };
            fresh_at = Instant::now() + fresh_for.clamp(AT_MOST_EVERY, CHECK_EVERY);
        }
        let recover = recover_keys(&home, &queue, &client_of);
        let _ = timeout_at(fresh_at, async {
            recover.await;
            key_missing.notified().await;
        })
        .await;
    }
}

async fn recover_keys(
    home: &AgentHome,
    queue: &KeyQueue,
    client_of: &impl Fn(&str) -> Result<Client, ClientError>,
) {
    let mut announced = HashSet::new();
    loop {
        let turn = queue.turn().await;
        let Some(room) = rooms_without_key(home).into_iter().next() else {
            return;
        };
        let recovered = match client_of(&room.server) {
            Ok(client) => key::recover(home, &client, &room).await,
            Err(error) => Err(error.into()),
        };
        let error = match recovered {
            Ok(_) => {
                turn.succeeded();
                tracing::info!(%room, "the room has a new key");
                continue;
            }
            Err(error) => error,
        };
        match error.action() {
            ErrorAction::Retry(retry_after) => {
                turn.postpone(retry_after);
                if announced.insert(room.clone()) {
                    tracing::info!(%room, %error, "the room has no key here yet; asking again");
                }
            }
            _ => {
                tracing::warn!(%room, %error, "there is no key for the room, so it is not followed");
                if home.unremember_room(&room).is_err() {
                    return;
                }
            }
        }
    }
}
