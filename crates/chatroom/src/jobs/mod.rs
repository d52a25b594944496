//! What the server does of its own accord, for as long as it runs.

mod a2a;
mod consents;
mod denylist;
mod erase;
mod inbox;
pub mod jwks;
mod search;
mod sweep;

use crate::{app::App, events};
use runtime::Shutdown;
use std::time::Duration;
use tokio::task::JoinSet;

/// Jobs that look into the database begin so long after each other: looks that are due at one time
/// would each open a connection.
const BETWEEN: Duration = Duration::from_millis(40);

/// The jobs of a running server. They end when a shutdown begins, or with this: none of them leaves
/// anything half done.
pub struct Jobs {
    tasks: JoinSet<()>,
    shutdown: Shutdown,
}

impl Jobs {
    pub fn start(app: &App) -> Self {
        let mut jobs = Self {
            tasks: JoinSet::new(),
            shutdown: app.shutdown.clone(),
        };
        jobs.begin(0, app.live.at_work().clone().end_silent_turns());
        jobs.begin(0, inbox::run(app.clone()));
        jobs.begin(0, erase::run(app.clone()));
        jobs.begin(0, events::reconcile(app.hub.clone(), app.db.clone()));
        if app.config.search.enabled {
            jobs.begin(1, search::run(app.clone()));
        }
        jobs.begin(2, a2a::run(app.clone()));
        jobs.begin(3, consents::run(app.clone()));
        jobs.begin(4, sweep::run(app.clone()));
        jobs.begin(5, denylist::run(app.clone()));
        if let Some(url) = app.config.auth.jwks_url.clone() {
            jobs.begin(6, jwks::run(app.clone(), url));
        }
        jobs
    }

    fn begin(&mut self, nth: u32, job: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown.clone();
        self.tasks.spawn(async move {
            let job = async {
                tokio::time::sleep(BETWEEN * nth).await;
                job.await;
            };
            tokio::select! {
                () = job => {}
                () = shutdown.begun() => {}
            }
        });
    }
}
