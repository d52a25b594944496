//! Tidying up.

use crate::{
    app::App,
    clock::Now,
    services::{idempotency::KEPT_SECONDS, reputation::scorer, turns::stop::STOP_SECONDS},
    store::DbError,
};
use std::time::Duration;
use tokio::time::Instant;

/// Not with the start itself, which has enough to do.
const FIRST_SWEEP: Duration = Duration::from_secs(1);
const SWEEP_EVERY: Duration = Duration::from_secs(30);
const DAY_SECONDS: i64 = 86_400;

/// Forgets what is over: windows that have ended, old counts, events beyond those kept. Scores what
/// was said meanwhile.
pub async fn run(app: App) {
    let mut ticks = tokio::time::interval_at(Instant::now() + FIRST_SWEEP, SWEEP_EVERY);
    loop {
        ticks.tick().await;
        if let Err(error) = sweep(&app).await {
            tracing::warn!(%error, "cannot tidy up; it is tried again soon");
        }
    }
}

async fn sweep(app: &App) -> Result<(), DbError> {
    let now = Now::get();
    app.traffic.save(&app.db, &app.node, now).await?;
    let keep = app.config.stream.retain_events;
    let rooms = app.db.read().await?.rooms_to_prune(keep).await?;
    let mut tx = app.db.begin().await?;
    tx.forget_windows(now.millis()).await?;
    tx.forget_replies(now.seconds() - KEPT_SECONDS).await?;
    tx.forget_stops_before(now.seconds() - STOP_SECONDS).await?;
    tx.forget_a2a_pushes(now.seconds()).await?;
    tx.forget_traffic(now.minutes() - 120).await?;
    tx.forget_health_checks(now.seconds() - DAY_SECONDS).await?;
    let seconds = tx.database_seconds().await?;
    tx.forget_revocations(seconds - DAY_SECONDS).await?;
    tx.commit().await?;
    for room in rooms {
        let mut tx = app.db.begin().await?;
        tx.lock_room(&room).await?;
        tx.prune_events(&room, keep).await?;
        tx.commit().await?;
    }
    scorer::expire(&app.db, now).await?;
    scorer::score_all_rooms(&app.db).await
}
