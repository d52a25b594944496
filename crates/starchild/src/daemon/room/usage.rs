//! What an answer has cost, as the server takes it. A rule without I/O.

use crate::backend;
use protocol::Usage;
use std::time::Duration;

const MAX_MODEL_CHARS: usize = 100;
const MAX_TOOLS: usize = 50;
const MAX_TOOL_CHARS: usize = 64;
const MAX_TOKENS: u64 = 1_000_000_000;
const MAX_COST_USD: f64 = 100_000.0;
const MAX_SECONDS: f64 = 604_800.0;

/// What a backend told of its call; nothing where it knows nothing. Numbers that cannot be right are
/// left out: no answer is lost because of what it is said to cost.
pub fn of_call(told: backend::Usage, took: Duration) -> Option<Usage> {
    if told == backend::Usage::default() {
        return None;
    }
    let cut = |text: String, chars: usize| -> String {
        let plain = text.chars().filter(|c| !c.is_control());
        plain.take(chars).collect()
    };
    let tokens = |count: Option<u64>| {
        let count = count.filter(|count| *count <= MAX_TOKENS)?;
        i64::try_from(count).ok()
    };
    let tools = told.tools.into_iter().take(MAX_TOOLS);
    let tools = tools.map(|tool| cut(tool, MAX_TOOL_CHARS));
    let model = told.model.map(|model| cut(model, MAX_MODEL_CHARS));
    Some(Usage {
        model: model.filter(|model| !model.trim().is_empty()),
        input_tokens: tokens(told.input_tokens),
        output_tokens: tokens(told.output_tokens),
        cost_usd: told
            .cost_usd
            .filter(|cost| (0.0..=MAX_COST_USD).contains(cost)),
        seconds: Some((took.as_secs_f64() * 10.0).round() / 10.0)
            .filter(|took| *took <= MAX_SECONDS),
        tools: tools.filter(|tool| !tool.trim().is_empty()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_right_is_left_out() {
        let told = backend::Usage {
            model: Some("m".repeat(500)),
            input_tokens: Some(u64::MAX),
            output_tokens: Some(7),
            cost_usd: Some(f64::NAN),
            tools: (0..200)
                .map(|n| format!("{n}{}", "x".repeat(100)))
                .collect(),
        };
        let usage = of_call(told, Duration::from_millis(1234)).unwrap();
        assert_eq!(usage.model.unwrap().len(), MAX_MODEL_CHARS);
        assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(7)));
        assert_eq!((usage.cost_usd, usage.seconds), (None, Some(1.2)));
        assert_eq!(usage.tools.len(), MAX_TOOLS);
        assert!(
            usage
                .tools
                .iter()
                .all(|tool| tool.chars().count() == MAX_TOOL_CHARS)
        );
        assert_eq!(of_call(backend::Usage::default(), Duration::ZERO), None);
    }
}
