//! Sums up turns that leave the window.

use super::SessionEvent;
use super::budget::{request_tokens, usage_of};
use super::drive::Driver;
use super::history::Summary;
use super::state::SessionState;
use crate::provider::Context;
use crate::tool::ToolView;

const ASK: &str = "Sum up the conversation so far in at most 200 words: what the user wants, what \
    was found out, what was decided, what is still open. Write the summary alone.";

/// Sums up when twice the window has gathered, so that it happens once in a
/// while and not in every turn. A failure costs the summary and nothing else.
pub(super) async fn keep_up(driver: &Driver<'_>, state: &mut SessionState) {
    let settings = &driver.inner.settings;
    let keep = settings.window.turns.max(1);
    let turns = state.history.turns.len();
    let covered = state
        .history
        .summary
        .as_ref()
        .map_or(0, |summary| summary.covers);
    if turns < covered + 2 * keep {
        return;
    }
    let upto = turns - keep;
    let mut messages = Vec::new();
    if let Some(summary) = &state.history.summary {
        let text = format!("What was said before, in short: {}", summary.text);
        messages.push(crate::segment::Message::text(
            crate::segment::Role::System,
            text,
        ));
    }
    for turn in &state.history.turns[covered..upto] {
        turn.messages(&mut messages);
    }
    let context = Context {
        system: settings.system.clone(),
        messages,
        tools: ToolView::default(),
    };
    let request = request_tokens(&context, ASK);
    if state.spent.admit(request, &settings.limits).is_err() {
        return;
    }
    match driver.inner.provider.generate(ASK, &context).await {
        Ok(reply) => {
            let usage = usage_of(reply.metadata.usage, request, &reply.segments);
            state.spent.add(usage, &settings.limits);
            state.history.summary = Some(Summary {
                covers: upto,
                text: reply.text(),
            });
        }
        Err(error) => {
            let text = format!("What was said earlier could not be summed up: {error}");
            driver.tell(SessionEvent::Notice { text }).await;
        }
    }
}
