//! What answers cost, and what agents may spend: usage, wake policies and budgets.

use crate::{UserId, room::wire, words};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most tokens that one answer may be said to have read or written.
const MAX_TOKENS: i64 = 1_000_000_000;
/// The most money that one answer may be said to cost.
const MAX_COST_USD: f64 = 100_000.0;
/// The longest that one answer may be said to have taken.
const MAX_SECONDS: f64 = 604_800.0;
/// The most characters of a model's name.
pub const MAX_MODEL_CHARS: usize = 100;
/// The most characters of a tool's name, and how many tools there may be.
pub const MAX_TOOL_CHARS: usize = 64;
/// The most tools that an answer tells of.
pub const MAX_TOOLS: usize = 50;

words! {
    /// What wakes an agent, the tightest first.
    #[derive(PartialOrd, Ord, Default)]
    Wake {
        /// Nothing does.
        Nothing = "nothing",
        /// Messages that mention it.
        Mentions = "mentions",
        /// These, and messages in threads that it takes part in.
        Threads = "threads",
        /// Every message.
        #[default]
        Everything = "everything",
    }
}

words! {
    /// Which of an agent's two policies somebody sets.
    PolicyOf {
        /// The agent's own.
        Own = "own",
        /// The room's.
        Room = "room",
    }
}

wire! {
    /// What an answer cost, as the agent says.
    #[derive(Default)]
    pub struct Usage {
        /// The model that wrote it, at most 100 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_length = 100))]
        pub model: Option<String>,
        /// Tokens that the model read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000000000))]
        pub input_tokens: Option<i64>,
        /// Tokens that the model wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000000000))]
        pub output_tokens: Option<i64>,
        /// Money, in US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 100000))]
        pub cost_usd: Option<f64>,
        /// How long it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 604800))]
        pub seconds: Option<f64>,
        /// The tools that were used: at most 50 names of at most 64 characters.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "openapi", schema(max_items = 50))]
        pub tools: Vec<String>,
    }

    /// What may be spent in a day, UTC. What is absent is not limited.
    #[derive(Default)]
    pub struct Budget {
        /// Answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000000000))]
        pub turns: Option<i64>,
        /// Tokens, read and written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000000000000_i64))]
        pub tokens: Option<i64>,
        /// US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000000))]
        pub cost_usd: Option<f64>,
    }

    /// `PUT /rooms/{id}/members/{user_id}/wake`: the whole policy. What is absent is not limited.
    #[derive(Default)]
    pub struct WakePolicy {
        /// What wakes the agent.
        #[serde(default)]
        pub wake: Wake,
        /// What it may spend in a day.
        #[serde(default)]
        pub budget: Budget,
    }

    /// What was spent today.
    #[derive(Default)]
    pub struct Spent {
        /// Answers.
        pub turns: i64,
        /// Tokens, read and written.
        pub tokens: i64,
        /// US dollars.
        pub cost_usd: f64,
    }

    /// `GET /rooms/{id}/members/{user_id}/wake`.
    pub struct WakeView {
        /// The member.
        pub user_id: UserId,
        /// What holds: the tighter of the two below.
        pub effective: WakePolicy,
        /// What the agent or its owner has set.
        pub own: WakePolicy,
        /// What the room's owner has set.
        pub room: WakePolicy,
        /// What was spent today.
        pub spent: Spent,
        /// Whether the budget is used up.
        pub used_up: bool,
        /// When the day ends, in unix seconds.
        pub day_ends_at: i64,
        /// Which of the two the caller sets, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub yours: Option<PolicyOf>,
    }

    /// What an agent did in a room on a day.
    pub struct UsageRow {
        /// The room.
        pub room_id: crate::RoomId,
        /// The agent.
        pub user_id: UserId,
        /// The day, as `2026-11-17`, UTC.
        pub day: String,
        /// Answers that were counted: those with usage, and all of an agent with a budget.
        pub turns: i64,
        /// Tokens that models read.
        pub input_tokens: i64,
        /// Tokens that models wrote.
        pub output_tokens: i64,
        /// US dollars.
        pub cost_usd: f64,
        /// How long it took.
        pub seconds: f64,
    }

    /// `GET /rooms/{id}/usage` and `GET /usage`.
    pub struct UsageReport {
        /// By day, the newest first, then by room and agent.
        pub usage: Vec<UsageRow>,
        /// How many days it covers, today included.
        pub days: i64,
    }
}

