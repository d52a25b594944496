//! Measures the pump beside a plain channel that does the same XML work.
//!
//! `cargo run --release -p agentserver --example pump_bench`, with `-- idle` for
//! what idle conversations cost and nothing else, with `-- plain` or `-- pump` for one
//! short run of one of the two, under a profiler

use agentserver::payload::{Canonical, PayloadType};
use agentserver::xml::Limits;
use agentserver::{Gateway, HandlerResponse, Listener, Organism, Payload, Pump, Settings};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

#[derive(Payload)]
struct Ask {
    number: u64,
    text: String,
}

#[derive(Payload)]
struct Told {
    number: u64,
    text: String,
}

const ROUNDS: usize = 10;
const CLIENTS: u64 = 64;
const TEXT: &str = "What is the answer to this question, please & thank you?";

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// All of it runs on the two workers; a third thread that is woken for each message
/// would be what is measured.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    tokio::spawn(bench()).await?
}

async fn bench() -> Result<(), Failure> {
    let mode = std::env::args().nth(1);
    match mode.as_deref() {
        Some("idle") => return idle_conversations(&start()?).await,
        Some("plain") => return plain_hops(4_000).await.map(drop),
        Some("pump") => return requests(&start()?, "echo", 2_000, |_| {}).await.map(drop),
        _ => {}
    }
    let pump = start()?;
    let (mut rounds, mut of_plain, mut of_pump) = (Vec::new(), 0.0, 0.0);
    for _ in 0..ROUNDS {
        let begin = cpu_seconds();
        let plain = rate(200_000, plain_hops(200_000).await?);
        let middle = cpu_seconds();
        // A request to `echo` is two hops: the call and the answer.
        let took = requests(&pump, "echo", 100_000, |_| {}).await?;
        rounds.push((rate(200_000, took) / plain, plain, took));
        of_plain += middle - begin;
        of_pump += cpu_seconds() - middle;
    }
    rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (least, most) = (rounds[0].0, rounds[ROUNDS - 1].0);
    let (ratio, plain, took) = rounds[ROUNDS / 2];
    println!("plain tokio mpsc, same XML work: {plain:.0} hops/s");
    println!(
        "pump: {:.0} hops/s, {ratio:.2} of the plain channel, the median of {ROUNDS} rounds \
         ({least:.2} to {most:.2})",
        rate(200_000, took)
    );
    let each = |cpu: f64| cpu * 1e6 / (200_000 * ROUNDS) as f64;
    println!(
        "by processor time: {:.2} µs a plain hop, {:.2} µs a hop of the pump, {:.2} of the plain channel",
        each(of_plain),
        each(of_pump),
        of_plain / of_pump
    );
    println!("100,000 requests of two hops each (call, answer): {took:.2?}");

    let (memory, cpu) = (Arc::new(Mutex::new(Vec::new())), cpu_seconds());
    let samples = memory.clone();
    let took = requests(&pump, "relay", 100_000, move |done| {
        if done % 10_000 == 0
            && let Ok(mut samples) = samples.lock()
        {
            samples.push(resident_kib());
        }
    })
    .await?;
    println!("100,000 requests of four hops each (through two listeners): {took:.2?}");
    let cpu = cpu_seconds() - cpu;
    println!(
        "of processor time {cpu:.2} s: {:.2} s on two cores with nothing else to do",
        cpu / 2.0
    );
    let memory = memory.lock().map(|samples| samples.clone());
    println!(
        "resident memory after each 10,000, KiB: {:?}",
        memory.unwrap_or_default()
    );
    println!("threads kept at the end: {:?}", pump.counts());
    idle_conversations(&pump).await?;
    durable().await
}

/// What conversations cost that are open and do nothing: before their first
/// question, and after its answer.
async fn idle_conversations(pump: &Pump) -> Result<(), Failure> {
    const OPEN: u64 = 20_000;
    let before = resident_kib();
    let each = || resident_kib().saturating_sub(before) * 1024 / OPEN;
    let kept = (0..OPEN).map(|_| pump.open("bench"));
    let kept = kept.collect::<Result<Vec<_>, _>>()?;
    let silent = each();
    for (conversation, number) in kept.iter().zip(0..) {
        let text = TEXT.to_owned();
        conversation.send("echo", Ask { number, text }).await?;
        while conversation.next().await.is_some() {}
    }
    let spoken = each();
    println!("{OPEN} idle conversations: {silent} bytes each, {spoken} after a question");
    Ok(())
}

