//! Keeps the agent's credentials: identity tokens are replaced before they end, and a key is fetched
//! for a room that has none here: its file is lost, or it is a reserved room, which is joined
//! without one.

use super::{key, queue::Mint};
use crate::{
    daemon::retry::Verdict,
    home::{AgentHome, RoomAddress},
};
use client::{Client, ClientError};
use std::{collections::HashSet, rc::Rc, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// How often identity tokens are looked at, at least and at most.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// After a renewal that failed for now.
const TRY_AGAIN: Duration = Duration::from_secs(300);

/// The rooms that the agent is in and whose file is not there.
pub fn lost_rooms(home: &AgentHome) -> Vec<RoomAddress> {
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
    joined + lost_rooms(home).len()
}

/// Works for as long as the daemon does; woken when a file is missed.
pub async fn keep(
    home: AgentHome,
    missed: Rc<Notify>,
    mint: Mint,
    client_of: impl Fn(&str) -> Result<Client, ClientError>,
) {
    let mut fresh_at = Instant::now();
    loop {
        if Instant::now() >= fresh_at {
            let fresh_for = match key::keep_identities_fresh(&home, &client_of).await {
                Ok(fresh_for) => fresh_for,
                Err(error) => {
                    tracing::warn!(%error, "the identity token is not renewed yet");
                    match error.verdict() {
                        Verdict::Wait(asked) => asked.unwrap_or(TRY_AGAIN),
                        _ => LOOK_EVERY,
                    }
                }
            };
            fresh_at = Instant::now() + fresh_for.clamp(AT_MOST_EVERY, LOOK_EVERY);
        }
        let recover = recover_all(&home, &mint, &client_of);
        let _ = timeout_at(fresh_at, async {
            recover.await;
            missed.notified().await;
        })
        .await;
    }
}

async fn recover_all(
    home: &AgentHome,
    mint: &Mint,
    client_of: &impl Fn(&str) -> Result<Client, ClientError>,
) {
    let mut told = HashSet::new();
    loop {
        let turn = mint.turn().await;
        let Some(room) = lost_rooms(home).into_iter().next() else {
            return;
        };
        let recovered = match client_of(&room.server) {
            Ok(client) => key::recover(home, &client, &room).await,
            Err(error) => Err(error.into()),
        };
        let error = match recovered {
            Ok(_) => {
                turn.done();
                tracing::info!(%room, "the room has a new key");
                continue;
            }
            Err(error) => error,
        };
        match error.verdict() {
            Verdict::Wait(asked) => {
                turn.put_off(asked);
                if told.insert(room.clone()) {
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
