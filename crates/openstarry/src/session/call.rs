//! Runs calls: the approval, the time limit, the result, the audit line.

use super::audit::{AuditLine, Verdict};
use super::history::failed;
use super::plan::{Planned, PlannedAction, unknown_tool};
use super::state::CallResult;
use super::{SessionEvent, Settings, span};
use crate::approval::{Decision, Ruling, SessionGrants, denied};
use crate::pain::excerpt;
use crate::segment::{ContentSegment, ToolCall, ToolResult};
use crate::tool::{Progress, Registered, ToolContext, ToolOutput, ToolSet};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// The most text of one result that goes into the history.
const MAX_RESULT: usize = 256 << 10;
const MAX_AUDITED: usize = 2000;
/// Signs of life that may wait to be shown.
const SIGNS: usize = 8;
/// However often a tool says that it goes on, it ends by then.
const MAX_PROLONGED: Duration = Duration::from_secs(3600);

impl Planned {
    /// Whether it may run beside its neighbours.
    pub(super) fn independent(&self) -> bool {
        match &self.action {
            PlannedAction::Run(tool) => tool.spec().independent,
            PlannedAction::Refuse(_) | PlannedAction::Deny(_) => true,
        }
    }
}

pub(super) struct Caller<'a> {
    pub(super) settings: &'a Settings,
    pub(super) events: &'a mpsc::Sender<SessionEvent>,
    pub(super) grants: SessionGrants,
    pub(super) context: ToolContext,
}

