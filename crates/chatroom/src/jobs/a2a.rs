//! Telling those who want to know of A2A tasks.

use crate::{app::App, services::a2a::push::Notifier};
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const EVERY: Duration = Duration::from_secs(1);

pub async fn run(app: App) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut notifier = Notifier::new(app);
    loop {
        ticks.tick().await;
        if let Err(error) = notifier.send_due().await {
            tracing::debug!(%error, "cannot look for notifications; it is tried again soon");
        }
    }
}
