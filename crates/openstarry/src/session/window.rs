//! Which part of the history a model sees. Pure. It cuts between turns and
//! between rounds, so a call is never split from its result.

use super::budget::estimate;
use super::history::History;
use crate::segment::{Message, Role};

/// How much of the history is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The last so many turns.
    pub turns: usize,
    /// And of them no more than about this many tokens.
    pub tokens: Option<u64>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            turns: 5,
            tokens: None,
        }
    }
}

/// The messages to show: the summary of what is left out where there is one,
/// and the last turns.
pub fn window(history: &History, window: Window) -> Vec<Message> {
    let turns = &history.turns;
    let first = turns.len().saturating_sub(window.turns.max(1));
    let mut blocks: Vec<Vec<Message>> = Vec::new();
    for turn in &turns[first..] {
        // A block is what may not be cut: an input with its first round, or a
        // further round.
        let mut block = vec![turn.input_message()];
        let mut rounds = turn.rounds.iter();
        if let Some(round) = rounds.next() {
            round.messages(&mut block);
        }
        blocks.push(block);
        blocks.extend(rounds.map(|round| {
            let mut block = Vec::new();
            round.messages(&mut block);
            block
        }));
    }
    let mut messages = Vec::new();
    if let Some(summary) = history
        .summary
        .as_ref()
        .filter(|s| s.covers > 0 && first > 0)
    {
        let text = format!("What was said before, in short: {}", summary.text);
        messages.push(Message::text(Role::System, text));
    }
    let cut = over(&blocks, window.tokens);
    if cut > 0 {
        let text = "Earlier parts of this conversation are left out here.";
        messages.push(Message::text(Role::System, text));
        // What the user asked last stays, also when the first rounds of its
        // answer are cut.
        if let Some(turn) = turns.last().filter(|_| !has_user(&blocks[cut..])) {
            messages.push(turn.input_message());
        }
    }
    messages.extend(blocks.into_iter().skip(cut).flatten());
    messages
}

/// How many blocks to leave out from the front to stay below the limit; the last
/// one always stays.
fn over(blocks: &[Vec<Message>], limit: Option<u64>) -> usize {
    let Some(limit) = limit else {
        return 0;
    };
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
    use crate::segment::{ContentSegment, ToolCall};
    use crate::session::history::OpenRound;
    use serde_json::json;

    fn history(turns: usize, rounds: usize) -> History {
        let mut history = History::default();
        for turn in 0..turns {
            history.begin(vec![ContentSegment::text(format!("question {turn}"))]);
            for round in 0..rounds {
                let call = ToolCall::new(format!("{turn}-{round}"), "t", json!({}));
                let reply = vec![ContentSegment::ToolCall { tool_call: call }];
                history.push(OpenRound::new(reply, None).close("done"));
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
            let history = history(8, rounds);
            for turns in 0..10 {
                for tokens in (0..400).step_by(7).map(Some).chain([None]) {
                    let shown = window(&history, Window { turns, tokens });
                    assert!(paired(&shown), "{turns} {tokens:?}: {shown:?}");
                    let last = Message::text(Role::User, "question 7");
                    assert_eq!(shown.iter().filter(|m| **m == last).count(), 1);
                }
            }
        }
    }

    #[test]
    fn five_turns_are_shown_and_the_summary_stands_for_the_rest() {
        let mut history = history(8, 1);
        let shown = window(&history, Window::default());
        assert_eq!(shown.iter().filter(|m| m.role == Role::User).count(), 5);
        history.summary = Some(super::super::history::Summary {
            covers: 3,
            text: "they spoke of cats".into(),
        });
        let shown = window(&history, Window::default());
        assert!(crate::segment::joined_text(&shown[0].segments).contains("cats"));
    }
}
