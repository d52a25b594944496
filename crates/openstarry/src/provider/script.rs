//! A model that follows a script: for demonstrations and tests, without a network. It streams as a
//! real one does.

use super::{Context, Event, EventStream, Provider};
use crate::pain::AgentPain;
use crate::segment::{ContentSegment, Message, Role, StopReason, Usage, joined_text};
use futures_util::stream::{self, StreamExt};
use regex::{Captures, Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

const MAX_FILE: u64 = 256 << 10;
/// Bounds what a pattern may cost.
const MAX_PATTERN: usize = 256 << 10;
const MAX_DELAY_MS: u64 = 10_000;

/// A script in a file: rules, of which the first that fits says what happens.
///
/// ```yaml
/// delay_ms: 20                  # between words
/// rules:
///   - when: weather in (\w+)    # what was said last; the first rule that fits
///     call: {get_weather: {city: $1}}
///   - after: get_weather        # the result of this tool came last
///     when: storm               # and holds this, where `when` stands too
///     say: "Stay in! $result"
///   - after: get_weather
///     say: "There: $result"
///   - say: I do not know that.
/// ```
pub struct Script {
    rules: Vec<ScriptRule>,
    delay: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    rules: Vec<RuleFile>,
    #[serde(default = "default_delay_ms")]
    delay_ms: u64,
}

fn default_delay_ms() -> u64 {
    15
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    when: Option<String>,
    after: Option<String>,
    #[serde(default)]
    think: String,
    #[serde(default)]
    say: String,
    #[serde(default)]
    call: Map<String, Value>,
}

struct ScriptRule {
    fits: Fits,
    think: String,
    say: String,
    call: Map<String, Value>,
}

/// What a rule answers.
enum Fits {
    /// Words that the pattern is found in.
    Words(Regex),
    /// The result of this tool, with the pattern in it where there is one.
    Result(String, Option<Regex>),
    Anything,
}

/// Completes a text with what the rule found.
type Fill<'a> = Box<dyn Fn(&str) -> String + 'a>;

/// What is to be answered: the last paragraph that was said, or a tool's result.
enum Asked {
    Words(String),
    Result { tool: String, text: String },
}

impl Script {
    /// Reads a script.
    pub fn load(path: &Path) -> Result<Self, AgentPain> {
        let failed = |why: &dyn std::fmt::Display| {
            AgentPain::Config(format!("the script {}: {why}", path.display()))
        };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| failed(&error))?;
        let read = file.take(MAX_FILE + 1).read_to_string(&mut text);
        read.map_err(|error| failed(&error))?;
        if text.len() as u64 > MAX_FILE {
            return Err(failed(&format!("over {MAX_FILE} bytes")));
        }
        Self::parse(&text).map_err(|why| failed(&why))
    }

    /// Reads a script's text; the error says what to change.
    pub fn parse(text: &str) -> Result<Self, String> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: 32, max_nodes: 20_000, max_events: 100_000,
                max_aliases: 10, max_anchors: 10, max_documents: 1,
            },
        };
        let file: ScriptFile = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| error.to_string())?;
        let rules = file.rules.into_iter().map(ScriptRule::new);
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
            delay: Duration::from_millis(file.delay_ms.min(MAX_DELAY_MS)),
        })
    }

    fn reply(&self, prompt: &str, context: &Context) -> Result<Vec<Event>, AgentPain> {
        let messages = context.with_prompt(prompt);
        let asked = Asked::last(&messages);
        let found = self.rules.iter().find_map(|rule| rule.events(&asked));
        let mut events = found.ok_or_else(|| {
            let about = match &asked {
                Asked::Words(words) => format!("{:?}", crate::pain::excerpt(words, 80)),
                Asked::Result { tool, .. } => format!("the result of {tool}"),
            };
            AgentPain::Config(format!("no rule of the script fits {about}"))
        })?;
        let written: usize = events.iter().map(size).sum();
        let read: usize = messages
            .iter()
            .map(|said| joined_text(&said.segments).len())
            .sum();
        events.push(Event::Usage(Usage {
            input_tokens: tokens(read + context.system.len()),
            output_tokens: tokens(written),
            ..Usage::default()
        }));
        let calls = events
            .iter()
            .any(|event| matches!(event, Event::CallEnd { .. }));
        let stop = if calls {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        };
        events.push(Event::Finish(stop));
        Ok(events)
    }
}

