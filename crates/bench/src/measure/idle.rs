//! What ten thousand open streams cost in memory when nothing is said.

use std::time::Duration;

use tokio::time::sleep;

use super::Plan;
use crate::Result;
use crate::report::{Cell, Table};
use crate::target::http::Http;
use crate::target::{Kind, Target};

const STREAMS: usize = 10_000;

/// How long a program may settle before its memory is read.
const SETTLE: Duration = Duration::from_secs(2);

const KILOBYTE: f64 = 1024.0;
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// Takes the measurement of those targets that speak HTTP.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let mut rows = Vec::new();
    for &kind in &plan.targets {
        let target = match kind {
            Kind::Ceiling => Http::ceiling().await?,
            Kind::Server => Http::server(1).await?,
            Kind::JetstreamAlways | Kind::JetstreamDefault => continue,
        };
        sleep(SETTLE).await;
        let before = target.process().resident()? as f64;
        let mut streams = Vec::with_capacity(STREAMS);
        for _ in 0..STREAMS {
            streams.push(target.subscriber().await?);
        }
        sleep(SETTLE).await;
        let after = target.process().resident()? as f64;
        rows.push(vec![
            Cell::text(kind.name()),
            Cell::Number(before / MEGABYTE, 1),
            Cell::Number(after / MEGABYTE, 1),
            Cell::Number((after - before) / STREAMS as f64 / KILOBYTE, 1),
        ]);
    }
    Ok(Table {
        name: "idle",
        title: format!("{STREAMS} idle streams: resident memory"),
        columns: vec!["target", "idle MB", "with streams MB", "KB a stream"],
        rows,
    })
}
