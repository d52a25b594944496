//! What coding agents print in their JSON modes, line by line, and what of it is the answer.
//!
//! A program that does not speak so, such as an owner's own wrapper, is taken at its words.

use super::Call;
use serde_json::Value;

/// What is kept of words that are no JSON.
const MAX_WORDS: usize = 64 << 10;

/// Whose lines these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `codex exec --json`.
    Codex,
    /// `claude -p --output-format stream-json`.
    Claude,
}

impl Dialect {
    /// The arguments that make the program speak so.
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Codex => &["--json"],
            Self::Claude => &[
                "--output-format",
                "stream-json",
                "--verbose",
                "--include-partial-messages",
            ],
        }
    }
}

/// What was printed so far.
pub struct Transcript<'a> {
    dialect: Dialect,
    call: &'a Call,
    answer: Option<String>,
    /// What the program says went wrong.
    error: Option<String>,
    /// Whether anything was JSON.
    is_json: bool,
    words: String,
}

impl<'a> Transcript<'a> {
    pub fn new(dialect: Dialect, call: &'a Call) -> Self {
        Self {
            dialect,
            call,
            answer: None,
            error: None,
            is_json: false,
            words: String::new(),
        }
    }

    /// Reads a line.
    pub fn line(&mut self, line: &str) {
        let event = serde_json::from_str::<Value>(line).ok();
        let event = event.filter(|event| event["type"].is_string());
        match (event, self.dialect) {
            (Some(event), Dialect::Codex) => self.codex(&event),
            (Some(event), Dialect::Claude) => self.claude(&event),
            (None, _) => {
                let left = MAX_WORDS.saturating_sub(self.words.len());
                self.words.push_str(&line[..line.floor_char_boundary(left)]);
                self.words.push('\n');
            }
        }
    }

    /// What the program answered, or what it says went wrong.
    pub fn answer(self) -> Result<String, String> {
        match (self.answer, self.error) {
            (Some(answer), _) => Ok(answer),
            (None, Some(error)) => Err(error),
            // Words around JSON are notices.
            (None, None) if self.is_json => Ok(String::new()),
            (None, None) => Ok(self.words),
        }
    }

    fn codex(&mut self, event: &Value) {
        self.is_json = true;
        let item = &event["item"];
        match event["type"].as_str().unwrap_or_default() {
            "item.started" | "item.updated" => self.codex_item(item),
            // What it says last is its answer; before that it tells what it is about to do.
            "item.completed" if item["type"] == "agent_message" => {
                let text = text(&item["text"]);
                self.call.report_whole_text(&text);
                self.answer = Some(text);
            }
            "item.completed" => self.codex_item(item),
            "turn.completed" => {
                let usage = &event["usage"];
                self.call.report_usage(|told| {
                    told.input_tokens = usage["input_tokens"].as_u64();
                    told.output_tokens = usage["output_tokens"].as_u64();
                });
            }
            "turn.failed" => self.fail(&event["error"]["message"]),
            "error" => self.error = Some(text(&event["message"])),
            _ => {}
        }
    }

    fn codex_item(&mut self, item: &Value) {
        match item["type"].as_str().unwrap_or_default() {
            "agent_message" => self.call.report_whole_text(&text(&item["text"])),
            "reasoning" => self.call.report_thinking(),
            "command_execution" => self.call.report_tool("shell", &text(&item["command"])),
            "file_change" => self.call.report_tool("file_change", ""),
            "web_search" => self.call.report_tool("web_search", &text(&item["query"])),
            "mcp_tool_call" => {
                let name = format!("{}.{}", text(&item["server"]), text(&item["tool"]));
                self.call.report_tool(&name, &text(&item["arguments"]));
            }
            _ => {}
        }
    }

