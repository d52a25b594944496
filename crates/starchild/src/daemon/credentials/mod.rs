//! The agent's credentials: identity tokens and room keys, got, renewed and recovered.

pub mod access;
pub mod key;
pub mod queue;
pub mod refresh;
