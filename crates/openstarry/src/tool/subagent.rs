//! Agents as tools of other agents, each with tools and budgets of its own.

use super::{Risk, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, parse};
use crate::segment::ContentSegment;
use crate::session::{Agent, EndReason, SessionState};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// How long a sub-agent may work on a task unless told otherwise.
const TIMEOUT: Duration = Duration::from_secs(600);

/// An agent that another one can give tasks to. Each task is a session of its
/// own, under the limits of the agent that works on it; what it finds is the
/// result of the call. What it spends counts for both agents; money does where
/// the sub-agent has a price.
pub struct SubAgent {
    spec: ToolSpec,
    agent: Agent,
}

#[derive(Deserialize, JsonSchema)]
struct Task {
    /// What to do, with all that is needed to do it: nothing else is passed on.
    task: String,
}

impl SubAgent {
    /// `agent` under a name, with words that say what it is good for. Its own
    /// tools ask its own approval, so giving it a task is moderate.
    pub fn new(name: &str, description: &str, agent: Agent) -> Self {
        let mut spec = ToolSpec::of::<Task>(name, description, Risk::Moderate);
        spec.timeout = Some(TIMEOUT);
        // Tasks of one reply run side by side.
        spec.independent = true;
        Self { spec, agent }
    }

    /// How long it may work on a task.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(timeout);
        self
    }

    async fn work(&self, task: Task, context: &ToolContext) -> ToolOutput {
        let id = format!("{}-{}", context.session, uuid::Uuid::new_v4());
        let mut state = SessionState::new(id);
        state.paid_by = Some(context.expenses.clone());
        let session = self.agent.session(state, None);
        let turn = session.say(task.task).map_err(ToolError::new)?;
        let outcome = turn.outcome().await;
        let words = outcome.text();
        let shown = |segment: &ContentSegment| {
            matches!(segment, ContentSegment::Text { .. }) || segment.as_media().is_some()
        };
        match outcome.end {
            EndReason::Answered => Ok(outcome.segments.into_iter().filter(shown).collect()),
            end => {
                let why = end.why();
                Err(ToolError(match words.is_empty() {
                    true => format!("{} did not finish: {why}", self.spec.name),
                    false => format!("{} did not finish: {why}. So far: {words}", self.spec.name),
                }))
            }
        }
    }
}

impl Tool for SubAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, context: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { self.work(parse(args)?, context).await })
    }
}
