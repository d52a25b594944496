//! Reading back: pages of 50 messages from all over the room, when it is small and when it is
//! large. The size of a room should not show.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::Plan;
use crate::Result;
use crate::report::{Cell, Table};
use crate::sse;
use crate::stats::median;
use crate::target::Kind;
use crate::target::http::Http;

const PAGE: u64 = 50;
const READERS: usize = 16;
const SMALL: u64 = 1_000;
const LARGE: u64 = 1_000_000;

/// A step without a factor in common with the rooms' sizes, so that reads are spread evenly.
const STRIDE: u64 = 7_368_787;

/// Takes the measurement of the room server.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let mut rows = Vec::new();
    if plan.targets.contains(&Kind::Server) {
        let small = Http::server_with(SMALL).await?;
        let large = Http::server_with(LARGE).await?;
        let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            of_small.push(round(&small, SMALL, plan.length).await?);
            of_large.push(round(&large, LARGE, plan.length).await?);
        }
        for (messages, rates) in [(SMALL, &of_small), (LARGE, &of_large)] {
            rows.push(vec![
                Cell::text(Kind::Server.name()),
                Cell::Number(messages as f64, 0),
                Cell::Number(median(rates), 0),
                Cell::ratio(median(rates), Some(median(&of_small))),
            ]);
        }
    }
    Ok(Table {
        name: "backfill",
        title: format!("Backfill: pages of {PAGE} messages, {READERS} readers"),
        columns: vec!["target", "messages", "pages/s", "of the small room"],
        rows,
    })
}

/// Reads for so long and gives the rate of pages.
async fn round(server: &Http, messages: u64, length: Duration) -> Result<f64> {
    let next = Arc::new(AtomicU64::new(1));
    let start = Instant::now();
    let mut readers = Vec::with_capacity(READERS);
    for _ in 0..READERS {
        let mut connection = server.connect().await?;
        let next = next.clone();
        let request = server.request("GET", "/messages?since=0000000&limit=50", 0, None);
        let digits = memchr::memmem::find(&request, b"0000000").ok_or("no place for since")?;
        readers.push(tokio::spawn(async move {
            let mut request = request;
            let mut pages = 0_u64;
            while start.elapsed() < length {
                let turn = next.fetch_add(1, Relaxed);
                let since = turn.wrapping_mul(STRIDE) % (messages - PAGE);
                request[digits..][..7].copy_from_slice(format!("{since:07}").as_bytes());
                let answer = connection.send(&request).await?;
                check(answer.status, answer.body, since)?;
                pages += 1;
            }
            Result::Ok(pages)
        }));
    }
    let mut pages = 0;
    for reader in readers {
        pages += reader.await??;
    }
    Ok(pages as f64 / start.elapsed().as_secs_f64())
}

/// An answer counts if it is the whole page after `since`.
fn check(status: u16, body: &[u8], since: u64) -> Result<()> {
    let messages = memchr::memmem::find_iter(body, b"\"seq\":").count() as u64;
    if status != 200 || messages != PAGE || sse::seq(body) != Some(since + 1) {
        let begin = String::from_utf8_lossy(&body[..body.len().min(200)]);
        return Err(
            format!("since={since} answered {status}, {messages} messages: {begin}").into(),
        );
    }
    Ok(())
}
