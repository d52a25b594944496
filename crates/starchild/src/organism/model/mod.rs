//! The models of an organism: openstarry's providers, several as one. How an
//! API is spoken to is openstarry's affair; whom to ask and when to ask again
//! is decided here, and nowhere else.

mod bucket;
mod file;
mod pool;
mod pooled_provider;
#[cfg(test)]
mod script;

pub use file::ModelsFile;
pub use pool::Pool;
pub use pooled_provider::ModelReply;
#[cfg(test)]
pub use script::Script;

use openstarry::pain::AgentPain;
use openstarry::segment::StopReason;
use std::time::Duration;

/// Why a model said nothing.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Its provider failed.
    #[error(transparent)]
    Provider(#[from] AgentPain),
    /// It cannot be asked as things are: its key is missing.
    #[error("{0}")]
    NoKey(String),
    /// It stopped before it had said a word.
    #[error("the model stopped without a word: {0:?}")]
    Silent(StopReason),
    /// It said more than is read.
    #[error("the model's answer is over {0} bytes")]
    TooLong(usize),
    /// There is none.
    #[error("there is no model")]
    None,
}

impl ModelError {
    /// How long the model asked to be left alone, nought where it did not say;
    /// nothing when another try would end the same way.
    fn passes_after(&self) -> Option<Duration> {
        match self {
            Self::Provider(pain) => passes_after(pain),
            _ => None,
        }
    }
}

fn passes_after(pain: &AgentPain) -> Option<Duration> {
    match pain {
        AgentPain::RateLimited { retry_after, .. } | AgentPain::Unavailable { retry_after, .. } => {
            Some(retry_after.unwrap_or_default())
        }
        AgentPain::Network(_)
        | AgentPain::Timeout(_)
        | AgentPain::Silent(_)
        | AgentPain::Stalled(_) => Some(Duration::ZERO),
        AgentPain::Interrupted { cause, .. } => passes_after(cause),
        AgentPain::Config(_)
        | AgentPain::Key(_)
        | AgentPain::Refused { .. }
        | AgentPain::Blocked(_)
        | AgentPain::Unreadable { .. }
        | AgentPain::TooLarge(_) => None,
    }
}
