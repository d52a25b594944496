//! Deleted texts are gone from the disk, too.

use crate::app::App;
use std::time::Duration;

/// Deletions that come together are erased together.
const ERASE_AFTER: Duration = Duration::from_secs(5);

/// A deleted text stands in the database's write-ahead log until that is emptied.
pub async fn run(app: App) {
    // A server that was killed may not have come to it.
    app.text_deleted.notify_one();
    loop {
        app.text_deleted.notified().await;
        loop {
            tokio::time::sleep(ERASE_AFTER).await;
            match app.db.empty_wal().await {
                Ok(true) => break,
                // A reader was in the way.
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "deleted texts are still in the database's log; it is tried again");
                }
            }
        }
    }
}
