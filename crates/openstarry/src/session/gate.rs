//! The gate: who says yes before a destructive tool runs. It fails closed: no
//! answer, a late answer and a gate that breaks all mean no.

use crate::segment::ToolCall;
use crate::tool::{Risk, ToolSpec};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Asks someone.
pub trait Gate: Send + Sync {
    /// Whether the call may run.
    fn confirm<'a>(
        &'a self,
        session: &'a str,
        call: &'a ToolCall,
        risk: Risk,
    ) -> BoxFuture<'a, bool>;
}

/// Says no to everything.
pub struct DenyAll;

impl Gate for DenyAll {
    fn confirm<'a>(&'a self, _: &'a str, _: &'a ToolCall, _: Risk) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }
}

/// Which calls are asked about, and whom.
#[derive(Clone)]
pub struct Confirmation {
    /// Calls of this risk and above are asked about.
    pub from: Risk,
    /// Tools the owner said yes to beforehand.
    pub approved: Vec<String>,
    /// Whom to ask.
    pub gate: Arc<dyn Gate>,
    /// How long to wait for an answer.
    pub patience: Duration,
}

impl Default for Confirmation {
    fn default() -> Self {
        Self {
            from: Risk::Destructive,
            approved: Vec::new(),
            gate: Arc::new(DenyAll),
            patience: Duration::from_secs(300),
        }
    }
}

impl Confirmation {
    /// Whether the call may run.
    pub(crate) async fn allows(&self, session: &str, call: &ToolCall, spec: &ToolSpec) -> bool {
        if spec.risk < self.from || self.approved.contains(&spec.name) {
            return true;
        }
        let asked = AssertUnwindSafe(self.gate.confirm(session, call, spec.risk)).catch_unwind();
        matches!(
            tokio::time::timeout(self.patience, asked).await,
            Ok(Ok(true))
        )
    }
}
