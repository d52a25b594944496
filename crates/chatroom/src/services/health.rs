//! How the server is.

use crate::{app::App, clock::Now, error::Result};
use protocol::Health;

/// Whether the server can keep what it is told, and how much that is.
pub async fn read(app: &App) -> Result<Health> {
    app.storage.check(&app.db, &app.node).await?;
    let mut conn = app.db.read().await?;
    let an_hour_ago = Now::get().minutes() - 60;
    Ok(Health {
        status: "ok".to_owned(),
        active_rooms: conn.active_rooms().await?,
        messages_last_hour: conn.traffic_since(an_hour_ago).await? + app.traffic.pending(),
        warnings: app.warnings(),
    })
}
