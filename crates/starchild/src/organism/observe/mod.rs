//! What is seen of a running organism: every hop goes to a file, to the page and
//! to a collector of spans, whichever are wanted; counts are there to be scraped.

pub mod metrics;
pub mod recent;
mod spans;
mod trace;

use crate::telemetry;
use agentserver::trace::Hop;
use recent::Recent;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use trace::TraceFile;

/// Hops that wait to be told; more are left out, and the log says so.
const WAITING: usize = 65_536;

/// Those who are told of hops.
pub struct Observers {
    trace: Option<TraceFile>,
    recent: Option<Arc<Recent>>,
}

impl Observers {
    /// Everyone who wants to know.
    pub async fn new(trace: Option<&Path>, recent: Option<Arc<Recent>>) -> Result<Self, String> {
        let trace = match trace {
            None => None,
            Some(path) => {
                let created = TraceFile::create(path).await;
                Some(created.map_err(|error| format!("{}: {error}", path.display()))?)
            }
        };
        Ok(Self { trace, recent })
    }

    /// Tells them until the sender is dropped. Nothing where nobody wants to know.
    pub fn start(self) -> Option<(mpsc::Sender<Hop>, JoinHandle<std::io::Result<()>>)> {
        let is_wanted = self.trace.is_some() || self.recent.is_some() || telemetry::is_on();
        is_wanted.then(|| {
            let (sender, hops) = mpsc::channel(WAITING);
            (sender, tokio::spawn(self.tell(hops)))
        })
    }

    async fn tell(mut self, mut hops: mpsc::Receiver<Hop>) -> std::io::Result<()> {
        while let Some(hop) = hops.recv().await {
            spans::export(&hop);
            if let Some(recent) = &self.recent {
                recent.push(&hop);
            }
            if let Some(trace) = &mut self.trace {
                trace.write(&hop).await?;
                if hops.is_empty() {
                    trace.flush().await?;
                }
            }
        }
        match &mut self.trace {
            Some(trace) => trace.flush().await,
            None => Ok(()),
        }
    }
}
