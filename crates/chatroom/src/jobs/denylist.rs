//! Keeping up with whom other nodes keep out, and with what this one changed and then could not read.

use crate::{app::App, store::health::Trouble};
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(1);

/// Keeps up with what is done to the denylist.
pub async fn run(app: App) {
    loop {
        tokio::time::sleep(EVERY).await;
        match app.denylist.keep_up(&app.db).await {
            Ok(true) => app.hub.recheck_all(),
            Ok(false) => {}
            // A wrong row stays until somebody corrects it.
            Err(error) if Trouble::of(&error).is_none() => {
                tracing::error!(%error, "the denylist cannot be read, so what other nodes did to it is not in force");
            }
            Err(error) => tracing::debug!(%error, "cannot look at the denylist; it is tried again"),
        }
    }
}
