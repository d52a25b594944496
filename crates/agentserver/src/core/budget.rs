//! Budgets: what one piece of work may use, and what it has used.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What one piece of work may use; nothing said is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Messages one after the other, each caused by the one before.
    pub hops: Option<u64>,
    /// Messages in all.
    pub messages: Option<u64>,
    /// Calls of models.
    pub model_calls: Option<u64>,
    /// Tokens that models read and wrote.
    pub tokens: Option<u64>,
    /// Millionths of the currency in which the models' prices are given.
    pub money: Option<u64>,
    /// From the first message to the last.
    pub time: Option<Duration>,
}

impl Budget {
    /// What one message from outside may use unless said otherwise.
    pub const REQUEST: Self = Self {
        hops: Some(256),
        messages: Some(1000),
        model_calls: Some(50),
        tokens: Some(1_000_000),
        money: None,
        time: Some(Duration::from_secs(3600)),
    };

    /// Whether it bounds nothing.
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }
}

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Messages.
    pub messages: u64,
    /// Calls of models.
    pub model_calls: u64,
    /// Tokens that models read and wrote.
    pub tokens: u64,
    /// Millionths of the currency.
    pub money: u64,
}

impl Usage {
    pub fn add(&mut self, more: Self) {
        self.messages = self.messages.saturating_add(more.messages);
        self.model_calls = self.model_calls.saturating_add(more.model_calls);
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.money = self.money.saturating_add(more.money);
    }
}

/// A bound that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Hops(u64),
    Messages(u64),
    ModelCalls(u64),
    Tokens(u64),
    Money(u64),
    Time(Duration),
}

impl Bound {
    /// Its key in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hops(_) => "hops",
            Self::Messages(_) => "messages",
            Self::ModelCalls(_) => "model_calls",
            Self::Tokens(_) => "tokens",
            Self::Money(_) => "money",
            Self::Time(_) => "seconds",
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hops(most) => write!(f, "{most} messages one after the other"),
            Self::Messages(most) => write!(f, "{most} messages"),
            Self::ModelCalls(most) => write!(f, "{most} model calls"),
            Self::Tokens(most) => write!(f, "{most} tokens"),
            Self::Money(most) => {
                let digits = format!("{:06}", most % 1_000_000);
                let digits = match digits.trim_end_matches('0') {
                    "" => "0",
                    digits => digits,
                };
                write!(f, "{}.{digits} of money", most / 1_000_000)
            }
            Self::Time(most) => write!(f, "{} seconds", most.as_secs_f64()),
        }
    }
}
