//! Whether an agent's answer could be posted, without I/O. Asked before the agent is called, since
//! nobody should work for nothing, and again before its answer is posted.

use super::settle::Settled;
use crate::{
    clock::Now,
    config::Limits,
    metrics::Delivered,
    services::posting::exchanges::{self, Effect, Voice, Word},
    store::rooms::RoomRow,
};

/// Why an agent's answer cannot be posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswerable {
    /// The chain of answers is as deep as the room allows.
    TooDeep,
    /// The agents may say no more to each other for now.
    UsedUp,
}

impl From<Unanswerable> for Settled {
    fn from(why: Unanswerable) -> Self {
        match why {
            Unanswerable::TooDeep => Self::TooDeep,
            Unanswerable::UsedUp => Self::UsedUp,
        }
    }
}

impl From<Unanswerable> for Delivered {
    fn from(why: Unanswerable) -> Self {
        match why {
            Unanswerable::TooDeep => Self::TooDeep,
            Unanswerable::UsedUp => Self::UsedUp,
        }
    }
}

/// A message that an agent is to answer, or has.
#[derive(Debug, Clone)]
pub struct Answered {
    pub seq: i64,
    pub depth: i64,
    pub sender: String,
    pub via: String,
}

/// What an agent's answer to a message would do to the room's exchanges.
pub fn answerable(
    room: &RoomRow,
    user: &str,
    answered: &Answered,
    limits: &Limits,
    now: Now,
) -> Result<Effect, Unanswerable> {
    if answered.depth >= room.max_reply_chain_depth {
        return Err(Unanswerable::TooDeep);
    }
    let word = Word {
        voice: Voice::Agent,
        user,
        answers: Some((&answered.sender, &answered.via)),
    };
    exchanges::weigh(room, word, limits, now).map_err(|_| Unanswerable::UsedUp)
}
