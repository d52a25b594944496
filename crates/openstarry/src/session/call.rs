//! Runs one call: the gate, the time limit, the result, the audit line.

use super::audit::{AuditLine, Verdict};
use super::history::failed;
use super::state::{self, Planned, unknown_tool};
use super::{SessionEvent, Settings, span};
use crate::pain::excerpt;
use crate::segment::{ContentSegment, ToolCall, ToolResult};
use crate::tool::{Registered, ToolContext, ToolOutcome, ToolSet};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// The most text of one result that goes into the history.
const MAX_RESULT: usize = 256 << 10;
const MAX_AUDITED: usize = 2000;

impl Planned {
    /// Whether it may run beside its neighbours.
    pub(super) fn independent(&self) -> bool {
        match &self.verdict {
            state::Verdict::Run(tool) => tool.spec().independent,
            state::Verdict::Refuse(_) => true,
        }
    }
}

pub(super) struct Caller<'a> {
    pub(super) settings: &'a Settings,
    pub(super) events: &'a mpsc::Sender<SessionEvent>,
    pub(super) context: ToolContext,
}

impl Caller<'_> {
    /// A call of the model.
    pub(super) async fn planned(&self, planned: &Planned) -> (usize, ToolResult) {
        let call = &planned.call;
        self.started(call).await;
        let started = Instant::now();
        let (verdict, result) = match &planned.verdict {
            state::Verdict::Refuse(why) => (Verdict::Refused, failed(call, why)),
            state::Verdict::Run(tool) => {
                let gate = &self.settings.confirmation;
                match gate.allows(&self.context.session, call, tool.spec()).await {
                    true => self.run(tool, call).await,
                    false => {
                        let why = "Denied: this call was not allowed, so it did not run.";
                        (Verdict::Denied, failed(call, why))
                    }
                }
            }
        };
        self.finished(call, verdict, &result, started).await;
        (planned.at, result)
    }

    /// A slash command. The user asked for it, so nobody else is asked.
    pub(super) async fn command(
        &self,
        name: &str,
        args: Value,
        tools: &ToolSet,
    ) -> Vec<ContentSegment> {
        let call = ToolCall::new(uuid::Uuid::new_v4(), name, args);
        self.started(&call).await;
        let started = Instant::now();
        let (verdict, result) = match tools.get(name) {
            None => (Verdict::Refused, failed(&call, unknown_tool(name, tools))),
            Some(tool) => match tool.check(&call.args) {
                Err(error) => (Verdict::Refused, failed(&call, error.to_string())),
                Ok(()) => self.run(tool, &call).await,
            },
        };
        self.finished(&call, verdict, &result, started).await;
        result.content
    }

    /// Runs a tool in a task of its own, so that a panic or an endless loop in it
    /// ends nothing else, and gives a result in any case.
    async fn run(&self, tool: &Arc<Registered>, call: &ToolCall) -> (Verdict, ToolResult) {
        for hook in &self.settings.hooks {
            if let Err(why) = hook.before_tool(&self.context.session, call).await {
                return (Verdict::Denied, failed(call, bounded(why)));
            }
        }
        let span = span::tool(call);
        let (verdict, mut result) = self.run_alone(tool, call).instrument(span).await;
        for hook in &self.settings.hooks {
            let session = &self.context.session;
            hook.after_tool(session, call, &mut result).await;
        }
        (verdict, result)
    }

    async fn run_alone(&self, tool: &Arc<Registered>, call: &ToolCall) -> (Verdict, ToolResult) {
        let limit = tool.spec().timeout.unwrap_or(self.settings.tool_timeout);
        let (tool, args) = (Arc::clone(tool), call.args.clone());
        let context = self.context.clone();
        let work = async move { tool.tool().call(args, &context).await };
        let work = tokio::spawn(work.in_current_span());
        let mut work = AbortOnDrop(work);
        let outcome: Result<ToolOutcome, String> =
            match tokio::time::timeout(limit, &mut work.0).await {
                Err(_) => Err(format!("It was ended after {} s.", limit.as_secs_f32())),
                Ok(Err(_)) => Err("The tool broke.".into()),
                Ok(Ok(outcome)) => Ok(outcome),
            };
        match outcome {
            Ok(Ok(content)) => (Verdict::Done, done(call, content)),
            Ok(Err(error)) => (Verdict::Failed, failed(call, bounded(error.0))),
            Err(why) => (Verdict::Failed, failed(call, why)),
        }
    }

    async fn started(&self, call: &ToolCall) {
        let event = SessionEvent::ToolStarted {
            call: call.clone(),
            principal: self.context.principal,
        };
        let _ = self.events.send(event).await;
    }

    async fn finished(
        &self,
        call: &ToolCall,
        verdict: Verdict,
        result: &ToolResult,
        started: Instant,
    ) {
        let ms = started.elapsed().as_millis() as u64;
        self.settings.audit.record(&AuditLine {
            time: jiff::Timestamp::now().to_string(),
            session: self.context.session.clone(),
            principal: self.context.principal,
            tool: call.name.clone(),
            args: excerpt(&call.args_text(), MAX_AUDITED).into(),
            verdict,
            ms,
        });
        let event = SessionEvent::ToolFinished {
            result: result.clone(),
            ms,
        };
        let _ = self.events.send(event).await;
    }
}

fn done(call: &ToolCall, content: Vec<ContentSegment>) -> ToolResult {
    let bound = |segment| match segment {
        ContentSegment::Text { text } => ContentSegment::text(bounded(text)),
        other => other,
    };
    ToolResult {
        id: call.id().into(),
        name: call.name.clone(),
        content: content.into_iter().map(bound).collect(),
        is_error: false,
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MAX_RESULT {
        let left = text.len() - MAX_RESULT;
        text.truncate(text.floor_char_boundary(MAX_RESULT));
        text.push_str(&format!("\n[cut: {left} more bytes]"));
    }
    text
}

/// Ends the work when nobody waits for it any more.
struct AbortOnDrop(JoinHandle<ToolOutcome>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
