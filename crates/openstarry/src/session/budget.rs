//! Rounds, tokens and money. Pure.

use crate::provider::Context;
use crate::segment::{ContentSegment, Message, Usage};
use crate::tool::ToolView;
use serde::{Deserialize, Serialize};

/// What a medium counts for when nobody tells.
const MEDIA_TOKENS: u64 = 1000;

/// The price of a million tokens, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from the API's cache; as `input` when left out.
    #[serde(default)]
    pub cached: Option<f64>,
}

impl Price {
    /// What so many tokens cost.
    pub fn of(&self, usage: Usage) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let fresh = usage.input_tokens - cached;
        let cost = fresh as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + usage.output_tokens as f64 * self.output;
        cost / 1e6
    }
}

/// How far a session may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Rounds of tools in one turn.
    pub rounds: u32,
    /// Tokens of the whole session.
    pub tokens: Option<u64>,
    /// Money of the whole session.
    pub money: Option<f64>,
    /// What tokens cost.
    pub price: Option<Price>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: 10,
            tokens: None,
            money: None,
            price: None,
        }
    }
}

/// What a session has used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens.
    pub usage: Usage,
    /// Money, where the price is known.
    pub money: f64,
}

impl Spent {
    /// Adds a reply.
    pub fn add(&mut self, usage: Usage, limits: &Limits) {
        self.usage.add(usage);
        self.money += limits.price.map_or(0.0, |price| price.of(usage));
    }

    /// Adds what was spent elsewhere.
    pub(super) fn add_all(&mut self, other: Self) {
        self.usage.add(other.usage);
        self.money += other.money;
    }

    /// Whether a request of about `tokens` may still be sent; else why not.
    pub fn admit(&self, tokens: u64, limits: &Limits) -> Result<(), String> {
        let used = self.usage.total();
        if let Some(limit) = limits.tokens
            && used.saturating_add(tokens) > limit
        {
            let why = format!(
                "limits.tokens is reached: {used} of {limit} tokens are used, and the next request \
                 needs about {tokens}; raise it in agent.yaml, or /compact if that is enough"
            );
            return Err(why);
        }
        let next = Usage {
            input_tokens: tokens,
            ..Usage::default()
        };
        let cost = limits.price.map_or(0.0, |price| price.of(next));
        if let Some(limit) = limits.money
            && self.money + cost > limit
        {
            let why = format!(
                "limits.money is reached: {:.4} of {limit:.4} is spent, and the next request costs \
                 about {cost:.4}; raise it in agent.yaml to go on",
                self.money
            );
            return Err(why);
        }
        Ok(())
    }
}

/// The usage of a reply: what the API told, or an estimate.
pub(crate) fn usage_of(told: Option<Usage>, request: u64, reply: &[ContentSegment]) -> Usage {
    let told = told.unwrap_or_default();
    let mut usage = told;
    if told.input_tokens == 0 {
        usage.input_tokens = request;
        usage.estimated = true;
    }
    if told.output_tokens == 0 {
        usage.output_tokens = reply.iter().map(segment_tokens).sum();
        usage.estimated |= usage.output_tokens > 0;
    }
    usage
}

/// About how many tokens a request has.
pub(crate) fn request_tokens(context: &Context, prompt: &str) -> u64 {
    text_tokens(&context.system)
        + text_tokens(prompt)
        + estimate(&context.messages)
        + tool_tokens(&context.tools)
}

/// About how many tokens messages have.
pub(crate) fn estimate(messages: &[Message]) -> u64 {
    let message = |message: &Message| 4 + message.segments.iter().map(segment_tokens).sum::<u64>();
    messages.iter().map(message).sum()
}

fn tool_tokens(tools: &ToolView) -> u64 {
    let tool = |spec: &crate::tool::ToolSpec| {
        8 + text_tokens(&spec.description) + value_tokens(&spec.parameters)
    };
    tools.specs().map(tool).sum()
}

fn segment_tokens(segment: &ContentSegment) -> u64 {
    match segment {
        ContentSegment::Text { text } | ContentSegment::Reasoning { text } => text_tokens(text),
        ContentSegment::Ui { ui } => value_tokens(ui),
        ContentSegment::Provider { item, .. } => value_tokens(item),
        ContentSegment::ToolCall { tool_call } => {
            4 + text_tokens(&tool_call.name) + value_tokens(&tool_call.args)
        }
        ContentSegment::ToolResult { tool_result } => {
            4 + tool_result.content.iter().map(segment_tokens).sum::<u64>()
        }
        ContentSegment::Image(_) | ContentSegment::Audio(_) | ContentSegment::Video(_) => {
            MEDIA_TOKENS
        }
    }
}

/// Without writing the value out: this runs for every round.
fn value_tokens(value: &serde_json::Value) -> u64 {
    use serde_json::Value;
    match value {
        Value::String(text) => 1 + text_tokens(text),
        Value::Array(items) => 1 + items.iter().map(value_tokens).sum::<u64>(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| 1 + text_tokens(key) + value_tokens(value))
            .sum(),
        _ => 1,
    }
}

/// Four letters a token in scripts with an alphabet, one character in others.
fn text_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let others = (text.len() as u64 - ascii) / 3;
    ascii.div_ceil(4) + others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_money_run_out() {
        let limits = Limits {
            tokens: Some(1000),
            money: Some(0.01),
            price: Some(Price {
                input: 3.0,
                output: 15.0,
                cached: Some(0.3),
            }),
            ..Limits::default()
        };
        let mut spent = Spent::default();
        assert!(spent.admit(900, &limits).is_ok());
        assert!(spent.admit(1001, &limits).is_err());
        spent.add(
            Usage {
                input_tokens: 100,
                output_tokens: 600,
                cached_tokens: 50,
                estimated: false,
            },
            &limits,
        );
        assert!((spent.money - 0.009165).abs() < 1e-9);
        assert!(spent.admit(200, &limits).is_ok());
        assert!(spent.admit(299, &limits).unwrap_err().contains("spent"));
        assert!(spent.admit(301, &limits).unwrap_err().contains("tokens"));
    }

    #[test]
    fn what_no_api_told_is_estimated_and_marked() {
        let reply = [ContentSegment::text("x".repeat(40))];
        let usage = usage_of(None, 7, &reply);
        assert_eq!(
            (usage.input_tokens, usage.output_tokens, usage.estimated),
            (7, 10, true)
        );
        let told = Usage {
            input_tokens: 5,
            output_tokens: 2,
            ..Usage::default()
        };
        assert_eq!(usage_of(Some(told), 7, &reply), told);
        assert_eq!(text_tokens("台北天氣"), 4);
    }
}
