//! The measurements, a file for each.

pub mod backfill;
pub mod idle;
pub mod latency;
pub mod posts;
pub mod start;

use std::time::Duration;

use clap::ValueEnum;

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

impl Measurement {
    /// Takes the measurement.
    pub async fn take(self, plan: &Plan) -> Result<Table> {
        match self {
            Self::Posts => posts::measure(plan).await,
            Self::Latency => latency::measure(plan).await,
            Self::Idle => idle::measure(plan).await,
            Self::Backfill => backfill::measure(plan).await,
            Self::Start => start::measure(plan).await,
        }
    }
}
