//! From post to delivery in a room that is in use but not busy.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval_at};

use super::{Plan, SUBSCRIBERS};
use crate::Result;
use crate::audience::Audience;
use crate::content::{Content, sent};
use crate::report::{Cell, Table};
use crate::stats::quantile;
use crate::target::http::Http;
use crate::target::jetstream::JetStream;
use crate::target::{Kind, Poster, Target};

const POSTS_A_SECOND: u32 = 50;

/// Enough that a slow answer does not hold back the next post.
const POSTERS: u32 = 10;

/// Takes the measurement.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let length = plan.length * plan.rounds as u32;
    let mut rows = Vec::new();
    for &kind in &plan.targets {
        let latencies = match kind {
            Kind::Ceiling => deliveries(&Http::ceiling().await?, length).await?,
            Kind::Server => deliveries(&Http::server(POSTERS as usize).await?, length).await?,
            Kind::JetstreamAlways => deliveries(&JetStream::start(true).await?, length).await?,
            Kind::JetstreamDefault => deliveries(&JetStream::start(false).await?, length).await?,
        };
        rows.push(vec![
            Cell::text(kind.name()),
            Cell::Number(latencies.len() as f64, 0),
            Cell::Number(quantile(&latencies, 0.5), 2),
            Cell::Number(quantile(&latencies, 0.99), 2),
        ]);
    }
    Ok(Table {
        name: "latency",
        title: format!(
            "From post to delivery: {POSTS_A_SECOND} posts a second, {SUBSCRIBERS} subscribers"
        ),
        columns: vec!["target", "deliveries", "p50 ms", "p99 ms"],
        rows,
    })
}

/// Posts at an even pace and gives each delivery's delay in milliseconds.
async fn deliveries<T: Target>(target: &T, length: Duration) -> Result<Vec<f64>> {
    let clock = Instant::now();
    let delays = Arc::new(Mutex::new(Vec::new()));
    let observe = {
        let delays = delays.clone();
        move |data: &[u8]| {
            if let Some(sent) = sent(data) {
                let delay = clock.elapsed().saturating_sub(sent).as_secs_f64() * 1000.0;
                delays
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(delay);
            }
        }
    };
    let mut audience = Audience::open(target, SUBSCRIBERS, observe).await?;
    let mut tasks = Vec::new();
    let start = Instant::now();
    for number in 0..POSTERS {
        let poster = target.poster(number as usize).await?;
        let first = start + Duration::from_secs(1) * number / POSTS_A_SECOND;
        tasks.push(tokio::spawn(post_evenly(poster, clock, first, length)));
    }
    let mut last = 0;
    for task in tasks {
        last = last.max(task.await??);
    }
    audience.reached(last).await?;
    drop(audience);
    let delays = std::mem::take(&mut *delays.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(delays)
}

/// Posts its share of the messages; gives the last one's number.
async fn post_evenly(
    mut poster: impl Poster,
    clock: Instant,
    first: Instant,
    length: Duration,
) -> Result<u64> {
    let mut ticks = interval_at(
        first.into(),
        Duration::from_secs(1) * POSTERS / POSTS_A_SECOND,
    );
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = 0;
    while clock.elapsed() < length {
        ticks.tick().await;
        last = poster.post(&Content::now(clock)).await?;
    }
    Ok(last)
}
