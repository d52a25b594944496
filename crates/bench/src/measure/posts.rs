//! Durable posts a second: each poster waits for its 201 before it posts again, and every
//! subscriber receives every message. The clock stops at the last delivery, not at the last 201.

use std::time::{Duration, Instant};

use super::{Plan, SUBSCRIBERS};
use crate::Result;
use crate::audience::Audience;
use crate::content::{BYTES, Content};
use crate::report::{Cell, Table};
use crate::stats::{median, quantile};
use crate::target::http::Http;
use crate::target::jetstream::JetStream;
use crate::target::{Kind, Poster, Target};

/// How many post at once.
const POSTERS: [usize; 2] = [64, 16];

enum Running {
    Http(Http),
    JetStream(JetStream),
}

impl Running {
    async fn start(kind: Kind) -> Result<Self> {
        Ok(match kind {
            Kind::Ceiling => Self::Http(Http::ceiling().await?),
            Kind::Server => Self::Http(Http::server(POSTERS[0]).await?),
            Kind::JetstreamAlways => Self::JetStream(JetStream::start(true).await?),
            Kind::JetstreamDefault => Self::JetStream(JetStream::start(false).await?),
        })
    }

    async fn round(&self, posters: usize, length: Duration) -> Result<Round> {
        match self {
            Self::Http(target) => round(target, posters, length).await,
            Self::JetStream(target) => round(target, posters, length).await,
        }
    }
}

/// What one round gave.
pub struct Round {
    /// How many were posted and delivered.
    pub posts_a_second: f64,
    /// What the target's processors did for a post, which other work on the machine blurs less.
    microseconds_a_post: f64,
}

/// Takes the measurement.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let mut running = Vec::new();
    for &kind in &plan.targets {
        running.push((kind, Running::start(kind).await?));
    }
    let mut rows = Vec::new();
    for posters in POSTERS {
        let mut results: Vec<Vec<Round>> = running.iter().map(|_| Vec::new()).collect();
        for number in 1..=plan.rounds {
            for ((kind, target), rounds) in running.iter().zip(&mut results) {
                let name = kind.name();
                let round = target
                    .round(posters, plan.length)
                    .await
                    .map_err(|error| format!("{name}: {error}"))?;
                let rate = round.posts_a_second;
                eprintln!("  {posters} posters, round {number}, {name}: {rate:.0}/s");
                rounds.push(round);
            }
        }
        rows.extend(compare(&plan.targets, posters, &results));
    }
    Ok(Table {
        name: "posts",
        title: format!(
            "Durable posts a second: {BYTES}-byte messages, one room, {SUBSCRIBERS} subscribers"
        ),
        columns: vec![
            "target",
            "posters",
            "posts/s",
            "least",
            "most",
            "of ceiling",
            "CPU us/post",
        ],
        rows,
    })
}

/// A row for each target.
fn compare(targets: &[Kind], posters: usize, results: &[Vec<Round>]) -> Vec<Vec<Cell>> {
    let rates = |rounds: &[Round]| -> Vec<f64> {
        rounds.iter().map(|round| round.posts_a_second).collect()
    };
    let results = targets.iter().zip(results);
    let ceiling = results
        .clone()
        .find(|(kind, _)| **kind == Kind::Ceiling)
        .map(|(_, rounds)| median(&rates(rounds)));
    let row = |(kind, rounds): (&Kind, &Vec<Round>)| {
        let rates = rates(rounds);
        let costs: Vec<f64> = rounds
            .iter()
            .map(|round| round.microseconds_a_post)
            .collect();
        vec![
            Cell::text(kind.name()),
            Cell::Number(posters as f64, 0),
            Cell::Number(median(&rates), 0),
            Cell::Number(quantile(&rates, 0.0), 0),
            Cell::Number(quantile(&rates, 1.0), 0),
            Cell::ratio(median(&rates), ceiling),
            Cell::Number(median(&costs), 1),
        ]
    };
    results.map(row).collect()
}

/// Posts for so long, and on until all is delivered.
pub async fn round<T: Target>(target: &T, posters: usize, length: Duration) -> Result<Round> {
    let mut audience = Audience::open(target, SUBSCRIBERS, |_| ()).await?;
    let mut ready = Vec::with_capacity(posters);
    for number in 0..posters {
        ready.push(target.poster(number).await?);
    }
    let first = ready[0].post(&Content::new(Duration::ZERO)).await?;
    audience.reached(first).await?;

    let worked = target.process().processor_time()?;
    let start = Instant::now();
    let tasks: Vec<_> = ready
        .into_iter()
        .map(|poster| tokio::spawn(post_until(poster, start + length)))
        .collect();
    let (mut posts, mut last) = (0, first);
    for task in tasks {
        let (count, seq) = task.await??;
        posts += count;
        last = last.max(seq);
    }
    audience.reached(last).await?;
    let elapsed = start.elapsed().as_secs_f64();
    let worked = target.process().processor_time()? - worked;

    if last - first != posts {
        return Err(format!("{posts} posts were numbered {first} to {last}").into());
    }
    Ok(Round {
        posts_a_second: posts as f64 / elapsed,
        microseconds_a_post: worked * 1e6 / posts as f64,
    })
}

/// Posts one message after another; gives how many and the last one's number.
async fn post_until(mut poster: impl Poster, end: Instant) -> Result<(u64, u64)> {
    let content = Content::new(Duration::ZERO);
    let (mut posts, mut last) = (0, 0);
    while Instant::now() < end {
        last = poster.post(&content).await?;
        posts += 1;
    }
    Ok((posts, last))
}
