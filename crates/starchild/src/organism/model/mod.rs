//! Models: a text in, a text out. Small on purpose, so that another provider
//! can take its place.

mod bucket;
mod http;
mod pool;

pub use pool::{ModelsFile, Pool};

use futures_util::future::BoxFuture;
use std::time::Duration;

/// Something that completes a text.
pub trait Model: Send + Sync {
    /// What the model says to `user` under `system`.
    fn complete<'a>(
        &'a self,
        system: &'a str,
        user: &'a str,
    ) -> BoxFuture<'a, Result<String, ModelError>>;
}

/// Why a model said nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The key is wrong. Trying again changes nothing.
    #[error("the model's key was refused")]
    Unauthorized,
    /// The request itself is wrong.
    #[error("the model refused the request with status {0}")]
    Refused(u16),
    /// It may go better later.
    #[error("the model is not to be had: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
        /// When to try again, where it said so.
        retry_after: Option<Duration>,
    },
    /// It answered something that is no answer.
    #[error("the model's answer was not understood: {0}")]
    Garbled(String),
    /// There is none.
    #[error("there is no model")]
    None,
}
