//! Writing down what calls came to. One task takes all that wait and gives them one transaction:
//! an answer and the step past the message it answers are committed together, or neither is.

use super::{
    Lane,
    answerable::{Answered, answerable},
    lock,
};
use crate::{
    app::App,
    clock::Now,
    error::{Error, Result},
    services::{
        change::{Refusal, RoomLog, RoomTx, message::Draft},
        members,
        messages::posting::mentions::mentioned,
        spending,
    },
    store::{Db, DbError, deliveries::Held},
};
use protocol::{ErrorCode, EventKind, MemberUpdated, Notice, RoomId, Usage, UserId, Via};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
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
/// After a write that failed, the next one is tried so much later.
const RETRY: Duration = Duration::from_secs(1);
/// A storage that failed so long ago may work again.
const TROUBLE: Duration = Duration::from_secs(10);

/// What a call came to.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// The agent answered this, maybe because it was called for the message once more.
    Reply {
        answered: Answered,
        content: String,
        usage: Option<Usage>,
        answer_anew: bool,
    },
    /// The agent had nothing to say.
    Silent {
        seq: i64,
        usage: Option<Usage>,
        answer_anew: bool,
    },
    /// The agent is not called for this message once more: that failed, or could not be answered.
    AnswerAnewOver { seq: i64 },
    /// The call failed and is tried again.
    Failed {
        seq: i64,
        attempt: i64,
        wait_ms: i64,
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
    /// The answer would stand too deep in a chain of answers: it was dropped, and the message passed.
    TooDeep,
    /// The agents may say no more to each other for now: likewise.
    UsedUp,
    /// The lane is another's by now, or gone, or the room takes no messages for now.
    Lost,
}

struct Unwritten {
    lane: Lane,
    generation: i64,
    outcome: CallOutcome,
    /// Whom an answer mentions.
    mentions: Vec<UserId>,
    told: oneshot::Sender<Result<Settled>>,
}

enum QueueItem {
    /// Everything before this position is dealt with.
    Position(Lane, i64),
    /// Wants to know when the passes before it are written.
    Sync(oneshot::Sender<()>),
    Settle(Box<Unwritten>),
}

/// Hands outcomes to the task that writes them.
#[derive(Clone)]
pub struct OutcomeQueue {
    queue: mpsc::Sender<QueueItem>,
    db: Db,
    trouble: Arc<WriteTrouble>,
}

/// Whether the last write failed for want of a storage that works.
#[derive(Default)]
struct WriteTrouble(Mutex<Option<Instant>>);

impl WriteTrouble {
    fn record_result(&self, error: Option<&Error>) {
        let failed = error.is_some_and(|error| error.code() == ErrorCode::Unavailable);
        *lock(&self.0) = failed.then(Instant::now);
    }
}

impl OutcomeQueue {
    /// Starts the task. It ends, its queue worked off, once every handle to it is gone.
    pub fn start(app: App) -> (Self, tokio::task::JoinHandle<()>) {
        let (queue, inbox) = mpsc::channel(QUEUE);
        let (db, trouble) = (app.db.clone(), Arc::<WriteTrouble>::default());
        let running = tokio::spawn(run(app, inbox, trouble.clone()));
        (Self { queue, db, trouble }, running)
    }

    /// Whether what an agent answers can probably not be written.
    pub fn is_in_trouble(&self) -> bool {
        lock(&self.trouble.0).is_some_and(|since| since.elapsed() < TROUBLE)
    }

    /// Notes that the lane has come to this position. It is written soon.
    pub async fn save_position(&self, lane: &Lane, next: i64) {
        let _ = self
            .queue
            .send(QueueItem::Position(lane.clone(), next))
            .await;
    }

    /// Returns once what was noted before is written, as far as it could be.
    pub async fn synced(&self) {
        let (told, answer) = oneshot::channel();
        if self.queue.send(QueueItem::Sync(told)).await.is_ok() {
            let _ = answer.await;
        }
    }

    /// Writes an outcome down.
    pub async fn settle(
        &self,
        lane: &Lane,
        generation: i64,
        outcome: CallOutcome,
    ) -> Result<Settled> {
        let mentions = match &outcome {
            CallOutcome::Reply { content, .. } => {
                mentioned(&self.db, &lane.room_id, content).await?.users
            }
            _ => Vec::new(),
        };
        let (told, answer) = oneshot::channel();
        let item = Unwritten {
            lane: lane.clone(),
            generation,
            outcome,
            mentions,
            told,
        };
        let shutting_down = || Error::unavailable("The server is shutting down");
        self.queue
            .send(QueueItem::Settle(Box::new(item)))
            .await
            .map_err(|_| shutting_down())?;
        answer.await.map_err(|_| shutting_down())?
    }
}