    fn claude(&mut self, event: &Value) {
        self.is_json = true;
        match event["type"].as_str().unwrap_or_default() {
            "system" => {
                let model = event["model"].as_str().map(str::to_owned);
                self.call
                    .report_usage(|told| told.model = model.or(told.model.take()));
            }
            "stream_event" => self.claude_stream(&event["event"]),
            "result" => {
                let usage = &event["usage"];
                let read = [
                    "input_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                ];
                let read = read.map(|name| usage[name].as_u64());
                self.call.report_usage(|told| {
                    told.cost_usd = event["total_cost_usd"].as_f64();
                    told.output_tokens = usage["output_tokens"].as_u64();
                    told.input_tokens = read[0].map(|_| read.iter().flatten().sum());
                });
                match event["is_error"] == true {
                    true => self.fail(&event["result"]),
                    false => self.answer = Some(text(&event["result"])),
                }
            }
            _ => {}
        }
    }

    /// The model's own events, wrapped.
    fn claude_stream(&mut self, event: &Value) {
        let block = &event["content_block"];
        match event["type"].as_str().unwrap_or_default() {
            // What it said before it used a tool is not its answer.
            "message_start" => self.call.report_whole_text(""),
            "content_block_start" if block["type"] == "tool_use" => {
                self.call.report_tool(&text(&block["name"]), "");
            }
            "content_block_start" if block["type"] == "thinking" => self.call.report_thinking(),
            "content_block_delta" if event["delta"]["type"] == "text_delta" => {
                self.call.report_more_text(&text(&event["delta"]["text"]));
            }
            _ => {}
        }
    }

    fn fail(&mut self, why: &Value) {
        self.answer = None;
        self.error = Some(text(why));
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        dialect: Dialect,
        lines: &[&str],
    ) -> (Result<String, String>, crate::backend::Progress) {
        let call = Call::default();
        let mut transcript = Transcript::new(dialect, &call);
        lines.iter().for_each(|line| transcript.line(line));
        (transcript.answer(), call.progress())
    }

    #[test]
    fn notices_are_not_the_answer_and_the_last_message_is() {
        let (answer, progress) = read(
            Dialect::Codex,
            &[
                "WARNING: an update is there",
                r#"{"type":"item.completed","item":{"type":"error","message":"no metadata"}}"#,
                r#"{"type":"item.completed","item":{"type":"agent_message","text":"I look."}}"#,
                r#"{"type":"item.started","item":{"type":"command_execution","command":"ls /secret"}}"#,
                r#"{"type":"item.completed","item":{"type":"agent_message","text":"Two files."}}"#,
                r#"{"type":"turn.completed","usage":{"input_tokens":7,"output_tokens":2}}"#,
            ],
        );
        assert_eq!(answer.unwrap(), "Two files.");
        assert_eq!(progress.usage.tools, ["shell"]);
        let tokens = (progress.usage.input_tokens, progress.usage.output_tokens);
        assert_eq!(tokens, (Some(7), Some(2)));
    }

    #[test]
    fn a_failed_turn_has_no_answer() {
        let (answer, _) = read(
            Dialect::Codex,
            &[
                r#"{"type":"item.completed","item":{"type":"agent_message","text":"I try."}}"#,
                r#"{"type":"turn.failed","error":{"message":"usage limit"}}"#,
            ],
        );
        assert_eq!(answer.unwrap_err(), "usage limit");
    }

    #[test]
    fn words_of_a_program_that_speaks_no_json_are_its_answer() {
        let (answer, _) = read(Dialect::Codex, &["one", "{\"a\":1}"]);
        assert_eq!(answer.unwrap(), "one\n{\"a\":1}\n");
    }

    #[test]
    fn claude_tells_words_tools_and_money() {
        let (answer, progress) = read(
            Dialect::Claude,
            &[
                r#"{"type":"system","subtype":"init","model":"opus"}"#,
                r#"{"type":"stream_event","event":{"type":"message_start"}}"#,
                r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"I look"}}}"#,
                r#"{"type":"stream_event","event":{"type":"content_block_start","content_block":{"type":"tool_use","name":"Bash"}}}"#,
                r#"{"type":"stream_event","event":{"type":"message_start"}}"#,
                r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"Two"}}}"#,
                r#"{"type":"result","subtype":"success","is_error":false,"result":"Two files.","total_cost_usd":0.02,"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":5}}"#,
            ],
        );
        assert_eq!(answer.unwrap(), "Two files.");
        assert_eq!(progress.text, "Two");
        let usage = progress.usage;
        assert_eq!(usage.model.as_deref(), Some("opus"));
        assert_eq!((usage.input_tokens, usage.cost_usd), (Some(7), Some(0.02)));
        assert_eq!(usage.tools, ["Bash"]);
    }
}
