//! Following the store: readers learn of what nobody told them.
//!
//! A commit is published by the node that made it. That fails when the bus is away, when the node
//! dies in between, or when the commit's answer was lost on the way and nobody knows that it
//! happened. So each node looks at the heads of the rooms that are read on it.

use super::hub::Hub;
use crate::store::{Db, DbError};
use protocol::Cursor;
use std::{sync::Arc, time::Duration};
use tokio::time::MissedTickBehavior;

const EVERY: Duration = Duration::from_secs(2);
/// Rooms that are asked for at once.
const PAGE: usize = 1000;

/// Follows the store for as long as the server runs.
pub async fn follow(hub: Arc<Hub>, db: Db) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heads: Vec<(String, Cursor)> = Vec::new();
    loop {
        ticks.tick().await;
        // What was committed a moment ago is about to be published: only what is still untold one
        // look later was missed.
        for (room, head) in std::mem::take(&mut heads) {
            if !hub.has_told(&room, head) {
                hub.wake(&room, head);
            }
        }
        match heads_of(&hub.rooms(), &db).await {
            Ok(found) => heads = found,
            Err(error) => tracing::debug!(%error, "cannot look for what readers missed"),
        }
    }
}

async fn heads_of(rooms: &[String], db: &Db) -> Result<Vec<(String, Cursor)>, DbError> {
    let mut heads = Vec::with_capacity(rooms.len());
    if rooms.is_empty() {
        return Ok(heads);
    }
    let mut conn = db.read().await?;
    for rooms in rooms.chunks(PAGE) {
        let found = conn.heads(rooms).await?;
        heads.extend(found.into_iter().map(|head| {
            let cursor = head.cursor();
            (head.room_id, cursor)
        }));
    }
    Ok(heads)
}