impl Provider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn model(&self) -> Option<&str> {
        Some("script")
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        let events = match self.reply(prompt, context) {
            Ok(events) => events.into_iter().map(Ok).collect(),
            Err(pain) => vec![Err(pain)],
        };
        let paced = async |event| {
            if matches!(event, Ok(Event::Text(_) | Event::Reasoning(_))) {
                tokio::time::sleep(self.delay).await;
            }
            event
        };
        stream::iter(events).then(paced).boxed()
    }
}

impl ScriptRule {
    fn new(file: RuleFile) -> Result<Self, String> {
        let pattern = file.when.as_deref().map(|pattern| {
            let regex = RegexBuilder::new(pattern)
                .case_insensitive(true)
                .size_limit(MAX_PATTERN)
                .build();
            regex.map_err(|error| error.to_string())
        });
        let fits = match (file.after, pattern.transpose()?) {
            (Some(tool), pattern) => Fits::Result(tool, pattern),
            (None, Some(pattern)) => Fits::Words(pattern),
            (None, None) => Fits::Anything,
        };
        if file.say.is_empty() && file.call.is_empty() {
            return Err("a rule needs `say` or `call`".into());
        }
        if matches!(fits, Fits::Anything) && !file.call.is_empty() {
            // Its own result would fit it again, for ever.
            return Err("a rule with `call` needs `when` or `after`".into());
        }
        Ok(Self {
            fits,
            think: file.think,
            say: file.say,
            call: file.call,
        })
    }

    /// What it says, word by word, if it fits.
    fn events(&self, asked: &Asked) -> Option<Vec<Event>> {
        let filled = self.filled(asked)?;
        let mut events: Vec<_> = words(&filled(&self.think)).map(Event::Reasoning).collect();
        events.extend(words(&filled(&self.say)).map(Event::Text));
        for (index, (name, args)) in self.call.iter().enumerate() {
            let json = fill_in(args, &*filled).to_string();
            let name = name.clone();
            let id = None;
            events.push(Event::CallStart { index, id, name });
            events.push(Event::CallArguments { index, json });
            events.push(Event::CallEnd { index });
        }
        Some(events)
    }

    /// How its texts are completed, if it fits.
    fn filled<'a>(&'a self, asked: &'a Asked) -> Option<Fill<'a>> {
        match (&self.fits, asked) {
            (Fits::Words(pattern), Asked::Words(words)) => {
                let found: Captures<'a> = pattern.captures(words)?;
                Some(Box::new(move |text| {
                    let mut out = String::new();
                    found.expand(text, &mut out);
                    out
                }))
            }
            (Fits::Result(name, pattern), Asked::Result { tool, text }) if name == tool => {
                let is_in = |pattern: &Regex| pattern.is_match(text);
                pattern
                    .as_ref()
                    .is_none_or(is_in)
                    .then(|| -> Fill<'a> { Box::new(move |words| words.replace("$result", text)) })
            }
            (Fits::Anything, Asked::Words(_)) => Some(Box::new(str::to_owned)),
            (Fits::Anything, Asked::Result { text, .. }) => {
                Some(Box::new(move |words| words.replace("$result", text)))
            }
            _ => None,
        }
    }
}

impl Asked {
    fn last(messages: &[Message]) -> Self {
        let last = messages.last();
        let result = last.and_then(|last| {
            last.segments
                .iter()
                .rev()
                .find_map(|segment| match segment {
                    ContentSegment::ToolResult { tool_result } => Some(tool_result),
                    _ => None,
                })
        });
        if let Some(result) = result {
            return Self::Result {
                tool: result.name.clone(),
                text: result.text(),
            };
        }
        let said = messages.iter().rev().find(|said| said.role == Role::User);
        let said = said
            .map(|said| joined_text(&said.segments))
            .unwrap_or_default();
        let paragraph = said.trim().rsplit("\n\n").next().unwrap_or_default();
        Self::Words(paragraph.to_owned())
    }
}

/// The arguments with their texts completed.
fn fill_in(value: &Value, filled: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(filled(text)),
        Value::Array(items) => items.iter().map(|item| fill_in(item, filled)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.clone(), fill_in(value, filled)))
                .collect()
        }
        value => value.clone(),
    }
}

