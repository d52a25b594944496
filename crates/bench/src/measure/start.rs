//! From start to health, with a million messages to ignore. The file is in the page cache, as after
//! a restart of the program and not of the machine.

use std::time::Instant;

use super::Plan;
use crate::Result;
use crate::report::{Cell, Table};
use crate::stats::quantile;
use crate::target::Kind;
use crate::target::http::Http;

const MESSAGES: u64 = 1_000_000;

/// A start is short, so each round takes several.
const STARTS_A_ROUND: usize = 5;

/// Takes the measurement of the room server.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let mut rows = Vec::new();
    if plan.targets.contains(&Kind::Server) {
        let mut server = Http::server_with(MESSAGES).await?;
        let mut times = Vec::new();
        for _ in 0..plan.rounds * STARTS_A_ROUND {
            let mut start = Instant::now();
            server = server
                .restarted(|_| {
                    start = Instant::now();
                    Ok(())
                })
                .await?;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        rows.push(vec![
            Cell::text(Kind::Server.name()),
            Cell::Number(times.len() as f64, 0),
            Cell::Number(quantile(&times, 0.5), 1),
            Cell::Number(quantile(&times, 1.0), 1),
        ]);
    }
    Ok(Table {
        name: "start",
        title: format!("From start to /health with {MESSAGES} messages"),
        columns: vec!["target", "starts", "median ms", "slowest ms"],
        rows,
    })
}
