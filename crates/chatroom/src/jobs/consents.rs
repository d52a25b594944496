//! Ending requests for consent that nobody answered.

use crate::{app::App, services::turns::consents};
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const EVERY: Duration = Duration::from_secs(2);

pub async fn run(app: App) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = consents::expire(&app).await {
            tracing::debug!(%error, "cannot end requests for consent; it is tried again soon");
        }
    }
}
