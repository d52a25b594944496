//! Calling agents: every message of a room goes to its agents, one after the other for each agent
//! and room, and what they answer is posted in their name.
//!
//! The room's log is the queue. An agent in a room is a lane; a lane knows the first message it has
//! not dealt with. Posting does not know of any of this: a lane is woken when its room moves on,
//! and whatever was missed is found by looking.
//!
//! A webhook that a room tells what happens is a lane too, and is claimed, woken and retried like one.

pub mod bridge;

mod answerable;
mod call;
mod lane;
mod pause;
mod permits;
mod reply;
mod settle;
mod typing;
mod webhook;

#[cfg(test)]
pub use answerable::{Answered, answerable};
pub use pause::{MARK as PAUSE_MARK, PAUSED};

use crate::{
    app::App,
    clock::Now,
    config::Fanout as Settings,
    store::{DbError, Tx, deliveries::Lane, rooms::RoomRow},
};
use lane::LaneTask;
use permits::{CallPermit, CallPermits};
use protocol::{RoomId, UserId};
use settle::OutcomeQueue;
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::Notify,
    task::{JoinHandle, JoinSet},
    time::MissedTickBehavior,
};
use webhook::WebhookTask;

/// A member who gets a new key goes on at most so many messages back.
const LONGEST_BACKLOG: i64 = 200;
/// How long a node's lanes stay its own when nothing is heard of it.
const LEASE_MS: i64 = 10_000;
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// Lanes that are looked at in each round, whether anything was heard of them or not.
const LANES_PER_SCAN: i64 = 1000;

/// Wakes a lane's task.
#[derive(Default)]
pub struct Wakeup {
    pending: AtomicBool,
    notify: Notify,
    since: Mutex<Option<Instant>>,
}

impl Wakeup {
    fn wake(&self, since: Option<Instant>) {
        let mut first = lock(&self.since);
        *first = first.or(since);
        drop(first);
        self.pending.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// What woke the task before this is dealt with now.
    fn clear(&self) {
        self.pending.store(false, Ordering::Release);
    }

    async fn woken(&self) {
        while !self.pending.load(Ordering::Acquire) {
            self.notify.notified().await;
        }
    }

    /// How long a message has waited: since the task was woken, or since it was posted, in whole
    /// seconds, if the lane was busy then.
    fn waited(&self, created_at: i64) -> Duration {
        match lock(&self.since).take() {
            Some(since) => since.elapsed(),
            None => {
                let seconds = Now::get().seconds() - created_at;
                Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
            }
        }
    }
}

/// The lanes that this node works on, and how many calls there may be.
pub struct LaneRegistry {
    lanes: Mutex<HashMap<Lane, Arc<Wakeup>>>,
    permits: CallPermits,
    paused: AtomicBool,
}

impl LaneRegistry {
    pub fn new(settings: &Settings) -> Self {
        Self {
            lanes: Mutex::default(),
            permits: CallPermits::new(settings),
            paused: AtomicBool::new(false),
        }
    }

    /// How many lanes are being worked on, those that wait for their next try included.
    pub fn busy(&self) -> usize {
        lock(&self.lanes).len()
    }

    /// Whether agents wait for the operator's word.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// Sets that, and tells what it was before.
    fn set_paused(&self, paused: bool) -> bool {
        self.paused.swap(paused, Ordering::AcqRel)
    }

    async fn acquire_permit(&self, user: &UserId, endpoint: &str) -> CallPermit {
        self.permits.acquire(user.as_str(), endpoint).await
    }

    /// Wakes the lane's task; or gives the wakeup of one to start.
    fn wake(&self, lane: &Lane, since: Option<Instant>) -> Option<Arc<Wakeup>> {
        let mut lanes = lock(&self.lanes);
        if let Some(wakeup) = lanes.get(lane) {
            wakeup.wake(since);
            return None;
        }
        let wakeup = Arc::new(Wakeup::default());
        wakeup.wake(since);
        lanes.insert(lane.clone(), wakeup.clone());
        Some(wakeup)
    }

