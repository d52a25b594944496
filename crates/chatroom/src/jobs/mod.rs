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
use tokio::task::JoinSet;

/// The jobs of a running server.
pub struct Jobs(JoinSet<()>);

impl Jobs {
    pub fn start(app: &App) -> Self {
        let mut jobs = JoinSet::new();
        jobs.spawn(events::follow(app.hub.clone(), app.db.clone()));
        jobs.spawn(app.live.at_work().clone().watch());
        jobs.spawn(sweep::run(app.clone()));
        jobs.spawn(erase::run(app.clone()));
        if app.config.search.enabled {
            jobs.spawn(search::run(app.clone()));
        }
        jobs.spawn(inbox::run(app.clone()));
        jobs.spawn(consents::run(app.clone()));
        jobs.spawn(a2a::run(app.clone()));
        if !app.db.is_sqlite() {
            jobs.spawn(denylist::run(app.clone()));
        }
        if let Some(url) = app.config.auth.jwks_url.clone() {
            jobs.spawn(jwks::run(app.clone(), url));
        }
        Self(jobs)
    }

    /// Ends them all: none of them leaves anything half done.
    pub fn stop(mut self) {
        self.0.abort_all();
    }
}
