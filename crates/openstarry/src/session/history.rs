//! What was said in a session. Every call has its result by construction: a
//! round can only be made from an open round, and closing one fills the gaps.

use crate::pain::excerpt;
use crate::segment::{ContentSegment, Message, Role, StopReason, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

/// Turns that are kept; the oldest go first.
const MAX_TURNS: usize = 1000;
/// The last rounds, whose results are always whole.
const WHOLE_ROUNDS: usize = 2;

/// One think-act round: a reply, a result for each of its calls, and what the
/// core observed. Observations come after the results, never between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "SavedRound")]
pub struct Round {
    reply: Vec<ContentSegment>,
    /// Why the model stopped, where the API told.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopReason>,
    results: Vec<ToolResult>,
    observations: Vec<String>,
}

/// A round as a file tells it, which may have been written by anyone.
#[derive(Deserialize)]
struct SavedRound {
    reply: Vec<ContentSegment>,
    #[serde(default)]
    stop: Option<StopReason>,
    #[serde(default)]
    results: Vec<ToolResult>,
    #[serde(default)]
    observations: Vec<String>,
}

impl From<SavedRound> for Round {
    fn from(saved: SavedRound) -> Self {
        OpenRound::from(saved).close("there is no record of what it gave")
    }
}

impl From<SavedRound> for OpenRound {
    fn from(saved: SavedRound) -> Self {
        let mut open = Self::new(saved.reply, saved.stop);
        for result in saved.results {
            let at = open.calls.iter().position(|call| call.id() == result.id);
            if let Some(at) = at {
                open.answer(at, result);
            }
        }
        open.observations = saved.observations;
        open
    }
}

impl Round {
    /// What the model said.
    pub fn reply(&self) -> &[ContentSegment] {
        &self.reply
    }

    /// Why it stopped, where the API told.
    pub fn stop(&self) -> Option<&StopReason> {
        self.stop.as_ref()
    }

    /// What its calls gave, in the order of the calls.
    pub fn results(&self) -> &[ToolResult] {
        &self.results
    }

    /// What the core told the model.
    pub fn observations(&self) -> &[String] {
        &self.observations
    }

    /// The messages of the round; with results in short where `short`.
    pub(crate) fn messages(&self, out: &mut Vec<Message>, short: bool) {
        if !self.reply.is_empty() {
            out.push(Message {
                role: Role::Assistant,
                segments: self.reply.clone(),
            });
        }
        if !self.results.is_empty() {
            let results = self.results.iter().map(|result| match short {
                true => shortened(result),
                false => result.clone(),
            });
            out.push(Message {
                role: Role::Tool,
                segments: results
                    .map(|tool_result| ContentSegment::ToolResult { tool_result })
                    .collect(),
            });
        }
        if !self.observations.is_empty() {
            out.push(Message::text(Role::System, self.observations.join("\n")));
        }
    }
}

/// Results up to this many bytes are never shortened.
const SHORT: usize = 400;

fn is_long(result: &ToolResult) -> bool {
    result.content.iter().any(|segment| match segment {
        ContentSegment::Text { text } => text.len() > SHORT,
        other => other.as_media().is_some(),
    })
}

/// The beginning of a result, for a model that has seen it whole.
fn shortened(result: &ToolResult) -> ToolResult {
    let short = |segment: &ContentSegment| match segment {
        ContentSegment::Text { text } if text.len() > SHORT => ContentSegment::text(format!(
            "{}\n[shortened: {} of {} bytes; call the tool again to see the rest]",
            excerpt(text, SHORT),
            SHORT,
            text.len()
        )),
        other => match other.as_media() {
            Some((kind, _)) => ContentSegment::text(format!("[{kind}, no longer shown]")),
            None => other.clone(),
        },
    };
    ToolResult {
        content: result.content.iter().map(short).collect(),
        ..result.clone()
    }
}

/// A round whose calls are under way. It is saved while they wait for a yes,
/// before any of them has a result.
#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "SavedRound")]
pub(crate) struct OpenRound {
    reply: Vec<ContentSegment>,
    stop: Option<StopReason>,
    #[serde(skip)]
    calls: Vec<ToolCall>,
    #[serde(skip)]
    results: Vec<Option<ToolResult>>,
    observations: Vec<String>,
}

impl OpenRound {
    pub(crate) fn new(reply: Vec<ContentSegment>, stop: Option<StopReason>) -> Self {
        let calls: Vec<ToolCall> = reply.iter().filter_map(|s| s.as_call().cloned()).collect();
        Self {
            results: vec![None; calls.len()],
            reply,
            stop,
            calls,
            observations: Vec::new(),
        }
    }

    pub(crate) fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// The result of the call at `at`. It takes the call's id and name.
    pub(crate) fn answer(&mut self, at: usize, mut result: ToolResult) {
        if let (Some(slot), Some(call)) = (self.results.get_mut(at), self.calls.get(at)) {
            result.id = call.id().into();
            result.name.clone_from(&call.name);
            *slot = Some(result);
        }
    }

    pub(crate) fn observe(&mut self, text: String) {
        self.observations.push(text);
    }

    /// Closes the round. Calls without a result get one that says `missing`.
    pub(crate) fn close(self, missing: &str) -> Round {
        let results = self.results.into_iter().zip(&self.calls);
        Round {
            results: results
                .map(|(result, call)| result.unwrap_or_else(|| failed(call, missing)))
                .collect(),
            reply: self.reply,
            stop: self.stop,
            observations: self.observations,
        }
    }
}

/// The result of a call that failed or never ran.
pub(crate) fn failed(call: &ToolCall, why: impl Into<String>) -> ToolResult {
    ToolResult {
        id: call.id().into(),
        name: call.name.clone(),
        content: vec![ContentSegment::text(why)],
        is_error: true,
    }
}

/// What the user said, and the rounds that followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What the user said.
    pub input: Vec<ContentSegment>,
    /// What followed.
    #[serde(default)]
    pub rounds: Vec<Round>,
}

