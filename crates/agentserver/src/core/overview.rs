//! The state of the rules in words: what a person who looks into a run sees.

use super::budget::Budget;
use super::machine::Core;
use super::message::{HopId, Job};
use super::threads::ThreadId;
use serde::Serialize;
use std::sync::Arc;

/// What waits, runs and is open at one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Overview {
    /// Messages that wait for their turn, by hop id.
    pub waiting: Vec<OpenMessage>,
    /// Messages that a handler works on, by hop id.
    pub running: Vec<OpenMessage>,
    /// Threads, each after the one that called it.
    pub threads: Vec<OpenThread>,
    /// To-dos that nobody has closed.
    pub todos: Vec<OpenTodo>,
    /// Budgets of work that is not done.
    pub budgets: Vec<OpenBudget>,
}

/// A message that is not done with.
#[derive(Debug, Clone, Serialize)]
pub struct OpenMessage {
    /// Its id.
    pub id: HopId,
    /// Its conversation.
    pub conversation: ThreadId,
    /// Who sent it.
    pub from: Arc<str>,
    /// Whom it is for.
    pub to: Arc<str>,
    /// The type of what it carries.
    pub payload: String,
}

/// A thread that lives.
#[derive(Debug, Clone, Serialize)]
pub struct OpenThread {
    /// Its id.
    pub id: ThreadId,
    /// Its conversation.
    pub conversation: ThreadId,
    /// Whose it is: a listener's, or at depth 0 the gateway's that began it.
    pub owner: Arc<str>,
    /// How many listeners are between it and the outside.
    pub depth: usize,
    /// Messages of it that wait or run.
    pub busy: usize,
}

/// A to-do that nobody has closed.
#[derive(Debug, Clone, Serialize)]
pub struct OpenTodo {
    /// Its id.
    pub id: String,
    /// The thread that set it.
    pub thread: ThreadId,
    /// Whose thread that is.
    pub owner: Option<Arc<str>>,
    /// The type of the message that is awaited.
    pub wait_for: String,
    /// From whom; from anybody, where it is empty.
    pub from_listener: String,
    /// What for.
    pub description: String,
    /// Whether it has come.
    pub is_raised: bool,
}

/// What work has used of its budget.
#[derive(Debug, Clone, Serialize)]
pub struct OpenBudget {
    /// Whose work: `conversation`, `request HOP`, `call THREAD` or `pump`.
    pub of: String,
    /// What it may use.
    pub budget: Budget,
    /// Messages so far.
    pub messages: u64,
    /// Calls of models so far.
    pub model_calls: u64,
    /// Tokens so far.
    pub tokens: u64,
    /// Millionths of the currency so far.
    pub money: u64,
    /// Whether it is used up.
    pub is_over: bool,
}

impl OpenMessage {
    fn of(job: &Job) -> Self {
        Self {
            id: job.id,
            conversation: job.root,
            from: job.from.clone(),
            to: job.entry.listener.name.clone(),
            payload: job.payload.root().to_owned(),
        }
    }
}

impl Core {
    /// What waits, runs and is open.
    pub(crate) fn overview(&self) -> Overview {
        let behind = self.behind.values().chain(self.calls.values()).flatten();
        let waiting = behind.chain(self.queues.iter()).map(OpenMessage::of);
        let running = self.running.values();
        let running = running.map(|running| OpenMessage::of(&running.job));
        let mut overview = Overview {
            waiting: waiting.collect(),
            running: running.collect(),
            threads: self.threads.overview(),
            todos: self.todos.overview(),
            budgets: self.accounts.overview(),
        };
        overview.waiting.sort_by_key(|message| message.id);
        overview.running.sort_by_key(|message| message.id);
        for todo in &mut overview.todos {
            todo.owner = self.threads.owner(todo.thread);
        }
        overview
    }
}
