//! A session's state, and the loop's rules on it. Pure: the driver asks what to
//! do next, does it, and tells what came of it.

use super::budget::{Limits, Spent, usage_of};
use super::end::{EndReason, end_of};
use super::expenses::Expenses;
use super::failures::{Alarm, Failures};
use super::history::{History, OpenRound};
use super::plan::{Planned, plan};
use crate::approval::SessionGrants;
use crate::provider::{ANSWERED_BY, Fold};
use crate::segment::{
    ContentSegment, Metadata, ProviderResponse, StopReason, ToolResult, Usage, joined_text,
};
use crate::tool::ToolSet;
use crate::tool::builtin::Todo;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Tools used lately, which stay on offer.
const RECENT_TOOLS: usize = 12;
/// Requests of fewer tokens say little about how the API counts.
const SMALLEST_COMPARED: u64 = 200;

/// All there is to a session; what is saved and resumed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SessionState {
    /// The id.
    pub id: String,
    /// What was said.
    #[serde(default)]
    pub history: History,
    /// What it has used up.
    #[serde(default)]
    pub spent: Spent,
    /// Why it was stopped; nothing runs until it is reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    #[serde(default)]
    failures: Failures,
    /// Things to do.
    #[serde(default)]
    pub todos: Arc<Mutex<Vec<Todo>>>,
    #[serde(default)]
    recent_tools: Vec<String>,
    /// The model it asks, where that is not the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many tokens the API counts for one that we estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_ratio: Option<f64>,
    /// The most tokens that a request may have, since one with more was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overflow: Option<u64>,
    /// The ids of all calls, once they are needed.
    #[serde(skip)]
    call_ids: Option<HashSet<String>>,
    /// The model that stood in for the one that was asked, in the last reply.
    #[serde(skip)]
    pub(crate) stood_in: Option<String>,
    #[serde(skip)]
    rounds: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<OpenRound>,
    /// Whether the calls of the open round wait for a yes; none of them ran.
    #[serde(default)]
    deciding: bool,
    /// What was allowed for the rest of the session.
    #[serde(default)]
    pub(crate) grants: SessionGrants,
    /// What its tools have spent on models and it has not counted yet.
    #[serde(skip)]
    pub(crate) expenses: Expenses,
    /// Who else counts what it spends: the session that it works for.
    #[serde(skip)]
    pub(crate) paid_by: Option<Expenses>,
    /// The reply that is being heard; here, so that cancelling keeps it.
    #[serde(skip)]
    pub(crate) pending_reply: Option<PendingReply>,
}

/// A reply that is being heard.
#[derive(Debug)]
pub(crate) struct PendingReply {
    pub(crate) fold: Fold,
    /// About how many tokens were sent for it.
    pub(crate) request: u64,
}

/// What to do next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Ask the model.
    Ask,
    /// Run these calls.
    Run(Vec<Planned>),
    /// The turn is over.
    End(EndReason),
}

/// What came of a call.
pub(crate) struct CallResult {
    pub(crate) at: usize,
    pub(crate) result: ToolResult,
    /// Whether it was denied: that is no failure of the model's.
    pub(crate) denied: bool,
}

/// What a round's results led to, besides the next step.
#[derive(Debug, Default)]
pub(crate) struct RoundNotices {
    pub(crate) user: Vec<String>,
}

impl SessionState {
    /// A new session.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Begins a turn.
    pub(crate) fn begin(&mut self, input: Vec<ContentSegment>) -> Step {
        if let Some(why) = &self.stopped {
            return Step::End(EndReason::Stopped(why.clone()));
        }
        self.give_up("the user said something else first");
        self.rounds = 0;
        self.history.begin(input);
        Step::Ask
    }

    /// Whether calls wait for a yes, also after a restart.
    pub fn waits(&self) -> bool {
        self.open.is_some() && self.deciding
    }

    /// What was said last: where calls wait, what they are for.
    pub fn last_words(&self) -> String {
        let last = self.history.turns.last();
        last.map(|turn| joined_text(&turn.input))
            .unwrap_or_default()
    }