impl Caller<'_> {
    /// Whether someone is asked before it runs.
    pub(super) fn needs_consent(&self, planned: &Planned) -> bool {
        matches!(self.ruling(planned), Some((_, Ruling::Ask)))
    }

    fn ruling<'p>(&self, planned: &'p Planned) -> Option<(&'p Arc<Registered>, Ruling)> {
        match &planned.action {
            PlannedAction::Run(tool) => {
                let approval = &self.settings.approval;
                let ruling = approval.ruling(&planned.call, tool, &self.grants);
                Some((tool, ruling))
            }
            _ => None,
        }
    }

    /// Has the calls of a round approved, one after another: an "always" counts
    /// for those after it. All questions are there to be answered from the
    /// beginning.
    pub(super) async fn decide(&self, mut plan: Vec<Planned>) -> Vec<Planned> {
        let approval = &self.settings.approval;
        let mut questions = Vec::new();
        for planned in &plan {
            if let Some((tool, Ruling::Ask)) = self.ruling(planned) {
                let session = &self.context.session;
                let consent = approval.question(session, &planned.call, tool).await;
                questions.push((planned.at, consent));
            }
        }
        for planned in &mut plan {
            let at = questions.iter().position(|(at, _)| *at == planned.at);
            let consent = at.map(|at| questions.swap_remove(at).1);
            let decision = match (self.ruling(planned), consent) {
                (Some((_, Ruling::Deny(why))), _) => denied(&why),
                (Some((_, Ruling::Ask)), Some(consent)) => {
                    let asked = Box::new(consent.clone());
                    let event = SessionEvent::ConsentAsked { consent: asked };
                    let _ = self.events.send(event).await;
                    approval.ask(&consent, &self.grants).await
                }
                (_, Some(consent)) => {
                    approval.consents.withdraw(&consent.id);
                    Decision::Run
                }
                (_, None) => Decision::Run,
            };
            if let Decision::Deny(why) = decision {
                planned.action = PlannedAction::Deny(why);
            }
        }
        plan
    }

    /// A call of the model that was decided on.
    pub(super) async fn run_planned(&self, planned: &Planned) -> CallResult {
        let call = &planned.call;
        self.started(call).await;
        let started = Instant::now();
        let (verdict, result) = match &planned.action {
            PlannedAction::Refuse(why) => (Verdict::Refused, failed(call, why)),
            PlannedAction::Deny(why) => (Verdict::Denied, failed(call, why)),
            PlannedAction::Run(tool) => self.run(tool, call).await,
        };
        self.finished(call, verdict, &result, started).await;
        CallResult {
            at: planned.at,
            result,
            denied: verdict == Verdict::Denied,
        }
    }

    /// A slash command. The user asked for it, so nobody else is asked; unless it is only believed
    /// that the user did.
    pub(super) async fn command(
        &self,
        name: &str,
        args: Value,
        tools: &ToolSet,
        needs_approval: bool,
    ) -> Vec<ContentSegment> {
        let call = ToolCall::new(uuid::Uuid::new_v4(), name, args);
        self.started(&call).await;
        let started = Instant::now();
        let (verdict, result) = match tools.get(name) {
            None => (Verdict::Refused, failed(&call, unknown_tool(name, tools))),
            Some(tool) => match tool.check(&call.args) {
                Err(error) => (Verdict::Refused, failed(&call, error.to_string())),
                Ok(()) => match needs_approval {
                    true => self.run_if_approved(tool, &call).await,
                    false => self.run(tool, &call).await,
                },
            },
        };
        self.finished(&call, verdict, &result, started).await;
        result.content
    }

    /// Runs a call if it is approved, as one of the model's is.
    async fn run_if_approved(
        &self,
        tool: &Arc<Registered>,
        call: &ToolCall,
    ) -> (Verdict, ToolResult) {
        let approval = &self.settings.approval;
        let decision = match approval.ruling(call, tool, &self.grants) {
            Ruling::Allow => Decision::Run,
            Ruling::Deny(why) => denied(&why),
            Ruling::Ask => {
                let session = &self.context.session;
                let consent = approval.question(session, call, tool).await;
                let asked = Box::new(consent.clone());
                let event = SessionEvent::ConsentAsked { consent: asked };
                let _ = self.events.send(event).await;
                approval.ask(&consent, &self.grants).await
            }
        };
        match decision {
            Decision::Run => self.run(tool, call).await,
            Decision::Deny(why) => (Verdict::Denied, failed(call, why)),
        }
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
        let (verdict, mut result) = self.run_in_task(tool, call).instrument(span).await;
        for hook in &self.settings.hooks {
            let session = &self.context.session;
            hook.after_tool(session, call, &mut result).await;
        }
        (verdict, result)
    }

    async fn run_in_task(&self, tool: &Arc<Registered>, call: &ToolCall) -> (Verdict, ToolResult) {
        let limit = tool.spec().timeout.unwrap_or(self.settings.tool_timeout);
        let (tool, args) = (Arc::clone(tool), call.args.clone());
        let (progress, mut signs) = mpsc::channel(SIGNS);
        let mut context = self.context.clone();
        context.progress = Progress(Some(progress));
        let work = async move { tool.tool().call(args, &context).await };
        let work = tokio::spawn(work.in_current_span());
        let mut work = AbortOnDrop(work);
        let last = tokio::time::Instant::now() + limit.max(MAX_PROLONGED);
        let deadline = tokio::time::sleep(limit);
        tokio::pin!(deadline);
        let output: Result<ToolOutput, String> = loop {
            tokio::select! {
                biased;
                done = &mut work.0 => break done.map_err(|_| "The tool broke.".into()),
                Some(text) = signs.recv(), if tokio::time::Instant::now() < last => {
                    let until = tokio::time::Instant::now() + limit;
                    deadline.as_mut().reset(until.min(last));
                    self.goes_on(call, text).await;
                }
                () = &mut deadline => {
                    let seconds = limit.as_secs_f32();
                    break Err(format!("It was ended after {seconds} s without a sign of life."));
                }
            }
        };
        // What it said right before it was done.
        for text in (0..SIGNS).map_while(|_| signs.try_recv().ok()) {
            self.goes_on(call, text).await;
        }
        match output {
            Ok(Ok(content)) => (Verdict::Done, done(call, content)),
            Ok(Err(error)) => (Verdict::Failed, failed(call, bounded(error.0))),
            Err(why) => (Verdict::Failed, failed(call, why)),
        }
    }

    async fn goes_on(&self, call: &ToolCall, text: String) {
        let id = call.id().to_owned();
        let event = SessionEvent::ToolProgress { id, text };
        let _ = self.events.send(event).await;
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
struct AbortOnDrop(JoinHandle<ToolOutput>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
