//! `organism.yaml`: which listeners there are, what they accept and whom they
//! may send to. What code stands behind a listener is the embedding program's
//! to say: its kinds (`K`) and settings of its own (`M`) are type parameters.

mod build;
mod fields;
mod file;

pub use file::{
    BudgetFile, BudgetsFile, Compiled, Durable, FieldFile, FieldType, GatewayFile, LimitsFile,
    ListenerFile, ListenerLimits, OrganismFile, PayloadFile, PayloadKind,
};

use std::fmt;

/// Something wrong in the file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 when it has no place.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// Everything wrong in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError(pub Vec<Problem>);
