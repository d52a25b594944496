//! The whole state of the rules, to be kept in place of the inputs that led to it.

use super::account::Cause;
use super::accounts::Accounts;
use super::asks::{Asked, Asks};
use super::ids::IdMap;
use super::machine::{Core, Running};
use super::message::{HopId, Job};
use super::outbox::Outbox;
use super::outline::{ListenerOutline, Outline};
use super::queues::Queues;
use super::threads::{ThreadId, Threads};
use super::time::Time;
use super::todo::Todos;
use crate::organism::RegisteredListener;
use crate::payload::Canonical;
use runtime::CancellationToken;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;

/// The state, as it is kept.
#[derive(Serialize, Deserialize)]
pub struct Snapshot {
    outline: Outline,
    /// Listeners that are gone while threads of theirs live.
    retired: Vec<ListenerOutline>,
    threads: Threads,
    accounts: Accounts,
    queues: Queues<KeptJob>,
    behind: IdMap<ThreadId, VecDeque<KeptJob>>,
    calls: IdMap<ThreadId, VecDeque<KeptJob>>,
    running: Vec<KeptRun>,
    todos: Todos,
    asks: Asks,
    keys: IdMap<HopId, Arc<str>>,
    outbox: Outbox,
    hops: u64,
    now: Time,
}

/// A job without the code that handles it.
#[derive(Serialize, Deserialize)]
struct KeptJob {
    id: HopId,
    #[serde(default)]
    parent: Option<HopId>,
    #[serde(default)]
    arrived: Time,
    listener: Arc<str>,
    thread: ThreadId,
    root: ThreadId,
    from: Arc<str>,
    is_self_call: bool,
    payload: Canonical,
    caller: Option<Arc<str>>,
    cause: Cause,
}

#[derive(Serialize, Deserialize)]
struct KeptRun {
    job: KeptJob,
    #[serde(default)]
    begun: Time,
    #[serde(default)]
    model_calls: u64,
    asks: usize,
    asked: Vec<Asked>,
}

impl KeptJob {
    fn of(job: &Job) -> Self {
        Self {
            id: job.id,
            parent: job.parent,
            arrived: job.arrived,
            listener: job.entry.key.clone(),
            thread: job.thread,
            root: job.root,
            from: job.from.clone(),
            is_self_call: job.is_self_call,
            payload: job.payload.clone(),
            caller: job.caller.clone(),
            cause: job.cause,
        }
    }

    fn job(&self, core: &Core) -> Job {
        let entry = core.lookup(&self.listener);
        // One that nobody knows fails when it is run.
        let entry = entry.unwrap_or_else(|| {
            let listener = crate::Listener::named(&self.listener);
            Arc::new(RegisteredListener::bare(listener))
        });
        Job {
            id: self.id,
            parent: self.parent,
            arrived: self.arrived,
            entry,
            organism: core.organism.clone(),
            thread: self.thread,
            root: self.root,
            from: self.from.clone(),
            is_self_call: self.is_self_call,
            payload: self.payload.clone(),
            reminder: None,
            notes: None,
            caller: self.caller.clone(),
            cause: self.cause,
            cancellation: CancellationToken::default(),
        }
    }
}

impl Core {
    /// The state as it is between two inputs, as JSON.
    pub(crate) fn snapshot(&mut self) -> Result<Vec<u8>, serde_json::Error> {
        let kept = |jobs: &IdMap<ThreadId, VecDeque<Job>>| {
            let jobs = jobs.iter();
            jobs.map(|(thread, jobs)| (*thread, jobs.iter().map(KeptJob::of).collect()))
                .collect()
        };
        let running = self.running.values().map(|running| KeptRun {
            job: KeptJob::of(&running.job),
            begun: running.begun,
            model_calls: running.model_calls,
            asks: running.asks,
            asked: running.asked.clone(),
        });
        let mut running: Vec<_> = running.collect();
        running.sort_by_key(|kept| kept.job.id);
        let retired = self.retired.values();
        let snapshot = Snapshot {
            outline: Outline::of(&self.organism, self.limits),
            retired: retired
                .map(|entry| ListenerOutline::of(&entry.listener))
                .collect(),
            queues: self.queues.map(KeptJob::of),
            behind: kept(&self.behind),
            calls: kept(&self.calls),
            running,
            // Lent for as long as they are written.
            threads: take(&mut self.threads),
            accounts: take(&mut self.accounts),
            todos: take(&mut self.todos),
            asks: take(&mut self.asks),
            keys: take(&mut self.keys),
            outbox: self.outbox.take().unwrap_or_default(),
            hops: self.hops,
            now: self.now,
        };
        let json = serde_json::to_vec(&snapshot);
        self.threads = snapshot.threads;
        self.accounts = snapshot.accounts;
        self.todos = snapshot.todos;
        self.asks = snapshot.asks;
        self.keys = snapshot.keys;
        self.outbox = Some(snapshot.outbox);
        json
    }

    /// The rules in the state that was kept.
    pub(crate) fn restore(snapshot: Snapshot) -> Self {
        let organism = Arc::new(snapshot.outline.organism());
        let mut core = Self::new(organism, snapshot.outline.limits);
        let retired = snapshot.retired.iter().map(ListenerOutline::entry);
        core.retired = retired.map(|entry| (entry.key.clone(), entry)).collect();
        core.threads = snapshot.threads;
        core.accounts = snapshot.accounts;
        core.todos = snapshot.todos;
        core.asks = snapshot.asks;
        core.keys = snapshot.keys;
        core.outbox = Some(snapshot.outbox);
        core.hops = snapshot.hops;
        core.now = snapshot.now;
        core.queues = snapshot.queues.map(|kept| kept.job(&core));
        let jobs = |kept: IdMap<ThreadId, VecDeque<KeptJob>>| {
            let kept = kept.into_iter();
            kept.map(|(thread, jobs)| (thread, jobs.iter().map(|kept| kept.job(&core)).collect()))
                .collect()
        };
        let (behind, calls) = (jobs(snapshot.behind), jobs(snapshot.calls));
        let running = snapshot.running.into_iter().map(|kept| {
            let running = Running {
                job: Arc::new(kept.job.job(&core)),
                begun: kept.begun,
                model_calls: kept.model_calls,
                asks: kept.asks,
                asked: kept.asked,
            };
            (running.job.id, running)
        });
        let running = running.collect();
        core.behind = behind;
        core.calls = calls;
        core.running = running;
        core
    }
}