async fn run(app: App, mut inbox: mpsc::Receiver<QueueItem>, trouble: Arc<WriteTrouble>) {
    let mut positions: HashMap<Lane, i64> = HashMap::new();
    let mut synced = Vec::new();
    let (mut deadline, mut gather) = (None, GATHER);
    let mut waiting = Vec::with_capacity(GROUP);
    loop {
        let ended = tokio::select! {
            taken = inbox.recv_many(&mut waiting, GROUP) => taken == 0,
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => false,
        };
        let mut items = Vec::new();
        for work in waiting.drain(..) {
            match work {
                QueueItem::Position(lane, next) => {
                    let position = positions.entry(lane).or_default();
                    *position = next.max(*position);
                }
                QueueItem::Sync(told) => synced.push(told),
                QueueItem::Settle(item) => items.push(*item),
            }
        }
        let due = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if !items.is_empty() || due || ended {
            write(&app, &mut positions, items, &trouble).await;
            gather = if positions.is_empty() { GATHER } else { RETRY };
            deadline = None;
            // Whoever wanted to know learns it; what could not be written is kept and tried again.
            synced.drain(..).for_each(|told: oneshot::Sender<()>| {
                let _ = told.send(());
            });
        }
        if ended {
            return;
        }
        if deadline.is_none() && (!positions.is_empty() || !synced.is_empty()) {
            deadline = Some(Instant::now() + gather);
        }
    }
}

async fn write(
    app: &App,
    positions: &mut HashMap<Lane, i64>,
    items: Vec<Unwritten>,
    trouble: &WriteTrouble,
) {
    if !positions.is_empty() {
        let saved = save_positions(app, positions).await.map_err(Error::from);
        trouble.record_result(saved.as_ref().err());
        match saved {
            Ok(()) => positions.clear(),
            Err(error) => {
                tracing::warn!(%error, "cannot write how far agents have come; tried again soon")
            }
        }
    }
    if items.is_empty() {
        return;
    }
    let together: Vec<&Unwritten> = items.iter().collect();
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
        trouble.record_result(result.as_ref().err());
        let _ = item.told.send(result);
    }
}

async fn save_positions(app: &App, positions: &HashMap<Lane, i64>) -> Result<(), DbError> {
    let rows: Vec<(&RoomId, &UserId, i64)> = positions
        .iter()
        .map(|(lane, next)| (&lane.room_id, &lane.user_id, *next))
        .collect();
    let mut tx = app.db.begin_keeping_cache().await?;
    tx.save_positions(&rows, &app.node).await?;
    tx.commit().await
}

async fn settle_group(app: &App, items: &[&Unwritten]) -> Result<Vec<Settled>> {
    let mut tx = RoomTx::begin(app).await?;
    let times = Times {
        now: Now::get(),
        schedule_ms: tx.schedule_ms().await?,
    };
    let rooms: BTreeSet<&RoomId> = items.iter().map(|item| &item.lane.room_id).collect();
    let rooms: Vec<&RoomId> = rooms.into_iter().collect();
    let mut logs: BTreeMap<RoomId, RoomLog> = tx
        .lock_rooms(&rooms)
        .await?
        .into_iter()
        .map(|room| (room.room_id.clone(), RoomLog::new(room)))
        .collect();
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        let settled = match logs.get_mut(&item.lane.room_id) {
            None => Settled::Lost,
            Some(log) => settle_one(app, &mut tx, log, item, times).await?,
        };
        results.push(settled);
    }
    for log in logs.into_values() {
        tx.add_log(log);
    }
    tx.commit().await?;
    Ok(results)
}

/// When a group is settled, as people and as schedules tell it.
#[derive(Clone, Copy)]
struct Times {
    now: Now,
    schedule_ms: i64,
}

