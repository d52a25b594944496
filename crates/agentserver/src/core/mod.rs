//! The rules, without I/O: threads, peers, queues and watchers as one state
//! machine. The pump drives it: it puts in what came from outside and what
//! handlers gave back, and carries out the [`Effect`]s that come out.

mod queues;
mod route;
mod threads;
mod todo;

#[cfg(test)]
mod properties;

pub use route::{Core, CoreLimits};
pub use threads::ThreadId;

pub(crate) use route::{Arrival, Effect, Fit, Form, Job, Outcome, Outgoing};
