//! Leaderboards over a million events: of the welcome room, and of all rooms. Before each read a
//! message is posted, so that a read scores it first.

use std::time::Instant;

use super::Plan;
use crate::Result;
use crate::content::Content;
use crate::http::request;
use crate::report::{Cell, Table};
use crate::seed;
use crate::stats::quantile;
use crate::target::http::Http;
use crate::target::{Kind, Poster, Target};

const EVENTS: u64 = 1_000_000;
const USERS: [u64; 2] = [1_000, 10_000];
const READS_A_ROUND: usize = 50;
const BOARDS: [&str; 4] = [
    "/leaderboard",
    "/leaderboard?window=7",
    "/rooms/rm_welcome/leaderboard",
    "/rooms/rm_welcome/leaderboard?window=7",
];

/// Takes the measurement of the room server.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let mut rows = Vec::new();
    if plan.targets.contains(&Kind::Server) {
        for users in USERS {
            let server = Http::server(1).await?;
            let server = server
                .restarted(|data| seed::score(data, EVENTS, users))
                .await?;
            for board in BOARDS {
                let times = read(&server, board, plan.rounds * READS_A_ROUND).await?;
                rows.push(vec![
                    Cell::text(board),
                    Cell::Number(users as f64, 0),
                    Cell::Number(times.len() as f64, 0),
                    Cell::Number(quantile(&times, 0.5), 1),
                    Cell::Number(quantile(&times, 0.99), 1),
                ]);
            }
        }
    }
    Ok(Table {
        name: "leaderboard",
        title: format!("Leaderboards over {EVENTS} events"),
        columns: vec!["board", "users", "reads", "p50 ms", "p99 ms"],
        rows,
    })
}

/// Reads the board so often; how long each took, in milliseconds.
async fn read(server: &Http, board: &str, reads: usize) -> Result<Vec<f64>> {
    let clock = Instant::now();
    let mut poster = server.poster(0).await?;
    let mut connection = server.connect().await?;
    let asked = request("GET", board, None, None);
    let mut times = Vec::with_capacity(reads);
    for _ in 0..reads {
        poster.post(&Content::now(clock)).await?;
        let start = Instant::now();
        let answer = connection.send(&asked).await?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        let places = memchr::memmem::find_iter(answer.body, b"\"rank\":").count();
        if answer.status != 200 || places != 20 {
            let body = String::from_utf8_lossy(answer.body);
            return Err(format!("{board} answered {}: {body}", answer.status).into());
        }
    }
    Ok(times)
}
