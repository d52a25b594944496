//! Searching a million messages, on each engine, and what the index costs those who post.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use super::{Plan, posts};
use crate::Result;
use crate::http::Connection;
use crate::process::find_command;
use crate::report::{Cell, Table};
use crate::seed;
use crate::stats::{median, quantile};
use crate::target::Kind;
use crate::target::http::Http;

const MESSAGES: u64 = 1_000_000;
const SEARCHES_A_ROUND: usize = 50;
const POSTERS: usize = 64;
/// Where an empty PostgreSQL database is, which the bench may fill. Without it, PostgreSQL is left out.
const POSTGRES: &str = "SC_BENCH_POSTGRES_URL";
const DATABASE_URL: &str = "SC_CHATROOM__DATABASE_URL";
const OFF: (&str, &str) = ("SC_CHATROOM__SEARCH__ENABLED", "false");
/// What is searched for, and how many messages hold it. See [`seed::talk`].
const QUERIES: [(&str, &str); 6] = [
    ("a rare word", "q=rare77%20"),
    ("a word of every hundredth message", "q=some42%20"),
    ("a word of every message", "q=every%20"),
    ("two words", "q=some57%20word7%20"),
    ("a phrase", "q=%22word7%20every%22"),
    ("the beginning of a word", "q=rare7"),
];

/// Takes the measurement of the room server.
pub async fn measure(plan: &Plan) -> Result<Table> {
    let mut rows = Vec::new();
    if plan.targets.contains(&Kind::Server) {
        let sqlite = Http::server(1).await?;
        let sqlite = sqlite.restarted(|data| seed::talk(data, MESSAGES)).await?;
        rows.extend(searches("sqlite", &sqlite, plan).await?);
        drop(sqlite);
        rows.extend(posting("sqlite", [&[], &[OFF]], plan).await?);
        match std::env::var(POSTGRES) {
            Err(_) => eprintln!("  without PostgreSQL: {POSTGRES} names no database"),
            Ok(url) => rows.extend(on_postgres(&url, plan).await?),
        }
    }
    Ok(Table {
        name: "search",
        title: format!(
            "Search over {MESSAGES} messages in one room, and posting with and without its index"
        ),
        columns: vec![
            "engine", "what", "times", "p50 ms", "p99 ms", "posts/s", "least", "most",
        ],
        rows,
    })
}

async fn searches(engine: &str, server: &Http, plan: &Plan) -> Result<Vec<Vec<Cell>>> {
    let started = Instant::now();
    let mut connection = server.connect().await?;
    found(server, &mut connection, "newest").await?;
    let seconds = started.elapsed().as_secs();
    eprintln!("  {engine}: {MESSAGES} messages were indexed in {seconds} s");
    let mut rows = Vec::new();
    for (what, query) in QUERIES {
        let asked = server.request("GET", &format!("/search?{query}"), 0, None);
        let mut times = Vec::new();
        for _ in 0..plan.rounds * SEARCHES_A_ROUND {
            let start = Instant::now();
            let answer = connection.send(&asked).await?;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
            if answer.status != 200 || memchr::memmem::find(answer.body, b"\"seq\":").is_none() {
                let body = String::from_utf8_lossy(answer.body);
                return Err(format!("{query} answered {}: {body}", answer.status).into());
            }
        }
        rows.push(vec![
            Cell::text(engine),
            Cell::text(what),
            Cell::Number(times.len() as f64, 0),
            Cell::Number(quantile(&times, 0.5), 1),
            Cell::Number(quantile(&times, 0.99), 1),
            Cell::Nothing,
            Cell::Nothing,
            Cell::Nothing,
        ]);
    }
    Ok(rows)
}

/// Waits until a word that was said last is found, and so all that was said before it.
async fn found(server: &Http, connection: &mut Connection, word: &str) -> Result<()> {
    let search = server.request("GET", &format!("/search?q={word}"), 0, None);
    loop {
        let answer = connection.send(&search).await?;
        if memchr::memmem::find(answer.body, b"\"seq\":").is_some() {
            return Ok(());
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// The same on PostgreSQL. What posts has two databases of its own beside the one that is named.
async fn on_postgres(url: &str, plan: &Plan) -> Result<Vec<Vec<Cell>>> {
    let postgres = Http::server_on(url, 1).await?;
    let fill = |_: &std::path::Path| in_postgres(url, &seed::talk_in_postgres(MESSAGES));
    let postgres = postgres.restarted(fill).await?;
    let mut rows = searches("postgres", &postgres, plan).await?;
    drop(postgres);
    let (host, _) = url
        .rsplit_once('/')
        .ok_or("the address names no database")?;
    let mut urls = Vec::new();
    for name in ["bench_posts_with", "bench_posts_without"] {
        in_postgres(url, &format!("DROP DATABASE IF EXISTS {name}"))?;
        in_postgres(url, &format!("CREATE DATABASE {name}"))?;
        urls.push(format!("{host}/{name}"));
    }
    let with = [(DATABASE_URL, urls[0].as_str())];
    let without = [(DATABASE_URL, urls[1].as_str()), OFF];
    rows.extend(posting("postgres", [&with, &without], plan).await?);
    Ok(rows)
}

/// Posts to two servers in turns, of which one can be searched.
async fn posting(
    engine: &str,
    settings: [&[(&str, &str)]; 2],
    plan: &Plan,
) -> Result<Vec<Vec<Cell>>> {
    let with = Http::server_with_settings(settings[0], POSTERS).await?;
    let without = Http::server_with_settings(settings[1], POSTERS).await?;
    let mut rates = [Vec::new(), Vec::new()];
    let mut searching = with.connect().await?;
    for round in 0..plan.rounds {
        let posted = posts::round(&with, POSTERS, plan.length).await?;
        rates[0].push(posted.posts_a_second);
        // What is still to be indexed must not slow the other one down.
        let last = format!("round{round}");
        let body = json!({ "content": last }).to_string();
        let post = with.request("POST", "/messages", 0, Some(&body));
        searching.send(&post).await?;
        let began = Instant::now();
        found(&with, &mut searching, &last).await?;
        let seconds = began.elapsed().as_secs_f64();
        eprintln!(
            "  {engine}: all of round {} is found after {seconds:.1} s",
            round + 1
        );
        let posted = posts::round(&without, POSTERS, plan.length).await?;
        rates[1].push(posted.posts_a_second);
    }
    let names = ["posting with the index", "posting without it"];
    let rows = names.into_iter().zip(&rates).map(|(name, rates)| {
        vec![
            Cell::text(engine),
            Cell::text(name),
            Cell::Number(rates.len() as f64, 0),
            Cell::Nothing,
            Cell::Nothing,
            Cell::Number(median(rates), 0),
            Cell::Number(quantile(rates, 0.0), 0),
            Cell::Number(quantile(rates, 1.0), 0),
        ]
    });
    Ok(rows.collect())
}

fn in_postgres(url: &str, sql: &str) -> Result<()> {
    let psql = find_command("psql", "SC_BENCH_PSQL")?;
    let status = Command::new(psql)
        .args([
            "--quiet",
            "--set",
            "ON_ERROR_STOP=1",
            "--dbname",
            url,
            "--command",
            sql,
        ])
        .stdout(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("psql ended with {status}").into()),
    }
}
