//! Making searchable what was said.

use crate::{app::App, services::search::index, store::DbError};
use protocol::RoomId;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// What comes together is written together.
const GATHER: Duration = Duration::from_millis(200);
/// Others write between two batches.
const PAUSE: Duration = Duration::from_millis(5);
/// While others post, of forty parts of the time thirty-nine are theirs.
const PARTS_OF_OTHERS: u32 = 39;
/// How often to look for what nobody told of: another node died, or this one did.
const LOOK_EVERY: Duration = Duration::from_secs(30);
const ROOMS: i64 = 100;

/// Follows all rooms. What it has not come to yet is in the store, so it goes on after a crash.
pub async fn run(app: App) {
    let mut look_at = Instant::now();
    loop {
        if let Err(error) = follow(&app, &mut look_at).await {
            tracing::warn!(%error, "what was said last cannot be searched yet; it is tried again");
            tokio::time::sleep(LOOK_EVERY).await;
            look_at = Instant::now();
        }
    }
}

async fn follow(app: &App, look_at: &mut Instant) -> Result<(), DbError> {
    if Instant::now() >= *look_at {
        catch_up(app).await?;
        *look_at = Instant::now() + LOOK_EVERY;
    }
    let Ok(moved) = timeout_at(*look_at, app.hub.unindexed_rooms().next()).await else {
        return Ok(());
    };
    let rooms: Vec<RoomId> = moved.into_keys().collect();
    tokio::time::sleep(GATHER).await;
    write(app, rooms).await
}

/// Whatever is not searchable yet.
async fn catch_up(app: &App) -> Result<(), DbError> {
    loop {
        let rooms = app.db.read().await?.rooms_to_index(ROOMS).await?;
        if rooms.is_empty() {
            return Ok(());
        }
        write(app, rooms).await?;
    }
}

async fn write(app: &App, mut rooms: Vec<RoomId>) -> Result<(), DbError> {
    while !rooms.is_empty() {
        let posted_before = app.traffic.pending();
        let batch = index::index(&app.db, &rooms).await?;
        rooms = batch.left;
        tokio::time::sleep(PAUSE).await;
        if app.traffic.pending() != posted_before {
            tokio::time::sleep(batch.took * PARTS_OF_OTHERS).await;
        }
    }
    Ok(())
}
