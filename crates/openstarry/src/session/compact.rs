//! Keeps a conversation within the model's context: old tool results are shown
//! in short first; then the oldest turns are summed up. The model sees it in what
//! it is shown, and the user is told.

use super::SessionEvent;
use super::budget::{estimate, request_tokens, usage_of};
use super::drive::Driver;
use super::end::{EndReason, end_of};
use super::history::Summary;
use super::state::SessionState;
use super::window::{cut, window};
use crate::provider::Context;
use crate::segment::{ContentSegment, Message, Role};

const ASK: &str = "Sum up the conversation so far in at most 300 words, for yourself: what the user \
    wants, what was found out and done, which files and names matter, what was decided, what is \
    still open. Write the summary alone.";
/// Below this a window shows nothing of use.
const SMALLEST: u64 = 500;

/// The messages for the next request, and about how many tokens they have.
/// `fixed` is about how many the rest of it takes.
pub(super) async fn make_room(
    driver: &Driver<'_>,
    state: &mut SessionState,
    fixed: u64,
) -> (Vec<Message>, u64) {
    let shown = driver.inner.settings.window;
    let limit = state.window_limit(shown.tokens);
    let limit = limit.saturating_sub(fixed).max(SMALLEST);
    let messages = window(&state.history, shown.turns);
    let tokens = estimate(&messages);
    if tokens <= limit {
        return (messages, tokens);
    }
    let shortened = state.history.shorten_results();
    if shortened > 0 {
        let text = format!(
            "The conversation nears the model's context window, so older tool results are shown to \
             it in short ({shortened} of them)."
        );
        driver.tell(SessionEvent::Notice { text }).await;
        let messages = window(&state.history, shown.turns);
        let tokens = estimate(&messages);
        if tokens <= limit {
            return (messages, tokens);
        }
    }
    let keep = turns_within(state, limit / 2);
    if let Some(text) = leave_out(driver, state, keep, limit).await {
        driver.tell(SessionEvent::Notice { text }).await;
    }
    let messages = cut(&state.history, shown.turns, limit);
    let tokens = estimate(&messages);
    (messages, tokens)
}

/// `/compact`: results in short, and all turns but the last summed up.
pub(super) async fn compact(driver: &Driver<'_>, state: &mut SessionState) -> String {
    let before = estimate(&window(&state.history, None));
    let shortened = state.history.shorten_results();
    let limit = state.window_limit(driver.inner.settings.window.tokens);
    let summed = leave_out(driver, state, 1, limit).await;
    let after = estimate(&window(&state.history, None));
    match (shortened, summed) {
        (0, None) => "There is nothing to shorten yet.".into(),
        (_, summed) => format!(
            "The model is shown about {after} tokens of the conversation, {before} before. {}",
            summed.unwrap_or_default()
        ),
    }
}

/// How many of the last turns have about so many tokens; one at least.
fn turns_within(state: &SessionState, limit: u64) -> usize {
    let mut total = 0;
    let mut keep = 0;
    for turn in state.history.turns.iter().rev() {
        let mut messages = Vec::new();
        turn.messages(&mut messages);
        total += estimate(&messages);
        if keep > 0 && total > limit {
            break;
        }
        keep += 1;
    }
    keep.max(1)
}

/// Leaves all but the last `keep` turns out, with a summary in their place where
/// there can be one; says so, when there was something to leave out.
async fn leave_out(
    driver: &Driver<'_>,
    state: &mut SessionState,
    keep: usize,
    limit: u64,
) -> Option<String> {
    let settings = &driver.inner.settings;
    let covers = state.history.turns.len().saturating_sub(keep);
    let summary = state.history.summary.as_ref();
    let covered = summary.map_or(0, |summary| summary.covers);
    if covers <= covered {
        return None;
    }
    let (text, told) = match settings.summarize {
        false => (
            String::new(),
            "Older turns are no longer shown to the model.".to_owned(),
        ),
        true => match sum_up(driver, state, covers, limit).await {
            Ok(text) => (text, "Older turns are summed up for the model.".to_owned()),
            Err(why) => (
                summary_text(state),
                format!("Older turns are left out; they could not be summed up: {why}"),
            ),
        },
    };
    state.history.summary = Some(Summary { covers, text });
    Some(told)
}

fn summary_text(state: &SessionState) -> String {
    let summary = state.history.summary.as_ref();
    summary.map_or(String::new(), |summary| summary.text.clone())
}

/// The first `covers` turns in a few words.
async fn sum_up(
    driver: &Driver<'_>,
    state: &mut SessionState,
    covers: usize,
    limit: u64,
) -> Result<String, String> {
    let limits = &driver.inner.settings.limits;
    let mut before = state.history.clone();
    before.turns.truncate(covers);
    let context = Context {
        system: driver.inner.settings.system.clone(),
        messages: plain(cut(&before, None, limit)),
        ..Context::default()
    };
    let request = request_tokens(&context, ASK);
    state.spent.admit(request, limits)?;
    let reply = driver.provider.generate(ASK, &context).await;
    let reply = reply.map_err(|error| error.to_string())?;
    let usage = usage_of(reply.metadata.usage, request, &reply.segments);
    state.spend(usage, limits);
    if let EndReason::Refused(why) =
        end_of(reply.metadata.stop_reason.as_ref(), &reply.metadata.extra)
    {
        return Err(why);
    }
    match reply.text() {
        text if text.trim().is_empty() => Err("the model said nothing".into()),
        text => Ok(text),
    }
}

/// A conversation in words alone. A request that offers no tools may hold no calls at some APIs,
/// and a summary needs no thoughts.
fn plain(messages: Vec<Message>) -> Vec<Message> {
    let messages = messages.into_iter().filter_map(|message| {
        let role = match message.role {
            Role::Tool => Role::User,
            role => role,
        };
        let segments = message.segments.into_iter().flat_map(words);
        let segments: Vec<ContentSegment> = segments.collect();
        (!segments.is_empty()).then_some(Message { role, segments })
    });
    messages.collect()
}

fn words(segment: ContentSegment) -> Vec<ContentSegment> {
    match segment {
        ContentSegment::ToolCall { tool_call } => {
            let call = format!("[called {} {}]", tool_call.name, tool_call.args_text());
            vec![ContentSegment::text(call)]
        }
        ContentSegment::ToolResult { tool_result } => {
            let about = ContentSegment::text(format!("[what {} gave]", tool_result.name));
            [about].into_iter().chain(tool_result.content).collect()
        }
        ContentSegment::Reasoning { .. } | ContentSegment::Provider { .. } => Vec::new(),
        other => vec![other],
    }
}
