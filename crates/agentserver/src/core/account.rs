//! One account: whose work it pays for, what that may use, and which bound it
//! reaches.

use super::budget::{Bound, Budget, Usage};
use super::message::HopId;
use super::threads::ThreadId;
use super::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An account's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AccountId(pub(super) usize);

/// What caused a message: whose account it is on, and how many came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    pub account: AccountId,
    pub hops: u64,
}

impl Cause {
    /// The cause of a message that follows from one with this cause.
    pub fn next(self) -> Self {
        Self {
            hops: self.hops + 1,
            ..self
        }
    }
}

/// Whose work an account pays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// A conversation, from its first message to its last.
    Conversation,
    /// One message from outside and all that follows from it.
    Request(HopId),
    /// One call of a listener, in this thread of its own, and all that follows.
    Call(ThreadId),
    /// Something that the pump itself began.
    Internal,
    /// What a reminder leads to: the so many'th in a row, however many to-dos they
    /// were of.
    Nudge(u32),
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conversation => f.write_str("conversation"),
            Self::Request(hop) => write!(f, "request {hop}"),
            Self::Call(thread) => write!(f, "call {thread}"),
            Self::Internal => f.write_str("pump"),
            Self::Nudge(count) => write!(f, "nudge {count}"),
        }
    }
}

/// An account that is used up.
#[derive(Debug, Clone, Copy)]
pub struct Exhausted {
    pub account: AccountId,
    pub parent: Option<AccountId>,
    /// The thread that asked for the work, and is told.
    pub holder: ThreadId,
    pub work: Work,
    pub bound: Bound,
    /// How many messages had come one after the other.
    pub hops: u64,
}

/// What one piece of work may use, and has used.
#[derive(Serialize, Deserialize)]
pub struct Account {
    pub parent: Option<AccountId>,
    /// The thread that asked for the work.
    pub holder: ThreadId,
    pub work: Work,
    pub budget: Budget,
    pub spent: Usage,
    /// Hops before it, counted from outside.
    #[serde(default)]
    pub begun: u64,
    /// Hops after which the work is over, counted from outside.
    pub last_hop: u64,
    pub deadline: Option<Time>,
    /// Messages and accounts that rest on this one.
    pub users: usize,
    pub is_over: bool,
}

impl Account {
    /// The bound that `used` more would pass.
    pub fn reached(&self, hops: u64, used: Usage) -> Option<Bound> {
        let Budget {
            messages,
            model_calls,
            tokens,
            money,
            ..
        } = self.budget;
        let spent = self.spent;
        let over = |most: Option<u64>, now: u64| most.filter(|most| now > *most);
        // A call needs something left; it may then take more than that.
        let is_call = used.model_calls > 0;
        let none_left = |most: Option<u64>, now: u64| most.filter(|most| is_call && now >= *most);
        if hops > self.last_hop {
            return Some(Bound::Hops(self.budget.hops.unwrap_or(self.last_hop)));
        }
        over(messages, spent.messages.saturating_add(used.messages))
            .map(Bound::Messages)
            .or_else(|| {
                over(
                    model_calls,
                    spent.model_calls.saturating_add(used.model_calls),
                )
                .map(Bound::ModelCalls)
            })
            .or_else(|| none_left(tokens, spent.tokens).map(Bound::Tokens))
            .or_else(|| none_left(money, spent.money).map(Bound::Money))
    }

    /// What is told when this bound is reached.
    pub fn exhausted(&self, account: AccountId, bound: Bound, hops: u64) -> Exhausted {
        Exhausted {
            account,
            parent: self.parent,
            holder: self.holder,
            work: self.work,
            bound,
            hops,
        }
    }
}