/// The words of a text, each with the space behind it.
fn words(text: &str) -> impl Iterator<Item = String> {
    let pieces: Vec<_> = text
        .split_inclusive(char::is_whitespace)
        .map(str::to_owned)
        .collect();
    pieces.into_iter()
}

fn size(event: &Event) -> usize {
    match event {
        Event::Text(text) | Event::Reasoning(text) => text.len(),
        Event::CallArguments { json, .. } => json.len(),
        _ => 0,
    }
}

/// About four bytes are a token.
fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::ToolResult;

    const SCRIPT: &str = "
delay_ms: 0
rules:
  - when: weather in (\\w+)
    think: I look it up.
    call: {get_weather: {city: $1, days: [1, $1]}}
  - after: get_weather
    when: storm
    say: Stay in!
  - after: get_weather
    say: \"There: $result\"
  - say: I do not know that.
";

    async fn said(context: Context, prompt: &str) -> Vec<ContentSegment> {
        let script = Script::parse(SCRIPT).unwrap();
        let reply = script.generate(prompt, &context).await.unwrap();
        assert!(reply.metadata.usage.is_some_and(|usage| usage.total() > 0));
        reply.segments
    }

    #[tokio::test]
    async fn the_first_rule_that_fits_speaks() {
        let nothing = said(Context::default(), "What is up?").await;
        assert_eq!(joined_text(&nothing), "I do not know that.");
        let asked = said(Context::default(), "Weather in Paris\n\nWEATHER in Oslo?").await;
        let Some(ContentSegment::ToolCall { tool_call }) = asked.last() else {
            panic!("{asked:?}")
        };
        assert_eq!(tool_call.name, "get_weather");
        assert_eq!(
            tool_call.args_text(),
            r#"{"city":"Oslo","days":[1,"Oslo"]}"#
        );
        for (result, answer) in [("rain, $1", "There: rain, $1"), ("a Storm", "Stay in!")] {
            let result = ContentSegment::ToolResult {
                tool_result: ToolResult {
                    id: "1".into(),
                    name: "get_weather".into(),
                    content: vec![ContentSegment::text(result)],
                    is_error: false,
                },
            };
            let context = Context {
                messages: vec![Message {
                    role: Role::Tool,
                    segments: vec![result],
                }],
                ..Context::default()
            };
            assert_eq!(joined_text(&said(context, "").await), answer);
        }
    }

    #[tokio::test]
    async fn what_no_rule_fits_is_an_error_that_says_so() {
        let script = Script::parse("rules: [{when: a, say: b}]").unwrap();
        let pain = script
            .generate("xyz", &Context::default())
            .await
            .unwrap_err();
        assert!(
            pain.to_string()
                .contains("no rule of the script fits \"xyz\""),
            "{pain}"
        );
    }

    #[test]
    fn a_script_that_cannot_work_is_refused() {
        let bomb = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nrules: []";
        for (text, hint) in [
            ("rules: [{when: '(', after: b, say: c}]", "unclosed"),
            ("rules: [{when: '(', say: c}]", "unclosed"),
            ("rules: [{when: a}]", "`say` or `call`"),
            ("rules: [{call: {x: {}}}]", "needs `when` or `after`"),
            ("rules: [{when: '(\\w{500}){500}', say: c}]", "size limit"),
            ("rules: [{wen: a, say: b}]", "wen"),
            (bomb, ""),
        ] {
            let Err(why) = Script::parse(text) else {
                panic!("{text}")
            };
            assert!(why.contains(hint), "{text}: {why}");
        }
    }
}