async fn settle_one(
    app: &App,
    tx: &mut RoomTx,
    log: &mut RoomLog,
    item: &Unwritten,
    times: Times,
) -> Result<Settled> {
    let (room, user) = (&item.lane.room_id, &item.lane.user_id);
    let held = Held {
        room,
        user,
        generation: item.generation,
        node: &app.node,
    };
    match &item.outcome {
        CallOutcome::Reply {
            answered,
            content,
            usage,
            answer_anew,
        } => {
            let reply = ReplyToPost {
                answered,
                content,
                mentions: &item.mentions,
                usage: usage.as_ref(),
                answer_anew: *answer_anew,
            };
            return settle_reply(app, tx, log, held, reply, times).await;
        }
        CallOutcome::Silent {
            seq,
            usage,
            answer_anew,
        } => {
            let passed = match answer_anew {
                true => tx.finish_answer_anew(held, *seq, times.schedule_ms).await?,
                false => tx.pass_message(held, *seq).await?,
            };
            if !passed {
                return Ok(Settled::Lost);
            }
            spending::spend(tx, log, user, usage.as_ref(), times.now).await?;
        }
        CallOutcome::AnswerAnewOver { seq } => {
            if !tx.finish_answer_anew(held, *seq, times.schedule_ms).await? {
                return Ok(Settled::Lost);
            }
        }
        CallOutcome::Failed {
            seq,
            attempt,
            wait_ms,
            why,
        } => {
            let due_ms = times.schedule_ms + wait_ms;
            if !tx.fail_message(held, *seq, *attempt, due_ms, why).await? {
                return Ok(Settled::Lost);
            }
        }
        CallOutcome::Stale { seq, attempt, why } => {
            if !tx.fail_message(held, *seq, *attempt, 0, why).await? {
                return Ok(Settled::Lost);
            }
            tx.set_stale(room, user).await?;
            let event = MemberUpdated {
                user_id: user.to_string(),
                has_agent_endpoint: true,
                has_akm_key: true,
                key_stale: true,
                reason: Some(why.clone()),
            };
            log.event(tx, EventKind::MemberUpdated, &event).await?;
        }
        CallOutcome::Gone { seq } => {
            let Some(member) = tx.member(room, user).await? else {
                return Ok(Settled::Lost);
            };
            if !tx.pass_message(held, *seq).await? {
                return Ok(Settled::Lost);
            }
            let notice = Notice::MemberLeft {
                user_id: user.to_string(),
                user_name: member.user_name.clone(),
            };
            members::take_out(tx, log, &member, user, "member_left", notice, times.now).await?;
        }
    }
    Ok(Settled::Done)
}

/// What an agent answered, as it is posted.
struct ReplyToPost<'a> {
    answered: &'a Answered,
    content: &'a str,
    mentions: &'a [UserId],
    usage: Option<&'a Usage>,
    answer_anew: bool,
}

/// Posts what an agent answered.
async fn settle_reply(
    app: &App,
    tx: &mut RoomTx,
    log: &mut RoomLog,
    held: Held<'_>,
    reply: ReplyToPost<'_>,
    times: Times,
) -> Result<Settled> {
    let Times { now, schedule_ms } = times;
    let ReplyToPost {
        answered,
        content,
        mentions,
        usage,
        answer_anew,
    } = reply;
    let (room, user, limits) = (held.room, held.user, &app.config.limits);
    let Answered { seq, sender, .. } = answered;
    let Some(member) = tx.member(room, user).await? else {
        return Ok(Settled::Lost);
    };
    let admission = match answerable(log.room(), user, answered, limits, now) {
        Ok(admission) => admission,
        Err(Refusal::Archived) => return Ok(Settled::Lost),
        Err(why) => {
            // Counted too; with many agents there are too many of these for a log.
            tracing::debug!(%room, %user, seq, ?why, "an agent's answer was dropped");
            let passed = match answer_anew {
                true => tx.finish_answer_anew(held, *seq, schedule_ms).await?,
                false => tx.pass_message(held, *seq).await?,
            };
            return Ok(if passed { why.into() } else { Settled::Lost });
        }
    };
    let passed = match answer_anew {
        true => tx.finish_answer_anew(held, *seq, schedule_ms).await?,
        false => tx.answer_message(held, *seq, schedule_ms).await?,
    };
    if !passed {
        return Ok(Settled::Lost);
    }
    let draft = Draft {
        user_id: member.user_id,
        user_name: member.user_name,
        via: Via::Agent,
        content: content.to_owned(),
        reply_to_seq: Some(*seq),
        client_key: None,
        usage: usage.cloned(),
        calls_agents: true,
        mentions,
        answered: Some(sender),
    };
    log.post(tx, admission, draft, limits, now).await?;
    spending::spend(tx, log, user, usage, now).await?;
    Ok(Settled::Done)
}
