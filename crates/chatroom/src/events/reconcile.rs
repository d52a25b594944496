//! Reconciling with the store: readers learn of what nobody told them.
//!
//! A commit is published by the node that made it. That fails when the bus is away, when the node
//! dies in between, or when the commit's answer was lost on the way and nobody knows that it
//! happened. So each node looks at the heads of the rooms that are read on it, and at what was
//! revoked: the store is the truth for both, and the bus only faster.

use super::hub::Hub;
use crate::store::{Db, DbError};
use protocol::{Cursor, RoomId};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::time::MissedTickBehavior;

const EVERY: Duration = Duration::from_secs(1);
/// Heads are looked at once in so many rounds.
const HEADS_EVERY: u32 = 2;
/// Rooms that are asked for at once.
const PAGE: usize = 1000;
/// What was revoked is looked at again for so many seconds: a transaction that began earlier may
/// commit later.
const WINDOW_SECONDS: i64 = 60;

/// Reconciles with the store for as long as the server runs.
pub async fn reconcile(hub: Arc<Hub>, db: Db) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heads = Heads::default();
    let mut revocations = Revocations::default();
    for round in 0u32.. {
        ticks.tick().await;
        if let Err(error) = revocations.reconcile(&hub, &db).await {
            tracing::debug!(%error, "cannot look for what was revoked");
        }
        if round.is_multiple_of(HEADS_EVERY)
            && let Err(error) = heads.reconcile(&hub, &db).await
        {
            tracing::debug!(%error, "cannot look for what readers missed");
        }
    }
}

/// Where the rooms that are read here had come to in the last round.
#[derive(Default)]
struct Heads(Vec<(RoomId, Cursor)>);

impl Heads {
    async fn reconcile(&mut self, hub: &Hub, db: &Db) -> Result<(), DbError> {
        // What was committed a moment ago is about to be published: only what is still untold one
        // round later was missed.
        for (room, head) in std::mem::take(&mut self.0) {
            if !hub.has_told(&room, head) {
                hub.wake_readers(&room, head);
            }
        }
        let rooms = hub.rooms();
        if rooms.is_empty() {
            return Ok(());
        }
        let mut conn = db.read().await?;
        for rooms in rooms.chunks(PAGE) {
            let found = conn.heads(rooms).await?;
            self.0.extend(found.into_iter().map(|head| {
                let cursor = head.cursor();
                (head.room_id, cursor)
            }));
        }
        Ok(())
    }
}

/// What was revoked lately, by the database's clock.
#[derive(Default)]
struct Revocations {
    reconciled_at: Option<i64>,
    seen: HashSet<i64>,
}

impl Revocations {
    async fn reconcile(&mut self, hub: &Hub, db: &Db) -> Result<(), DbError> {
        let mut conn = db.read().await?;
        let now = conn.database_seconds().await?;
        let rows = conn.revocations_since(now - WINDOW_SECONDS).await?;
        drop(conn);
        // After a long silence, or when the clock was changed, the window does not reach back to
        // what was seen.
        let unbroken = self
            .reconciled_at
            .is_some_and(|before| (before..before + WINDOW_SECONDS / 2).contains(&now));
        if !unbroken {
            hub.rooms().iter().for_each(|room| hub.recheck(room));
        }
        let new = rows.iter().filter(|row| !self.seen.contains(&row.id));
        let rooms: HashSet<&RoomId> = new.map(|row| &row.room_id).collect();
        if !rooms.is_empty() {
            // An operator's command may have written it, in a process of its own.
            db.note_write_by_others().await;
        }
        rooms.into_iter().for_each(|room| hub.recheck(room));
        self.seen = rows.into_iter().map(|row| row.id).collect();
        self.reconciled_at = Some(now);
        Ok(())
    }
}