    /// The calls of the open round wait for a yes, or do not any more.
    pub(crate) fn set_deciding(&mut self, deciding: bool) {
        self.deciding = deciding;
    }

    /// Goes on with the calls that waited when the program ended.
    pub(crate) fn go_on(&mut self, tools: &ToolSet) -> Option<Step> {
        let round = self.open.as_ref().filter(|_| self.deciding)?;
        let calls = round.calls().iter().enumerate();
        Some(Step::Run(
            // What was cut off never waits.
            calls
                .map(|(at, call)| plan(at, call, tools, None))
                .collect(),
        ))
    }

    /// Puts a state right that was saved by a program that has ended since.
    pub(crate) fn recover(&mut self) {
        if !self.deciding {
            self.give_up("the program ended before it was finished; it may have had its effect");
        }
    }

    /// Closes the open round, if there is one.
    fn give_up(&mut self, why: &str) {
        self.deciding = false;
        if let Some(round) = self.open.take() {
            self.history
                .push(round.close(&format!("not finished: {why}")));
        }
    }

    /// Forgets what was said and why the session stopped. What was spent stays.
    pub(crate) fn reset(&mut self) {
        self.open = None;
        self.deciding = false;
        self.history = History::default();
        self.stopped = None;
        self.failures = Failures::default();
        self.recent_tools.clear();
        self.call_ids = None;
    }

    /// Counts a reply.
    pub(crate) fn spend(&mut self, usage: Usage, limits: &Limits) {
        let mut spent = Spent::default();
        spent.add(usage, limits);
        self.count(spent);
    }

    /// Counts what its tools have spent.
    pub(crate) fn count_expenses(&mut self) {
        let spent = self.expenses.take();
        self.count(spent);
    }

    fn count(&mut self, spent: Spent) {
        self.spent.add_all(spent);
        if let Some(payer) = &self.paid_by {
            payer.add(spent);
        }
    }

    /// Takes a reply. `request` is about how many tokens were sent.
    pub(crate) fn reply(
        &mut self,
        mut reply: ProviderResponse,
        request: u64,
        tools: &ToolSet,
        limits: &Limits,
    ) -> Step {
        let usage = usage_of(reply.metadata.usage, request, &reply.segments);
        self.spend(usage, limits);
        self.compare(reply.metadata.usage, request);
        self.make_ids_unique(&mut reply.segments);
        let Metadata {
            stop_reason, extra, ..
        } = reply.metadata;
        let stood_in = extra.get(ANSWERED_BY).and_then(|model| model.as_str());
        self.stood_in = stood_in.map(String::from);
        let mut round = OpenRound::new(reply.segments, stop_reason.clone());
        let end = end_of(stop_reason.as_ref(), &extra);
        if let EndReason::Refused(why) = &end {
            self.history.push(round.close(&format!("not run: {why}")));
            return Step::End(end);
        }
        let malformed = stop_reason == Some(StopReason::MalformedCall);
        let goes_on = malformed || stop_reason == Some(StopReason::Pause);
        if round.calls().is_empty() && !goes_on {
            self.history.push(round.close(""));
            return Step::End(end);
        }
        if self.rounds >= limits.rounds {
            let why = format!(
                "the limit of {} rounds in a turn is reached (limits.rounds); say \"go on\" for more",
                limits.rounds
            );
            self.history.push(round.close(&format!("not run: {why}")));
            return Step::End(EndReason::Rounds(why));
        }
        self.rounds += 1;
        if malformed {
            let said = extra.get("finishMessage").and_then(|said| said.as_str());
            let said = said.unwrap_or("no more is known");
            round.observe(format!(
                "Your last tool call could not be read: {said}. Try again."
            ));
        }
        let cut = stop_reason.as_ref().filter(|stop| stop.cuts());
        let plan: Vec<Planned> = round
            .calls()
            .iter()
            .enumerate()
            .map(|(at, call)| plan(at, call, tools, cut))
            .collect();
        self.open = Some(round);
        Step::Run(plan)
    }

