//! A copy of a server must not call the agents that the original calls: they would answer twice,
//! and with effects outside. So a restored database carries a mark, and agents are called once the
//! operator has taken it away.

use crate::{app::App, store::DbError};
use std::time::Duration;

/// Where the database keeps the mark.
pub const MARK: &str = "calls_paused";
/// What operators are told.
pub const PAUSED: &str = "agents are not called: this is a restored copy. Once the original is gone for good, run `sc-chatroom calls resume`";
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Returns once agents may be called.
pub async fn resumed(app: &App) {
    loop {
        match is_marked(app).await {
            Ok(marked) => {
                if marked && !app.lanes.set_paused(true) {
                    tracing::warn!(PAUSED);
                }
                if !marked {
                    if app.lanes.set_paused(false) {
                        tracing::info!("agents are called from now on");
                    }
                    return;
                }
            }
            Err(error) => tracing::warn!(%error, "cannot find out whether agents may be called"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn is_marked(app: &App) -> Result<bool, DbError> {
    Ok(app.db.read().await?.meta(MARK).await?.is_some())
}
