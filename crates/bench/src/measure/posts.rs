//! Durable posts a second: each poster waits for its 201 before it posts again, and every
//! subscriber receives every message. The clock stops at the last delivery, not at the last 201.

use std::time::{Duration, Instant};

use super::{Plan, SUBSCRIBERS};
use crate::Result;
use crate::audience::Audience;
use crate::content::{BYTES, Content};
use crate::report::{Cell, Table};
use crate::stats::median;
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

    async fn round(&self, posters: usize, length: Duration) -> Result<f64> {
        match self {
            Self::Http(target) => round(target, posters, length).await,
            Self::JetStream(target) => round(target, posters, length).await,
        }
    }
}

/// Takes the measurement.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let mut running = Vec::new();
    for &kind in &plan.targets {
        running.push((kind, Running::start(kind).await?));
    }
    let mut rows = Vec::new();
    for posters in POSTERS {
        let mut rates = vec![Vec::new(); running.len()];
        for number in 1..=plan.rounds {
            for ((kind, target), rates) in running.iter().zip(&mut rates) {
                let rate = target
                    .round(posters, plan.length)
                    .await
                    .map_err(|error| format!("{}: {error}", kind.name()))?;
                eprintln!(
                    "  {posters} posters, round {number}, {}: {rate:.0}/s",
                    kind.name()
                );
                rates.push(rate);
            }
        }
        let results = running.iter().zip(&rates);
        let ceiling = results
            .clone()
            .find(|((kind, _), _)| *kind == Kind::Ceiling)
            .map(|(_, rates)| median(rates));
        rows.extend(results.map(|((kind, _), rates)| {
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let most = rates.iter().copied().fold(0.0, f64::max);
            vec![
                Cell::text(kind.name()),
                Cell::Number(posters as f64, 0),
                Cell::Number(median(rates), 0),
                Cell::Number(least, 0),
                Cell::Number(most, 0),
                Cell::ratio(median(rates), ceiling),
            ]
        }));
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
        ],
        rows,
    })
}

/// Posts for so long and gives the rate at which messages were delivered to all.
async fn round<T: Target>(target: &T, posters: usize, length: Duration) -> Result<f64> {
    let mut audience = Audience::open(target, SUBSCRIBERS, |_| ()).await?;
    let mut ready = Vec::with_capacity(posters);
    for number in 0..posters {
        ready.push(target.poster(number).await?);
    }
    let first = ready[0].post(&Content::new(Duration::ZERO)).await?;
    audience.reached(first).await?;

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
    let rate = posts as f64 / start.elapsed().as_secs_f64();

    if last - first != posts {
        return Err(format!("{posts} posts were numbered {first} to {last}").into());
    }
    Ok(rate)
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