    /// Whether the lane's task may end: not if it was woken since it last looked.
    fn end_if_idle(&self, lane: &Lane, wakeup: &Wakeup) -> bool {
        let mut lanes = lock(&self.lanes);
        let ends = !wakeup.pending.load(Ordering::Acquire);
        if ends {
            lanes.remove(lane);
        }
        ends
    }

    /// The task with this wakeup has ended.
    fn forget_lane(&self, lane: &Lane, wakeup: &Arc<Wakeup>) {
        let mut lanes = lock(&self.lanes);
        if lanes
            .get(lane)
            .is_some_and(|held| Arc::ptr_eq(held, wakeup))
        {
            lanes.remove(lane);
        }
    }
}

/// Messages that an agent is never told of: they waited too long for a key that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    pub from_seq: i64,
    pub to_seq: i64,
}

impl Skipped {
    pub fn messages(self) -> i64 {
        self.to_seq - self.from_seq + 1
    }
}

/// Lets a member be called from the room's newest message on, or go on where it was, but not
/// further back than the longest backlog. `head` is the room's newest message once the
/// transaction is done.
pub async fn enable_delivery(
    tx: &mut Tx,
    room: &RoomRow,
    user: &UserId,
    head: i64,
) -> Result<Option<Skipped>, DbError> {
    let oldest = head - LONGEST_BACKLOG + 1;
    let next = tx.delivery_position(&room.room_id, user).await?;
    tx.enable_delivery(&room.room_id, user, head + 1, oldest)
        .await?;
    let skipped = next.filter(|next| *next < oldest);
    Ok(skipped.map(|from_seq| Skipped {
        from_seq,
        to_seq: oldest - 1,
    }))
}

/// The running dispatcher of this node. A shutdown lets it and its lanes' tasks end once the calls
/// in hand are over.
pub struct DispatcherHandle(JoinHandle<()>);

impl DispatcherHandle {
    /// Starts it.
    pub fn start(app: App) -> Self {
        Self(tokio::spawn(dispatch_once_resumed(app)))
    }

    /// Once a shutdown has begun, lets the calls in hand end for so long, and writes what they came
    /// to.
    pub async fn finish(self, grace: Duration) {
        let abort = self.0.abort_handle();
        if tokio::time::timeout(grace, self.0).await.is_err() {
            // Nothing is lost: what was not written is called again after the next start.
            tracing::info!("some agents had not answered yet; they are called again");
            abort.abort();
        }
    }
}

struct Dispatcher {
    app: App,
    outcomes: OutcomeQueue,
    tasks: JoinSet<()>,
    /// Where the next look at all lanes begins.
    cursor: Option<Lane>,
}

async fn dispatch_once_resumed(app: App) {
    tokio::select! {
        () = pause::resumed(&app) => {}
        () = app.shutdown.begun() => return,
    }
    dispatch(app).await;
}

async fn dispatch(app: App) {
    let (outcomes, settling) = OutcomeQueue::start(app.clone());
    let mut dispatcher = Dispatcher {
        app: app.clone(),
        outcomes,
        tasks: JoinSet::new(),
        cursor: None,
    };
    dispatcher.renew_lease().await;
    while dispatcher.scan_lanes().await {}
    let mut rounds = tokio::time::interval(RENEW_EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            moved = app.hub.dirty_rooms().next() => dispatcher.wake_lanes_of(moved).await,
            _ = rounds.tick() => {
                dispatcher.renew_lease().await;
                dispatcher.scan_lanes().await;
            }
            Some(ended) = dispatcher.tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a lane's task failed");
                }
            }
            () = app.shutdown.begun() => break,
        }
    }
    let Dispatcher {
        outcomes,
        mut tasks,
        ..
    } = dispatcher;
    while tasks.join_next().await.is_some() {}
    drop(outcomes);
    let _ = settling.await;
    if !app.db.is_sqlite() {
        let forgotten = async {
            let mut tx = app.db.begin_keeping_cache().await?;
            tx.forget_node(&app.node).await?;
            tx.commit().await
        };
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, "other nodes take over only when this one's lease ends");
        }
    }
}

