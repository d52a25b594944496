//! Which part of the history a model sees. Pure. It cuts between turns and
//! between rounds, so a call is never split from its result.

use super::budget::estimate;
use super::history::{History, Turn};
use crate::segment::{Message, Role};

/// How much of the history is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// About so many tokens, instructions and tools included.
    pub tokens: u64,
    /// And no more than the last so many turns, where there is such a limit.
    pub turns: Option<usize>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            tokens: 75_000,
            turns: None,
        }
    }
}

impl Window {
    /// The window for a model whose context has so many tokens: a quarter is left
    /// for what it says.
    pub fn of_context(tokens: u64) -> Self {
        Self {
            tokens: tokens / 4 * 3,
            turns: None,
        }
    }
}

/// The messages to show: what stands for the turns that are left out, and all
/// turns after them.
pub fn window(history: &History, turns: Option<usize>) -> Vec<Message> {
    let first = first_shown(history, turns);
    let mut messages = Vec::new();
    messages.extend(stand_in(history, first));
    for (at, turn) in history.turns.iter().enumerate().skip(first) {
        messages.push(turn.input_message());
        for (round, said) in turn.rounds.iter().enumerate() {
            said.messages(&mut messages, history.is_shortened(at, round));
        }
    }
    messages
}

/// As [`window`], with as many rounds cut from the front as it takes to stay
/// below `limit`. What the user asked last stays.
pub(super) fn cut(history: &History, turns: Option<usize>, limit: u64) -> Vec<Message> {
    let first = first_shown(history, turns);
    let mut blocks = Vec::new();
    for (at, turn) in history.turns.iter().enumerate().skip(first) {
        blocks.extend(unbreakable(history, at, turn));
    }
    let left_out = over(&blocks, limit);
    if left_out == 0 {
        return window(history, turns);
    }
    let mut messages = Vec::new();
    messages.extend(stand_in(history, first));
    let text = "Earlier parts of this conversation are left out here.";
    messages.push(Message::text(Role::System, text));
    let shown = &blocks[left_out..];
    if let Some(turn) = history.turns.last().filter(|_| !has_user(shown)) {
        messages.push(turn.input_message());
    }
    messages.extend(shown.iter().flatten().cloned());
    messages
}

fn first_shown(history: &History, turns: Option<usize>) -> usize {
    let covered = history.summary.as_ref().map_or(0, |summary| summary.covers);
    let late = turns.map_or(0, |turns| history.turns.len().saturating_sub(turns.max(1)));
    covered.max(late).min(history.turns.len().saturating_sub(1))
}

/// The message that stands for the turns before `first`.
fn stand_in(history: &History, first: usize) -> Option<Message> {
    if first == 0 {
        return None;
    }
    let summary = history.summary.as_ref();
    let text = match summary.map_or("", |summary| summary.text.as_str()) {
        "" => "Earlier parts of this conversation are left out here.".to_owned(),
        text => format!("What was said before, in short: {text}"),
    };
    Some(Message::text(Role::System, text))
}

/// What may not be cut apart: an input with its first round, or a further round.
fn unbreakable(history: &History, at: usize, turn: &Turn) -> Vec<Vec<Message>> {
    let mut blocks = vec![vec![turn.input_message()]];
    for (round, said) in turn.rounds.iter().enumerate() {
        let mut block = Vec::new();
        said.messages(&mut block, history.is_shortened(at, round));
        match round {
            0 => blocks[0].extend(block),
            _ => blocks.push(block),
        }
    }
    blocks
}

/// How many blocks to leave out from the front to stay below the limit; the last
/// one always stays.
fn over(blocks: &[Vec<Message>], limit: u64) -> usize {
    let mut total = 0;
    for (at, block) in blocks.iter().enumerate().rev() {
        total += estimate(block);
        if total > limit {
            return (at + 1).min(blocks.len() - 1);
        }
    }
    0
}

fn has_user(blocks: &[Vec<Message>]) -> bool {
    let mut messages = blocks.iter().flatten();
    messages.any(|message| message.role == Role::User)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{ContentSegment, ToolCall, ToolResult};
    use crate::session::history::{OpenRound, Summary};
    use serde_json::json;

    fn history(turns: usize, rounds: usize) -> History {
        let mut history = History::default();
        for turn in 0..turns {
            history.begin(vec![ContentSegment::text(format!("question {turn}"))]);
            for round in 0..rounds {
                let call = ToolCall::new(format!("{turn}-{round}"), "t", json!({}));
                let reply = vec![ContentSegment::ToolCall { tool_call: call }];
                let mut open = OpenRound::new(reply, None);
                open.answer(
                    0,
                    ToolResult {
                        id: String::new(),
                        name: String::new(),
                        content: vec![ContentSegment::text("found ".repeat(1000))],
                        is_error: false,
                    },
                );
                history.push(open.close("done"));
            }
        }
        history
    }

    fn paired(messages: &[Message]) -> bool {
        messages
            .iter()
            .enumerate()
            .all(|(at, message)| match message.role {
                Role::Assistant => messages
                    .get(at + 1)
                    .is_some_and(|next| next.role == Role::Tool),
                Role::Tool => at > 0 && messages[at - 1].role == Role::Assistant,
                _ => true,
            })
    }

    #[test]
    fn no_limit_ever_splits_a_call_from_its_result_or_loses_the_question() {
        for rounds in 0..6 {
            let mut history = history(8, rounds);
            for covers in [0, 3, 7, 9] {
                history.summary = (covers > 0).then(|| Summary {
                    covers,
                    text: "cats".into(),
                });
                for turns in (0..10).map(Some).chain([None]) {
                    for limit in (0..4000).step_by(97) {
                        let shown = cut(&history, turns, limit);
                        assert!(paired(&shown), "{turns:?} {limit}: {shown:?}");
                        let last = Message::text(Role::User, "question 7");
                        assert_eq!(shown.iter().filter(|m| **m == last).count(), 1);
                    }
                }
            }
        }
    }

    #[test]
    fn all_turns_are_shown_and_the_summary_stands_for_the_rest() {
        let mut history = history(8, 1);
        let shown = window(&history, None);
        assert_eq!(shown.iter().filter(|m| m.role == Role::User).count(), 8);
        history.summary = Some(Summary {
            covers: 3,
            text: "they spoke of cats".into(),
        });
        let shown = window(&history, None);
        assert_eq!(shown.iter().filter(|m| m.role == Role::User).count(), 5);
        assert!(crate::segment::joined_text(&shown[0].segments).contains("cats"));
    }

    #[test]
    fn old_results_are_shortened_and_the_newest_are_not() {
        let mut history = history(3, 2);
        let before = estimate(&window(&history, None));
        assert_eq!(history.shorten_results(), 4);
        assert_eq!(history.shorten_results(), 0, "twice changes nothing");
        let shown = window(&history, None);
        assert!(estimate(&shown) < before / 2);
        assert!(paired(&shown));
        let texts: Vec<String> = shown
            .iter()
            .filter(|message| message.role == Role::Tool)
            .map(|message| format!("{:?}", message.segments))
            .collect();
        let short: Vec<bool> = texts.iter().map(|t| t.contains("shortened")).collect();
        assert_eq!(short, [true, true, true, true, false, false]);
    }
}
