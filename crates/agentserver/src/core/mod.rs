//! The rules, without I/O: threads, peers, queues and to-dos as one state
//! machine. The pump drives it: it puts in what came from outside and what
//! handlers gave back, and carries out the [`Effect`]s that come out.

mod account;
mod accounts;
mod asks;
mod budget;
mod conversations;
mod counts;
mod dedup_keys;
mod deliver;
mod finish;
mod hops;
mod ids;
mod input;
mod limits;
mod machine;
mod message;
mod notes;
mod outbox;
mod outline;
mod outside;
mod overview;
mod queues;
mod recover;
mod rights;
mod snapshot;
mod threads;
mod time;
mod todo;
mod todo_rules;
mod turns;

#[cfg(test)]
mod properties;

pub use budget::Budget;
pub use counts::{ListenerStats, Stats};
pub use limits::CoreLimits;
pub use message::HopId;
pub use overview::{OpenBudget, OpenMessage, OpenThread, OpenTodo, Overview};
pub use threads::ThreadId;

pub(crate) use budget::Usage;
pub(crate) use ids::IdMap;
pub(crate) use input::Record;
pub(crate) use machine::Core;
pub(crate) use message::{Arrival, AskId, Effect, Fit, Form, Job, Outcome, Outgoing};
pub(crate) use notes::Note;
pub(crate) use snapshot::Snapshot;
pub(crate) use time::Time;
