//! Making searchable what was said.

use crate::{app::App, services::search::index, store::DbError};
use protocol::RoomId;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// What comes together is written together.
const GATHER: Duration = Duration::from_millis(200);
/// Others write between two batches.
const BETWEEN_BATCHES: Duration = Duration::from_millis(5);
/// While others post, of forty parts of the time thirty-nine are theirs.
const PARTS_OF_OTHERS: u32 = 39;
/// How often to look for what nobody told of: another node died, or this one did.
const CATCH_UP_EVERY: Duration = Duration::from_secs(30);
const ROOMS: i64 = 100;

/// Indexes all rooms. What it has not come to yet is in the store, so it goes on after a crash.
pub async fn run(app: App) {
    let mut catch_up_at = Instant::now();
    loop {
        if let Err(error) = index_next(&app, &mut catch_up_at).await {
            tracing::warn!(%error, "what was said last cannot be searched yet; it is tried again");
            tokio::time::sleep(CATCH_UP_EVERY).await;
            catch_up_at = Instant::now();
        }
    }
}

async fn index_next(app: &App, catch_up_at: &mut Instant) -> Result<(), DbError> {
    if Instant::now() >= *catch_up_at {
        catch_up(app).await?;
        *catch_up_at = Instant::now() + CATCH_UP_EVERY;
    }
    let Ok(moved) = timeout_at(*catch_up_at, app.hub.unindexed_rooms().next()).await else {
        return Ok(());
    };
    let rooms: Vec<RoomId> = moved.into_keys().collect();
    tokio::time::sleep(GATHER).await;
    index_rooms(app, rooms).await
}

/// Whatever is not searchable yet.
async fn catch_up(app: &App) -> Result<(), DbError> {
    loop {
        let rooms = app.db.read().await?.rooms_to_index(ROOMS).await?;
        if rooms.is_empty() {
            return Ok(());
        }
        index_rooms(app, rooms).await?;
    }
}

async fn index_rooms(app: &App, mut rooms: Vec<RoomId>) -> Result<(), DbError> {
    while !rooms.is_empty() {
        let posted_before = app.traffic.pending();
        let batch = index::index(&app.db, &rooms).await?;
        rooms = batch.left;
        tokio::time::sleep(BETWEEN_BATCHES).await;
        if app.traffic.pending() != posted_before {
            tokio::time::sleep(batch.took * PARTS_OF_OTHERS).await;
        }
    }
    Ok(())
}
