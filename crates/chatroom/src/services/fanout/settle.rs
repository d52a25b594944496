//! Writing down what calls came to. One task takes all that wait and gives them one transaction:
//! an answer and the step past the message it answers are committed together, or neither is.

use super::Lane;
use crate::{
    app::App,
    clock::Now,
    error::{Error, Result},
    events::Appender,
    services::{members, posting::mentions::mentioned, room_tx::RoomTx},
    store::{DbError, deliveries::Held},
};
use protocol::{EventKind, MemberUpdated};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

/// How long steps past messages that were answered with silence may wait for company.
const GATHER: Duration = Duration::from_millis(50);
const GROUP: usize = 256;
const QUEUE: usize = 4096;

/// What a call came to.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The agent answered this.
    Reply {
        seq: i64,
        /// How deep the answered message stands.
        depth: i64,
        content: String,
    },
    /// The call failed and is tried again.
    Failed {
        seq: i64,
        attempt: i64,
        due_ms: i64,
        why: String,
    },
    /// The agent is not called again until it has a new key.
    Stale { seq: i64, attempt: i64, why: String },
    /// The agent has left.
    Gone { seq: i64 },
}

/// What became of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It is written.
    Done,
    /// The answer would stand too deep in a chain of answers, or the room takes none: it was
    /// dropped, and the message passed.
    Dropped,
    /// The lane is another's by now, or gone.
    Lost,
}

struct Item {
    lane: Lane,
    generation: i64,
    outcome: Outcome,
    told: oneshot::Sender<Result<Settled>>,
}

enum Work {
    /// Everything before this place is dealt with.
    Pass(Lane, i64),
    /// Wants to know when the passes before it are written.
    Sync(oneshot::Sender<()>),
    Settle(Box<Item>),
}

/// Hands outcomes to the task that writes them.
#[derive(Clone)]
pub struct Settler {
    queue: mpsc::Sender<Work>,
}

impl Settler {
    /// Starts the task. It ends, its queue worked off, once every settler is gone.
    pub fn start(app: App) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, inbox) = mpsc::channel(QUEUE);
        (Self { queue }, tokio::spawn(run(app, inbox)))
    }

    /// Notes that the lane has come to this place. It is written soon.
    pub async fn pass(&self, lane: &Lane, next: i64) {
        let _ = self.queue.send(Work::Pass(lane.clone(), next)).await;
    }

    /// Returns once what was noted before is written, as far as it could be.
    pub async fn synced(&self) {
        let (told, answer) = oneshot::channel();
        if self.queue.send(Work::Sync(told)).await.is_ok() {
            let _ = answer.await;
        }
    }

    /// Writes an outcome down.
    pub async fn settle(&self, lane: &Lane, generation: i64, outcome: Outcome) -> Result<Settled> {
        let (told, answer) = oneshot::channel();
        let item = Item {
            lane: lane.clone(),
            generation,
            outcome,
            told,
        };
        let stopping = || Error::unavailable("The server is shutting down");
        self.queue
            .send(Work::Settle(Box::new(item)))
            .await
            .map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }
}

async fn run(app: App, mut inbox: mpsc::Receiver<Work>) {
    let mut places: HashMap<Lane, i64> = HashMap::new();
    let mut synced = Vec::new();
    let mut deadline = None;
    let mut waiting = Vec::with_capacity(GROUP);
    loop {
        let ended = tokio::select! {
            taken = inbox.recv_many(&mut waiting, GROUP) => taken == 0,
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => false,
        };
        let mut items = Vec::new();
        for work in waiting.drain(..) {
            match work {
                Work::Pass(lane, next) => {
                    let place = places.entry(lane).or_default();
                    *place = next.max(*place);
                }
                Work::Sync(told) => synced.push(told),
                Work::Settle(item) => items.push(*item),
            }
        }
        let due = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if !items.is_empty() || due || ended {
            write(&app, &mut places, items).await;
            deadline = None;
            // Whoever wanted to know learns it; what could not be written is kept and tried again.
            synced.drain(..).for_each(|told: oneshot::Sender<()>| {
                let _ = told.send(());
            });
        }
        if ended {
            return;
        }
        if deadline.is_none() && (!places.is_empty() || !synced.is_empty()) {
            deadline = Some(Instant::now() + GATHER);
        }
    }
}

