//! Names that the outside gives to its conversations.

use std::fmt;
use std::sync::Arc;

/// A conversation's name outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CorrelationId(Arc<str>);

/// A text that is no correlation id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a correlation id is 1 to 128 printable ASCII characters without spaces")]
pub struct CorrelationError;

impl CorrelationId {
    const BYTES: usize = 128;

    /// Reads one that the outside chose.
    pub fn parse(text: &str) -> Result<Self, CorrelationError> {
        let is_one = (1..=Self::BYTES).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        match is_one {
            true => Ok(Self(Arc::from(text))),
            false => Err(CorrelationError),
        }
    }

    /// One that nobody can guess.
    pub fn random() -> Self {
        Self(Arc::from(uuid::Uuid::new_v4().to_string()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
