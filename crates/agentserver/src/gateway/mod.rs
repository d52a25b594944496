//! How the outside takes part in an organism, whatever it is: a terminal, HTTP,
//! a schedule, a room.
//!
//! Whoever connects one implements [`Outlet`] and sends through
//! [`Conversations`]: many conversations at once, each under a
//! [`CorrelationId`] that the outside chose. An answer comes with the id of its
//! conversation and is acknowledged by taking it.

mod conversations;
mod correlation;

pub use conversations::{GatewayConversations, Idle, PendingAck};
pub use correlation::{CorrelationError, CorrelationId};

use crate::core::HopId;
use crate::pump::Delivered;
use futures_util::future::BoxFuture;

/// An answer on its way out.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The conversation it belongs to.
    pub correlation: CorrelationId,
    /// Counts the answers of its conversation since the program started, from 1.
    pub number: u64,
    /// What was said, and by whom. Its id is a key by which the outside knows an
    /// answer that comes again.
    pub message: Delivered,
    pending_ack: PendingAck,
}

impl Answer {
    /// Keeps it from being acknowledged when it is taken: it comes again after a
    /// crash until [`Held::acknowledge`].
    pub fn defer_ack(&self) -> PendingAck {
        self.pending_ack.defer();
        self.pending_ack.clone()
    }
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// It may be another time: the answer comes again.
    #[error("not now: {0}")]
    Retry(String),
    /// Nobody is there any more: the answer is dropped, and the log says so.
    #[error("never: {0}")]
    Gone(String),
}

/// Where a gateway's answers go.
pub trait Outlet: Send + Sync + 'static {
    /// Gives an answer to the outside. `Ok` acknowledges it, unless that is deferred: it
    /// never comes again. The next answer of the same conversation waits for this one.
    fn deliver<'a>(&'a self, answer: &'a Answer) -> BoxFuture<'a, Result<(), DeliveryError>>;

    /// Nothing of a conversation waits or runs any more; all answers to `last`, the
    /// last message that was sent before that, and to those before it were delivered.
    /// None was sent where the conversation is from before a crash.
    fn rested(&self, _correlation: &CorrelationId, _last: Option<HopId>) {}

    /// A conversation is over; its id may be used for another.
    fn closed(&self, _correlation: &CorrelationId) {}
}