    /// Takes the results of a round's calls.
    pub(crate) fn results(&mut self, results: Vec<CallResult>) -> (RoundNotices, Step) {
        let mut notices = RoundNotices::default();
        self.deciding = false;
        let Some(mut round) = self.open.take() else {
            return (notices, Step::Ask);
        };
        let calls = round.calls().to_vec();
        let mut stop = None;
        for CallResult { at, result, denied } in results {
            let Some(call) = calls.get(at) else { continue };
            self.remember_tool(&call.name);
            let alarms = match denied {
                true => Vec::new(),
                false => self.failures.record(call, result.is_error),
            };
            for alarm in alarms {
                match alarm {
                    Alarm::TellModel(text) => round.observe(text),
                    Alarm::TellUser(text) => notices.user.push(text),
                    Alarm::Stop(text) => stop = Some(text),
                }
            }
            round.answer(at, result);
        }
        self.history.push(round.close("the call was lost"));
        let step = match stop {
            Some(why) => {
                self.stopped = Some(why.clone());
                Step::End(EndReason::Stopped(why))
            }
            None => Step::Ask,
        };
        (notices, step)
    }

    /// The turn broke off: the provider failed, or nobody waits. What was heard
    /// stays and is paid for, and calls that did not finish are answered with
    /// `why`.
    pub(crate) fn break_off(&mut self, why: &str, limits: &Limits) {
        if let Some(PendingReply { fold, request }) = self.pending_reply.take() {
            let mut heard = fold.heard();
            if !heard.segments.is_empty() {
                let usage = usage_of(heard.metadata.usage, request, &heard.segments);
                self.spend(usage, limits);
                self.make_ids_unique(&mut heard.segments);
                self.open = Some(OpenRound::new(heard.segments, None));
            }
        }
        if let Some(round) = &mut self.open {
            round.observe(format!("The answer broke off: {why}."));
        }
        self.give_up(why);
    }

    /// Tools that were used lately, and those that a search found.
    pub(crate) fn recent_tools(&self) -> &[String] {
        &self.recent_tools
    }

    pub(crate) fn remember_tool(&mut self, name: &str) {
        self.recent_tools.retain(|known| known != name);
        self.recent_tools.push(name.into());
        let over = self.recent_tools.len().saturating_sub(RECENT_TOOLS);
        self.recent_tools.drain(..over);
    }

    /// Some APIs count calls from nought in every reply; others refuse an id
    /// that comes twice.
    fn make_ids_unique(&mut self, segments: &mut [ContentSegment]) {
        let history = &self.history;
        let known = self
            .call_ids
            .get_or_insert_with(|| history.call_ids().map(String::from).collect());
        for segment in segments {
            if let ContentSegment::ToolCall { tool_call } = segment {
                if tool_call.id().is_empty() || known.contains(tool_call.id()) {
                    tool_call.id = Some(uuid::Uuid::new_v4().to_string());
                }
                known.insert(tool_call.id().to_owned());
            }
        }
    }

    /// Compares what the API counted with our estimate.
    fn compare(&mut self, told: Option<Usage>, request: u64) {
        let told = told.map_or(0, |usage| usage.input_tokens);
        if told > 0 && request >= SMALLEST_COMPARED {
            self.token_ratio = Some((told as f64 / request as f64).clamp(0.5, 3.0));
        }
    }

    /// The window of `tokens` in tokens as we estimate them.
    pub(crate) fn window_limit(&self, tokens: u64) -> u64 {
        let limit = self.overflow.map_or(tokens, |most| most.min(tokens));
        (limit as f64 / self.token_ratio.unwrap_or(1.0)) as u64
    }

    /// A request of about so many tokens was too long for the model: the next has
    /// a third less.
    pub(crate) fn note_overflow(&mut self, request: u64) {
        let counted = request as f64 * self.token_ratio.unwrap_or(1.0);
        self.overflow = Some((counted * 2.0 / 3.0) as u64);
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
