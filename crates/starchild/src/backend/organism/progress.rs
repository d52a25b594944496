//! What is seen of an organism while it works on an answer: who is at work, and what it costs.

use crate::backend::Call;
use agentserver::{
    ThreadId,
    trace::{Hop, HopKind},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc;

/// Hops that wait to be told; more are left out.
const WAITING: usize = 1024;

/// The calls under way, by conversation. Clones are the same.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<HashMap<ThreadId, Call>>>);

/// A call under way; it is told of hops for as long as this lives.
pub struct Followed {
    calls: Calls,
    conversation: ThreadId,
}

impl Calls {
    /// Where the pump tells its hops. The task ends with the pump.
    pub fn listen(&self) -> mpsc::Sender<Hop> {
        let (sender, mut hops) = mpsc::channel(WAITING);
        let calls = self.clone();
        tokio::spawn(async move {
            while let Some(hop) = hops.recv().await {
                calls.tell(&hop);
            }
        });
        sender
    }

    /// Tells a call of a conversation's hops.
    pub fn follow(&self, conversation: ThreadId, call: &Call) -> Followed {
        self.lock().insert(conversation, call.clone());
        Followed {
            calls: self.clone(),
            conversation,
        }
    }

    fn tell(&self, hop: &Hop) {
        let calls = self.lock();
        let Some(call) = calls.get(&hop.conversation) else {
            return;
        };
        match &hop.kind {
            HopKind::Call => call.report_activity(&hop.to),
            HopKind::Handled(handling) => call.report_usage(|usage| {
                if handling.tokens > 0 {
                    // The pump counts what is read and written together.
                    *usage.input_tokens.get_or_insert_default() += handling.tokens;
                }
                if handling.money > 0 {
                    *usage.cost_usd.get_or_insert_default() += handling.money as f64 / 1e6;
                }
            }),
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.conversation);
    }
}