impl Dispatcher {
    /// Says that this node lives. One process alone on its database need not say so.
    async fn renew_lease(&mut self) {
        if self.app.db.is_sqlite() {
            return;
        }
        let renewed = async {
            let mut tx = self.app.db.begin_keeping_cache().await?;
            let now = tx.schedule_ms().await?;
            tx.renew_node(&self.app.node, now + LEASE_MS).await?;
            tx.forget_dead_nodes(now - 100 * LEASE_MS).await?;
            tx.commit().await
        };
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "cannot renew this node's lease on agents");
        }
    }

    /// Looks at the next lanes in order, for what nobody told of. Whether there are more.
    async fn scan_lanes(&mut self) -> bool {
        let page = async {
            let mut conn = self.app.db.read().await?;
            conn.lanes_after(self.cursor.as_ref(), LANES_PER_SCAN).await
        };
        let page = match page.await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "cannot look for agents to call; tried again soon");
                return false;
            }
        };
        let rooms: HashSet<&RoomId> = page.iter().map(|lane| &lane.room_id).collect();
        // Followed first: what moves after that is noted, what moved before is found.
        rooms
            .iter()
            .for_each(|room| self.app.hub.dirty_rooms().track(room));
        let rooms: Vec<&RoomId> = rooms.into_iter().collect();
        self.wake_lanes_behind(&rooms, &HashMap::new()).await;
        let more = i64::try_from(page.len()).is_ok_and(|n| n >= LANES_PER_SCAN);
        self.cursor = page.into_iter().last().filter(|_| more);
        more
    }

    async fn wake_lanes_of(&mut self, moved: HashMap<RoomId, Instant>) {
        let rooms: Vec<&RoomId> = moved.keys().collect();
        self.wake_lanes_behind(&rooms, &moved).await;
    }

    async fn wake_lanes_behind(&mut self, rooms: &[&RoomId], moved: &HashMap<RoomId, Instant>) {
        if rooms.is_empty() {
            return;
        }
        match self.lanes_to_work_on(rooms).await {
            Ok(lanes) => {
                for lane in lanes {
                    self.app.hub.dirty_rooms().track(&lane.room_id);
                    let since = moved.get(&lane.room_id).copied();
                    let Some(wakeup) = self.app.lanes.wake(&lane, since) else {
                        continue;
                    };
                    if lane.user_id.is_webhook() {
                        let task = WebhookTask::new(self.app.clone(), lane, wakeup);
                        self.tasks.spawn(task.run());
                    } else {
                        let task =
                            LaneTask::new(self.app.clone(), lane, wakeup, self.outcomes.clone());
                        self.tasks.spawn(task.run());
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot look for agents to call; tried again soon");
            }
        }
    }

    /// The lanes of these rooms that are behind and this node's to work on.
    async fn lanes_to_work_on(&self, rooms: &[&RoomId]) -> Result<Vec<Lane>, DbError> {
        let node = self.app.node.as_str();
        let mut conn = self.app.db.read().await?;
        let now = conn.schedule_ms().await?;
        let behind = conn.lanes_behind(rooms, now, LEASE_MS).await?;
        drop(conn);
        let single_node = self.app.db.is_sqlite();
        let (mine, others): (Vec<_>, Vec<_>) = behind
            .into_iter()
            .partition(|row| single_node || (row.held && row.claimed_by.as_deref() == Some(node)));
        let mut lanes: Vec<Lane> = mine
            .into_iter()
            .map(|row| Lane {
                room_id: row.room_id,
                user_id: row.user_id,
            })
            .collect();
        let free: Vec<(&RoomId, &UserId, Option<&str>)> = others
            .iter()
            .filter(|row| !row.held)
            .map(|row| {
                let claimed_by = row.claimed_by.as_deref();
                (&row.room_id, &row.user_id, claimed_by)
            })
            .collect();
        if !free.is_empty() {
            let mut tx = self.app.db.begin_keeping_cache().await?;
            let claimed = tx.claim_lanes(&free, node).await?;
            tx.commit().await?;
            lanes.extend(claimed);
        }
        Ok(lanes)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