async fn write(app: &App, places: &mut HashMap<Lane, i64>, items: Vec<Item>) {
    if !places.is_empty() {
        match save_places(app, places).await {
            Ok(()) => places.clear(),
            Err(error) => {
                tracing::warn!(%error, "cannot write how far agents have come; tried again soon")
            }
        }
    }
    if items.is_empty() {
        return;
    }
    let together: Vec<&Item> = items.iter().collect();
    let results = match settle_group(app, &together).await {
        Ok(results) => results.into_iter().map(Ok).collect(),
        // What the database refuses of one must not cost the others theirs; and what it refused
        // only because another was in the way passes the second time.
        Err(_) => {
            let mut results = Vec::with_capacity(items.len());
            for item in &items {
                let alone = settle_group(app, &[item]).await;
                results.push(alone.map(|settled| settled[0]));
            }
            results
        }
    };
    for (item, result) in items.into_iter().zip(results) {
        let _ = item.told.send(result);
    }
}

async fn save_places(app: &App, places: &HashMap<Lane, i64>) -> Result<(), DbError> {
    let rows: Vec<(&str, &str, i64)> = places
        .iter()
        .map(|(lane, next)| (lane.room.as_str(), lane.user.as_str(), *next))
        .collect();
    let mut tx = app.db.begin_aside().await?;
    tx.save_places(&rows, &app.node).await?;
    tx.commit().await
}

async fn settle_group(app: &App, items: &[&Item]) -> Result<Vec<Settled>> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let rooms: BTreeSet<&str> = items.iter().map(|item| item.lane.room.as_str()).collect();
    let rooms: Vec<&str> = rooms.into_iter().collect();
    let mut logs: BTreeMap<String, Appender> = tx
        .lock_rooms(&rooms)
        .await?
        .into_iter()
        .map(|room| (room.room_id.clone(), Appender::new(room)))
        .collect();
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        let settled = match logs.get_mut(&item.lane.room) {
            None => Settled::Lost,
            Some(log) => settle_one(app, &mut tx, log, item, now).await?,
        };
        results.push(settled);
    }
    logs.into_values().for_each(|log| tx.tell(log));
    tx.commit().await?;
    let replies = items
        .iter()
        .zip(&results)
        .filter(|(item, settled)| {
            matches!(item.outcome, Outcome::Reply { .. }) && **settled == Settled::Done
        })
        .count();
    if replies > 0 {
        app.metrics.committed(replies);
        app.traffic.add(replies);
    }
    Ok(results)
}

async fn settle_one(
    app: &App,
    tx: &mut RoomTx,
    log: &mut Appender,
    item: &Item,
    now: Now,
) -> Result<Settled> {
    let (room, user) = (item.lane.room.as_str(), item.lane.user.as_str());
    let held = Held {
        room,
        user,
        generation: item.generation,
        node: &app.node,
    };
    match &item.outcome {
        Outcome::Reply {
            seq,
            depth,
            content,
        } => {
            let Some(member) = tx.member(room, user).await? else {
                return Ok(Settled::Lost);
            };
            if !tx.pass_message(held, *seq).await? {
                return Ok(Settled::Lost);
            }
            let deepest = log.room().max_reply_chain_depth;
            if depth + 1 > deepest || log.room().archived {
                // Counted too; with many agents there are too many of these for a log.
                tracing::debug!(
                    room,
                    user,
                    seq,
                    depth,
                    deepest,
                    "an agent's answer was dropped: the chain of answers ends here"
                );
                return Ok(Settled::Dropped);
            }
            let posted = log
                .reply(tx, &member, content.clone(), *seq, depth + 1, now)
                .await?;
            let mentioned = mentioned(tx, room, content).await?;
            let mentions: Vec<(&str, &str, i64)> = mentioned
                .iter()
                .map(|user| (room, user.as_str(), posted))
                .collect();
            tx.insert_mentions(&mentions).await?;
        }
        Outcome::Failed {
            seq,
            attempt,
            due_ms,
            why,
        } => {
            if !tx.fail_message(held, *seq, *attempt, *due_ms, why).await? {
                return Ok(Settled::Lost);
            }
        }
        Outcome::Stale { seq, attempt, why } => {
            if !tx.fail_message(held, *seq, *attempt, 0, why).await? {
                return Ok(Settled::Lost);
            }
            tx.set_stale(room, user).await?;
            let event = MemberUpdated {
                user_id: user.to_owned(),
                has_agent_endpoint: true,
                has_akm_key: true,
                key_stale: true,
                reason: Some(why.clone()),
            };
            log.event(tx, EventKind::MemberUpdated, &event).await?;
        }
        Outcome::Gone { seq } => {
            let Some(member) = tx.member(room, user).await? else {
                return Ok(Settled::Lost);
            };
            if !tx.pass_message(held, *seq).await? {
                return Ok(Settled::Lost);
            }
            let words = format!("{} left the room", member.shown_name());
            members::take_out(tx, log, &member, user, "member_left", words, now).await?;
        }
    }
    Ok(Settled::Done)
}
