//! The measurements, a file for each.

pub mod backfill;
pub mod fanout;
pub mod idle;
pub mod latency;
pub mod leaderboard;
pub mod posts;
pub mod search;
pub mod start;

use std::time::Duration;

use clap::ValueEnum;
use tokio::time::timeout;

use crate::Result;
use crate::report::Table;
use crate::target::Kind;

/// How many streams are open while posts are measured.
const SUBSCRIBERS: usize = 20;

/// The measurements by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Measurement {
    /// Durable posts a second.
    Posts,
    /// From post to delivery.
    Latency,
    /// Memory of idle streams.
    Idle,
    /// Reading back.
    Backfill,
    /// From start to health.
    Start,
    /// From post to the calls of agents, some of which are bad.
    Fanout,
    /// Reading leaderboards.
    Leaderboard,
    /// Searching, and what the index costs posts.
    Search,
}

/// How a measurement is to be taken.
pub struct Plan {
    /// What to measure.
    pub targets: Vec<Kind>,
    /// How often, in turns, so that all share the machine's good and bad moments.
    pub rounds: usize,
    /// How long each round lasts.
    pub length: Duration,
}

impl Plan {
    /// The time after which a measurement hangs and is given up.
    fn timeout(&self) -> Duration {
        Duration::from_secs(1200) + self.length * (4 * self.rounds * self.targets.len()) as u32
    }
}

impl Measurement {
    /// Takes the measurement.
    pub async fn take(self, plan: &Plan) -> Result<Table> {
        timeout(plan.timeout(), self.take_within_deadline(plan))
            .await
            .map_err(|_| format!("{self:?} took too long"))?
    }

    async fn take_within_deadline(self, plan: &Plan) -> Result<Table> {
        match self {
            Self::Posts => posts::measure(plan).await,
            Self::Latency => latency::measure(plan).await,
            Self::Idle => idle::measure(plan).await,
            Self::Backfill => backfill::measure(plan).await,
            Self::Start => start::measure(plan).await,
            Self::Fanout => fanout::measure(plan).await,
            Self::Leaderboard => leaderboard::measure(plan).await,
            Self::Search => search::measure(plan).await,
        }
    }
}