/// Whether a name can be shown: a short line.
fn is_name(text: &str, most_chars: usize) -> bool {
    let chars = text.chars().count();
    (1..=most_chars).contains(&chars) && !text.chars().any(char::is_control)
}

fn is_count(number: i64) -> bool {
    (0..=MAX_TOKENS).contains(&number)
}

fn is_amount(number: f64, most: f64) -> bool {
    // False for what is no number.
    (0.0..=most).contains(&number)
}

impl Usage {
    /// What is wrong with it, in words.
    pub fn fault(&self) -> Option<String> {
        let counts = [
            ("input_tokens", self.input_tokens),
            ("output_tokens", self.output_tokens),
        ];
        let amounts = [
            ("cost_usd", self.cost_usd, MAX_COST_USD),
            ("seconds", self.seconds, MAX_SECONDS),
        ];
        let tools_fit = self.tools.len() <= MAX_TOOLS
            && self.tools.iter().all(|tool| is_name(tool, MAX_TOOL_CHARS));
        let model = self.model.as_deref();
        if model.is_some_and(|model| !is_name(model, MAX_MODEL_CHARS)) {
            return Some(format!(
                "model must be a line of 1 to {MAX_MODEL_CHARS} characters"
            ));
        }
        if !tools_fit {
            return Some(format!(
                "tools must be at most {MAX_TOOLS} names of 1 to {MAX_TOOL_CHARS} characters"
            ));
        }
        let count = counts.iter().find(|(_, n)| n.is_some_and(|n| !is_count(n)));
        if let Some((field, _)) = count {
            return Some(format!("{field} must be from 0 to {MAX_TOKENS}"));
        }
        let amount = amounts
            .iter()
            .find(|(_, n, most)| n.is_some_and(|n| !is_amount(n, *most)));
        amount.map(|(field, _, most)| format!("{field} must be from 0 to {most}"))
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes what a frame of an agent's stream says of what it cost, in our words or in those of
    /// models' APIs. The newest word counts; what does not fit is no word.
    pub fn absorb(&mut self, frame: &Map<String, Value>) {
        let count = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| frame.get(*name)?.as_i64());
            found.filter(|number| is_count(*number))
        };
        let amount = |names: [&str; 2], most: f64| {
            let found = names.iter().find_map(|name| frame.get(*name)?.as_f64());
            found.filter(|number| is_amount(*number, most))
        };
        let model = frame.get("model").and_then(Value::as_str);
        let model = model.filter(|model| is_name(model, MAX_MODEL_CHARS));
        self.model = model.map(str::to_owned).or(self.model.take());
        self.input_tokens = count(["input_tokens", "prompt_tokens"]).or(self.input_tokens);
        self.output_tokens = count(["output_tokens", "completion_tokens"]).or(self.output_tokens);
        self.cost_usd = amount(["cost_usd", "cost"], MAX_COST_USD).or(self.cost_usd);
        self.seconds = amount(["seconds", "duration_seconds"], MAX_SECONDS).or(self.seconds);
        if let Some(Value::Array(tools)) = frame.get("tools") {
            let names = tools.iter().filter_map(Value::as_str);
            let names = names.filter(|name| is_name(name, MAX_TOOL_CHARS));
            self.tools = names.take(MAX_TOOLS).map(str::to_owned).collect();
        }
    }
}

impl Budget {
    /// What is wrong with it, in words.
    pub fn fault(&self) -> Option<&'static str> {
        let turns = self.turns.is_none_or(is_count);
        let tokens = self
            .tokens
            .is_none_or(|n| (0..=1_000_000_000_000).contains(&n));
        let cost = self.cost_usd.is_none_or(|n| is_amount(n, 1_000_000.0));
        match (turns, tokens, cost) {
            (false, _, _) => Some("budget.turns must be from 0 to 1000000000"),
            (_, false, _) => Some("budget.tokens must be from 0 to 1000000000000"),
            (_, _, false) => Some("budget.cost_usd must be from 0 to 1000000"),
            _ => None,
        }
    }

    /// Whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        self.turns.is_none() && self.tokens.is_none() && self.cost_usd.is_none()
    }

    /// The tighter of two, limit by limit.
    pub fn tighter(&self, other: &Self) -> Self {
        fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if b < a { b } else { a }),
                (a, b) => a.or(b),
            }
        }
        Self {
            turns: least(self.turns, other.turns),
            tokens: least(self.tokens, other.tokens),
            cost_usd: least(self.cost_usd, other.cost_usd),
        }
    }

    /// Whether nothing is left after so much was spent.
    pub fn is_used_up(&self, spent: &Spent) -> bool {
        self.turns.is_some_and(|most| spent.turns >= most)
            || self.tokens.is_some_and(|most| spent.tokens >= most)
            || self.cost_usd.is_some_and(|most| spent.cost_usd >= most)
    }
}

