//! Measures the room server beside the limits it is held against.
//!
//! Everything runs on this machine and ends with this program. What each measurement means and how
//! to read it is in `docs/benchmarks.md`.

mod agents;
mod audience;
mod content;
mod http;
mod machine;
mod measure;
mod process;
mod report;
mod seed;
mod sse;
mod stats;
mod target;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use measure::{Measurement, Plan};
use target::Kind;

/// What can go wrong is only ever shown, so any error will do.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measures the room server beside the limits it is held against.
#[derive(Parser)]
struct Options {
    /// What to measure; everything if none is named.
    measurements: Vec<Measurement>,
    /// What to compare.
    #[arg(long, value_delimiter = ',', default_values = ["ceiling", "server", "jetstream-always", "jetstream-default"])]
    targets: Vec<Kind>,
    /// How many rounds the targets take in turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many seconds a round lasts.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Print JSON in place of tables.
    #[arg(long)]
    json: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    // Leaving by a signal must still stop what was started, so both end the same future.
    let outcome = tokio::select! {
        outcome = run(Options::parse()) => outcome,
        stop = stopped() => stop,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<()> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    let measurements = match &options.measurements[..] {
        [] => Measurement::value_variants(),
        named => named,
    };
    let plan = Plan {
        targets: possible(options.targets),
        rounds: options.rounds.max(1),
        length: Duration::from_secs(options.seconds.max(1)),
    };
    let machine = machine::describe();
    if !options.json {
        println!("{machine}\n");
    }
    let mut tables = Vec::new();
    for measurement in measurements {
        let table = measurement.take(&plan).await?;
        if !options.json {
            println!("{table}");
        }
        tables.push(table.json());
    }
    if options.json {
        println!(
            "{:#}",
            json!({ "machine": machine, "measurements": tables })
        );
    }
    Ok(())
}

/// The targets that can be measured here; the others are named with the reason.
fn possible(mut targets: Vec<Kind>) -> Vec<Kind> {
    targets.retain(|target| match target.obstacle() {
        None => true,
        Some(reason) => {
            eprintln!("  without {}: {reason}", target.name());
            false
        }
    });
    targets
}

async fn stopped() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    Err("stopped".into())
}