/// The pump with a journal, beside what the disk does by itself.
async fn durable() -> Result<(), Failure> {
    // Beside the build, where there is a disk; a temporary folder may be memory.
    let folder = tempfile::tempdir_in(std::env::current_dir()?)?;
    let record = [b'x'; 400];
    let mut file = std::fs::File::create(folder.path().join("plain"))?;
    let (mut syncs, begin) = (0, Instant::now());
    while begin.elapsed() < Duration::from_secs(3) {
        file.write_all(&record)?;
        file.sync_data()?;
        syncs += 1;
    }
    let disk = rate(syncs, begin.elapsed());
    println!("the disk: {disk:.0} appends of 400 bytes a second, each with fdatasync");
    let journal = folder.path().join("journal");
    let pump = Pump::start_durable(organism()?, Settings::default(), &journal)?;
    let took = requests(&pump, "echo", 20_000, |_| {}).await?;
    let kept = rate(20_000, took);
    println!(
        "durable pump: {kept:.0} requests/s (each safe before it is worked on, and its answer \
         before it is given), {:.2} of the disk's appends",
        kept / disk
    );
    Ok(())
}

fn rate(hops: u32, took: Duration) -> f64 {
    f64::from(hops) / took.as_secs_f64()
}

fn start() -> Result<Pump, Failure> {
    Ok(Pump::start(organism()?, Settings::default()))
}

fn organism() -> Result<Organism, Failure> {
    let echo = Listener::named("echo").on(|ask: Ask, _| async move {
        Ok(HandlerResponse::respond(Told {
            number: ask.number,
            text: ask.text,
        }))
    });
    let relay = Listener::named("relay")
        .agent(true)
        .peers(["echo"])
        .on(|ask: Ask, _| async move { Ok(HandlerResponse::to("echo", ask)) })
        .on(|told: Told, _| async move { Ok(HandlerResponse::respond(told)) });
    Ok(Organism::new(
        "bench",
        [echo, relay],
        [Gateway::named("bench", ["echo", "relay"])],
    )?)
}

/// Each client asks its share, one after the other; `done` hears how many are
/// answered.
async fn requests(
    pump: &Pump,
    to: &'static str,
    count: u64,
    done: impl Fn(u64) + Clone + Send + 'static,
) -> Result<Duration, Failure> {
    let begin = Instant::now();
    let answered = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (pump, answered) = (pump.clone(), answered.clone());
        let done = done.clone();
        clients.spawn(async move {
            for number in (client..count).step_by(CLIENTS as usize) {
                let ask = Ask {
                    number,
                    text: TEXT.to_owned(),
                };
                let answer = pump.request("bench", to, ask).await?.ok_or("no answer")?;
                if answer.payload.read::<Told>()?.number != number {
                    return Err("someone else's answer".into());
                }
                done(answered.fetch_add(1, Ordering::Relaxed) + 1);
            }
            Ok::<_, Failure>(())
        });
    }
    for client in clients.join_all().await {
        client?;
    }
    Ok(begin.elapsed())
}

/// One task writes, checks and sends; another reads.
async fn plain_hops(count: u64) -> Result<Duration, Failure> {
    let checked = Arc::new(PayloadType::of::<Ask>()?);
    let (sender, mut receiver) = mpsc::channel::<Canonical>(1024);
    let begin = Instant::now();
    let writer = tokio::spawn(async move {
        for number in 0..count {
            let xml = Ask {
                number,
                text: TEXT.to_owned(),
            }
            .to_xml()?;
            let payload = Canonical::parse(&xml, &Limits::default())?;
            checked.check(&payload)?;
            sender.send(payload).await?;
        }
        Ok::<_, Failure>(())
    });
    while let Some(payload) = receiver.recv().await {
        std::hint::black_box(Ask::from_xml(payload.xml())?.number);
    }
    writer.await??;
    Ok(begin.elapsed())
}

/// Time on all cores, in user and kernel: what a busy machine does not distort.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn resident_kib() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4
}