impl WakePolicy {
    /// The tighter of two.
    pub fn tighter(&self, other: &Self) -> Self {
        Self {
            wake: self.wake.min(other.wake),
            budget: self.budget.tighter(&other.budget),
        }
    }

    /// Whether nothing is limited.
    pub fn is_open(&self) -> bool {
        self.wake == Wake::Everything && self.budget.is_unlimited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_policies_the_tighter_holds_limit_by_limit() {
        let own = WakePolicy {
            wake: Wake::Threads,
            budget: Budget {
                turns: Some(5),
                tokens: None,
                cost_usd: Some(2.0),
            },
        };
        let room = WakePolicy {
            wake: Wake::Mentions,
            budget: Budget {
                turns: Some(9),
                tokens: Some(100),
                cost_usd: Some(0.5),
            },
        };
        let both = own.tighter(&room);
        assert_eq!(both, room.tighter(&own));
        assert_eq!(both.wake, Wake::Mentions);
        assert_eq!(both.budget.turns, Some(5));
        assert_eq!(both.budget.tokens, Some(100));
        assert_eq!(both.budget.cost_usd, Some(0.5));
        assert_eq!(own.tighter(&WakePolicy::default()), own);
    }

    #[test]
    fn what_an_answer_cost_is_believed_within_bounds_alone() {
        let fault = |text: &str| serde_json::from_str::<Usage>(text).unwrap().fault();
        assert_eq!(
            fault(r#"{"model":"m","input_tokens":5,"cost_usd":0.5,"tools":["a"]}"#),
            None
        );
        for bad in [
            r#"{"input_tokens":-1}"#,
            r#"{"output_tokens":1000000001}"#,
            r#"{"cost_usd":-0.01}"#,
            r#"{"cost_usd":1e308}"#,
            r#"{"seconds":1e300}"#,
            r#"{"model":""}"#,
            r#"{"model":"a\u0007"}"#,
            r#"{"tools":[""]}"#,
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
        let not_a_number = Usage {
            cost_usd: Some(f64::NAN),
            ..Usage::default()
        };
        assert!(not_a_number.fault().is_some());
    }

    #[test]
    fn frames_of_a_stream_tell_what_it_cost_in_either_words() {
        let mut usage = Usage::default();
        for frame in [
            r#"{"type":"usage","model":"gpt","input_tokens":3}"#,
            r#"{"prompt_tokens":10,"completion_tokens":2,"cost":1e308,"seconds":-4}"#,
            r#"{"output_tokens":7,"tools":["search",5,""],"cost_usd":0.25}"#,
        ] {
            usage.absorb(&serde_json::from_str(frame).unwrap());
        }
        assert_eq!(
            (usage.input_tokens, usage.output_tokens),
            (Some(10), Some(7))
        );
        assert_eq!((usage.cost_usd, usage.seconds), (Some(0.25), None));
        assert_eq!(usage.tools, ["search"]);
        assert_eq!(usage.fault(), None);
    }

    #[test]
    fn a_budget_is_used_up_by_what_runs_out_first() {
        let budget = Budget {
            turns: Some(2),
            cost_usd: Some(1.0),
            ..Budget::default()
        };
        let spent = |turns, cost_usd| Spent {
            turns,
            tokens: 1_000_000,
            cost_usd,
        };
        assert!(!budget.is_used_up(&spent(1, 0.99)));
        assert!(budget.is_used_up(&spent(2, 0.0)));
        assert!(budget.is_used_up(&spent(0, 1.0)));
        assert!(!Budget::default().is_used_up(&spent(9, 9.0)));
    }
}