impl Turn {
    pub(crate) fn input_message(&self) -> Message {
        Message {
            role: Role::User,
            segments: self.input.clone(),
        }
    }

    pub(crate) fn messages(&self, out: &mut Vec<Message>) {
        out.push(self.input_message());
        self.rounds
            .iter()
            .for_each(|round| round.messages(out, false));
    }
}

/// Turns in a few words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many turns, from the first, it stands for.
    pub covers: usize,
    /// The words.
    pub text: String,
}

/// All turns of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The turns, oldest first.
    pub turns: Vec<Turn>,
    /// What the first of them were about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The turn and the round before which results are shown in short.
    #[serde(default)]
    shortened: (usize, usize),
}

impl History {
    /// Begins a turn.
    pub(crate) fn begin(&mut self, input: Vec<ContentSegment>) {
        if self.turns.len() >= MAX_TURNS {
            self.turns.remove(0);
            self.shortened = match self.shortened {
                (0, _) => (0, 0),
                (turn, round) => (turn - 1, round),
            };
            if let Some(summary) = &mut self.summary {
                summary.covers = summary.covers.saturating_sub(1);
            }
        }
        self.turns.push(Turn {
            input,
            rounds: Vec::new(),
        });
    }

    /// Adds a round to the last turn.
    pub(crate) fn push(&mut self, round: Round) {
        if let Some(turn) = self.turns.last_mut() {
            turn.rounds.push(round);
        }
    }

    /// Whether the results of this round are shown in short.
    pub(crate) fn is_shortened(&self, turn: usize, round: usize) -> bool {
        (turn, round) < self.shortened
    }

    /// From now on the results of all rounds but the last are shown in short.
    /// How many that makes shorter.
    pub(crate) fn shorten_results(&mut self) -> usize {
        let places = self.turns.iter().enumerate().flat_map(|(at, turn)| {
            let rounds = turn.rounds.iter().enumerate();
            rounds.map(move |(round, said)| ((at, round), said))
        });
        let places: Vec<_> = places.collect();
        let Some(last) = places.len().checked_sub(WHOLE_ROUNDS) else {
            return 0;
        };
        let until = places.get(last).map_or((0, 0), |(place, _)| *place);
        let newly = places[..last].iter();
        let newly = newly.filter(|(place, _)| *place >= self.shortened);
        let longer: usize = newly
            .map(|(_, round)| round.results.iter().filter(|r| is_long(r)).count())
            .sum();
        self.shortened = self.shortened.max(until);
        longer
    }

    /// The ids of all calls.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = &str> {
        let rounds = self.turns.iter().flat_map(|turn| &turn.rounds);
        let results = rounds.flat_map(|round| &round.results);
        results.map(|result| result.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str) -> ContentSegment {
        ContentSegment::ToolCall {
            tool_call: ToolCall::new(id, "t", json!({})),
        }
    }

    #[test]
    fn a_closed_round_has_a_result_for_each_call_in_their_order() {
        let mut open = OpenRound::new(vec![call("a"), ContentSegment::text("x"), call("b")], None);
        let done = ToolResult {
            id: "wrong".into(),
            name: "wrong".into(),
            content: vec![],
            is_error: false,
        };
        open.answer(1, done.clone());
        open.answer(7, done);
        let round = open.close("cut off");
        let ids: Vec<_> = round
            .results()
            .iter()
            .map(|r| (r.id.as_str(), r.is_error))
            .collect();
        assert_eq!(ids, [("a", true), ("b", false)]);
        assert_eq!(round.results()[0].text(), "cut off");
    }

    #[test]
    fn a_saved_round_with_missing_or_strange_results_is_put_right() {
        let saved = json!({
            "reply": [{ "type": "tool_call", "toolCall": { "id": "a", "name": "t", "args": {} } }],
            "results": [{ "id": "stranger", "name": "x", "content": [] }],
        });
        let round: Round = serde_json::from_value(saved).unwrap();
        assert_eq!(round.results().len(), 1);
        assert_eq!(round.results()[0].id, "a");
        assert!(round.results()[0].is_error);
    }

    #[test]
    fn observations_follow_the_results() {
        let mut open = OpenRound::new(vec![call("a")], None);
        open.observe("take care".into());
        let mut messages = Vec::new();
        open.close("x").messages(&mut messages, false);
        let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::Assistant, Role::Tool, Role::System]);
    }
}
