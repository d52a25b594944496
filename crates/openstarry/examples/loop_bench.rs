//! What the core costs, without the model. Run it with
//! `cargo run --release -p openstarry --example loop_bench`.

use futures_util::StreamExt;
use futures_util::stream;
use openstarry::provider::{Context, Event, EventStream, Provider, ProviderConfig, ProviderKind};
use openstarry::segment::{ContentSegment, StopReason};
use openstarry::session::{Agent, Limits, SessionEvent, SessionState, Settings};
use openstarry::tool::retrieval::Selector;
use openstarry::tool::{FnTool, Registry, Risk, Tool, ToolSpec};
use serde_json::json;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Done<T> = Result<T, Box<dyn Error>>;

const TOOLS: &str = include_str!("../tests/data/tools.tsv");
const QUERIES: &str = include_str!("../tests/data/queries.tsv");
/// Questions that nobody tuned for, and the tools they are over.
const HELDOUT: [(&str, &str, &str); 5] = [
    (
        "first",
        include_str!("../tests/data/heldout_tools.tsv"),
        include_str!("../tests/data/heldout_queries.tsv"),
    ),
    (
        "second",
        include_str!("../tests/data/heldout_tools.tsv"),
        include_str!("../tests/data/heldout2_queries.tsv"),
    ),
    (
        "third",
        concat!(
            include_str!("../tests/data/heldout_tools.tsv"),
            include_str!("../tests/data/heldout3_tools.tsv")
        ),
        include_str!("../tests/data/heldout3_queries.tsv"),
    ),
    (
        "fourth",
        concat!(
            include_str!("../tests/data/heldout_tools.tsv"),
            include_str!("../tests/data/heldout3_tools.tsv"),
            include_str!("../tests/data/heldout4_tools.tsv")
        ),
        include_str!("../tests/data/heldout4_queries.tsv"),
    ),
    (
        "fifth",
        concat!(
            include_str!("../tests/data/heldout_tools.tsv"),
            include_str!("../tests/data/heldout3_tools.tsv"),
            include_str!("../tests/data/heldout4_tools.tsv"),
            include_str!("../tests/data/heldout5_tools.tsv")
        ),
        include_str!("../tests/data/heldout5_queries.tsv"),
    ),
];
/// As long as a question is looked at, and longer.
const LONG: &str = "I have been on the road all day and the battery of the thing is nearly empty, so     before it dies please tell my sister that I will be late for dinner, and then order something     warm for the two of us that can be at her place by nine o'clock in the evening";
const SESSIONS: usize = 1000;
const TURNS: usize = 500;
const ROUNDS: usize = 10;
/// The model is shown the whole session. Five turns are what it was shown when
/// the figures in the documentation were first taken.
const SESSION_TURNS: usize = 5;

#[tokio::main]
async fn main() -> Done<()> {
    let rounds = rounds().await?;
    println!(
        "loop overhead for each round      {:>8.1} µs (aim: under 100)",
        micros(rounds)
    );
    let (median, worst) = first_token().await?;
    println!(
        "first token passed on, median     {:>8.1} µs (aim: under 1000)",
        micros(median)
    );
    println!(
        "first token passed on, 99th of 100 {:>7.1} µs",
        micros(worst)
    );
    println!(
        "memory of {SESSIONS} sessions, each after a turn of {ROUNDS} rounds {:>6.1} MiB",
        sessions().await?
    );
    let picked = selection(TOOLS, QUERIES).await?;
    println!(
        "selection among 1,000 tools, median {:>6.1} µs (aim: under 2000)",
        micros(picked.median)
    );
    println!(
        "selection among 1,000 tools, worst  {:>6.1} µs",
        micros(picked.worst)
    );
    println!(
        "selection by a long question        {:>6.1} µs",
        micros(picked.long)
    );
    println!(
        "finding out what 1,000 tools mean   {:>6.2} s, once (aim: under 2)",
        picked.index.as_secs_f64()
    );
    for (set, tools, queries) in HELDOUT {
        let recall = selection(tools, queries).await?.recall;
        println!("recall@10, {set:>6} held-out set     {recall:>8.3}    (aim: 0.8)");
    }
    Ok(())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Calls a tool for nine rounds and answers in the tenth.
#[derive(Default)]
struct Caller(AtomicUsize);

impl Provider for Caller {
    fn name(&self) -> &str {
        "bench"
    }

    fn stream<'a>(&'a self, _: &'a str, _: &'a Context) -> EventStream<'a> {
        let turn = self.0.fetch_add(1, Ordering::Relaxed);
        let events = match (turn + 1) % ROUNDS {
            0 => vec![
                Event::Text("done".into()),
                Event::Finish(StopReason::EndTurn),
            ],
            _ => vec![
                Event::CallStart {
                    index: 0,
                    id: Some(format!("call_{turn}")),
                    name: "work".into(),
                },
                Event::CallArguments {
                    index: 0,
                    json: "{\"n\":1}".into(),
                },
                Event::CallEnd { index: 0 },
                Event::Finish(StopReason::ToolUse),
            ],
        };
        stream::iter(events.into_iter().map(Ok)).boxed()
    }
}

