//! Telling people on their streams that something happened in their other rooms.

use crate::{app::App, services::people::inbox};
use protocol::RoomId;
use std::time::Duration;

/// What happens meanwhile is told together.
const GATHER: Duration = Duration::from_millis(500);

/// What is missed here is found when the inbox is next looked at.
pub async fn run(app: App) {
    loop {
        let moved = app.hub.users().moved_rooms().next().await;
        let rooms: Vec<RoomId> = moved.into_keys().collect();
        if let Err(error) = inbox::notify_moved_rooms(&app, &rooms).await {
            tracing::debug!(%error, "cannot tell people of their other rooms");
        }
        tokio::time::sleep(GATHER).await;
    }
}