/// A tool that costs nothing.
fn work() -> Done<Registry> {
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let spec = ToolSpec::new("work", "Work.", Risk::Safe, schema);
    let registry = Registry::new();
    registry.add(vec![Arc::new(FnTool::new(spec, async |_| {
        Ok(vec![ContentSegment::text("done")])
    }))])?;
    Ok(registry)
}

/// Model, tool and disk cost nothing here; what is left is the loop.
async fn rounds() -> Done<Duration> {
    let registry = work()?;
    let settings = Settings {
        limits: Limits {
            tokens: None,
            ..Limits::default()
        },
        ..Settings::default()
    };
    let agent = Agent::new(Arc::new(Caller::default()), registry, settings);
    let started = Instant::now();
    for _ in 0..TURNS / SESSION_TURNS {
        let session = agent.session(SessionState::new("bench"), None);
        for _ in 0..SESSION_TURNS {
            session.say("go")?.outcome().await;
        }
    }
    Ok(started.elapsed() / (TURNS * ROUNDS) as u32)
}

/// From the moment a server has written the first token to the moment the
/// listener of the session has it. Half of it is the loopback network.
async fn first_token() -> Done<(Duration, Duration)> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let mut config = ProviderConfig::new(ProviderKind::Ollama, "m");
    config.base_url = Some(format!("http://{}", listener.local_addr()?));
    let (sent, mut sent_at) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let mut request = vec![0; 65536];
            let _ = stream.read(&mut request).await;
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
            let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
            let first = chunk("{\"message\":{\"content\":\"hi\"},\"done\":false}\n");
            let now = Instant::now();
            let _ = stream.write_all(first.as_bytes()).await;
            let _ = sent.send(now).await;
            let last = chunk("{\"done\":true,\"done_reason\":\"stop\"}\n");
            let _ = stream
                .write_all(format!("{last}0\r\n\r\n").as_bytes())
                .await;
        }
    });
    let settings = Settings {
        limits: Limits {
            tokens: None,
            ..Limits::default()
        },
        ..Settings::default()
    };
    let agent = Agent::new(config.build(&|_| None)?, Registry::new(), settings);
    let session = agent.session(SessionState::new("bench"), None);
    let mut times = Vec::new();
    for _ in 0..100 {
        let mut turn = session.say("go")?;
        while let Some(event) = turn.next().await {
            let heard = Instant::now();
            if let SessionEvent::Text { .. } = event {
                let sent = sent_at.recv().await.ok_or("the server is gone")?;
                times.push(heard.duration_since(sent));
            }
        }
    }
    times.sort_unstable();
    Ok((times[times.len() / 2], times[times.len() - 2]))
}

/// How much more the process holds with all of them open, in MiB.
async fn sessions() -> Done<f64> {
    let agent = Agent::new(Arc::new(Caller::default()), work()?, Settings::default());
    let before = resident()?;
    let mut open = Vec::with_capacity(SESSIONS);
    for at in 0..SESSIONS {
        let session = agent.session(SessionState::new(format!("bench-{at}")), None);
        session.say("go")?.outcome().await;
        open.push(session);
    }
    Ok((resident()? - before) / 1024.0)
}

/// The memory of this process, in KiB, where the system tells.
fn resident() -> Done<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS")?.parse()?)
}

/// How tools were picked.
struct Picked {
    index: Duration,
    median: Duration,
    worst: Duration,
    long: Duration,
    /// Which share of the questions finds its tool among ten.
    recall: f64,
}

async fn selection(tools: &'static str, queries: &'static str) -> Done<Picked> {
    let rows = |text: &'static str| text.lines().filter_map(|line| line.split_once('\t'));
    let tool = |(name, about): (&str, &str)| {
        let spec = ToolSpec::new(name, about, Risk::Safe, json!({ "type": "object" }));
        Arc::new(FnTool::new(spec, async |_| Ok(vec![]))) as Arc<dyn Tool>
    };
    let registry = Registry::new();
    registry.add(rows(tools).map(tool).collect())?;
    let set = registry.snapshot();
    let selector = Selector {
        top: 10,
        ..Selector::default()
    };
    let started = Instant::now();
    set.index().ready().await;
    let index = started.elapsed();
    let mut times = Vec::new();
    let mut found = 0;
    for (question, wanted) in rows(queries) {
        let started = Instant::now();
        let view = selector.select(&set, question, &[]).await;
        times.push(started.elapsed());
        found += usize::from(view.get(wanted).is_some());
    }
    times.sort_unstable();
    let started = Instant::now();
    selector.select(&set, LONG, &[]).await;
    Ok(Picked {
        index,
        median: times[times.len() / 2],
        worst: times[times.len() - 1],
        long: started.elapsed(),
        recall: found as f64 / times.len() as f64,
    })
}
