//! One stand-in model behind the APIs that coding agents speak. It does what the newest message says:
//! `run COMMAND` asks for a shell, `hang` never ends, `fail` is refused, else it greets, word by word.

use crate::stand_in::{Request, StandIn, reply};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    net::TcpStream,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

const PAUSE: Duration = Duration::from_millis(400);
const GREETING: [&str; 3] = ["Hello ", "there, ", "friend."];

/// Keeps greetings at their first word for as long as a test looks at it.
#[derive(Clone, Default)]
pub struct Hold(Arc<(Mutex<bool>, Condvar)>);

impl Hold {
    /// Greetings stop after their first word from now on.
    pub fn begin(&self) {
        *self.0.0.lock().unwrap() = true;
    }

    /// They go on.
    pub fn end(&self) {
        *self.0.0.lock().unwrap() = false;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let held = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(held, |held| *held).unwrap());
    }
}

/// What the model does.
enum Act {
    Say(&'static [&'static str]),
    Run(String),
    Hang,
    Fail,
}

/// What to do for this text, with the result of a tool where that came last.
fn act(text: &str, result: Option<&str>) -> Act {
    if let Some(result) = result {
        let result = result.to_lowercase();
        let no = ["denied", "reject", "cancel", "not allowed"];
        return match no.iter().any(|word| result.contains(word)) {
            true => Act::Say(&["I may ", "not."]),
            false => Act::Say(&["It ", "ran."]),
        };
    }
    let asked = text.lines().rfind(|line| line.starts_with("> "));
    let asked = asked.unwrap_or_default();
    if let Some((_, command)) = asked.split_once("run ") {
        return Act::Run(command.to_owned());
    }
    match asked {
        asked if asked.contains("hang") => Act::Hang,
        asked if asked.contains("fail") => Act::Fail,
        _ => Act::Say(&GREETING),
    }
}

fn begin(stream: &mut TcpStream) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())
}

/// A frame; its type is its event too, where it has one.
fn frame(stream: &mut TcpStream, data: Value) -> io::Result<()> {
    if let Some(kind) = data["type"].as_str() {
        stream.write_all(format!("event: {kind}\n").as_bytes())?;
    }
    stream.write_all(format!("data: {data}\n\n").as_bytes())?;
    stream.flush()
}

/// Says one word after the other.
fn say(words: &[&str], hold: &Hold, mut say: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    for word in words {
        say(word)?;
        std::thread::sleep(PAUSE);
        if *word == GREETING[0] {
            hold.wait();
        }
    }
    Ok(())
}

fn hang(stream: &mut TcpStream) -> io::Result<()> {
    loop {
        std::thread::sleep(PAUSE);
        stream.write_all(b": still here\n\n")?;
    }
}

fn refuse(stream: &mut TcpStream, body: Value) -> io::Result<()> {
    let refusal = reply("400 Bad Request", "application/json", &body.to_string());
    stream.write_all(refusal.as_bytes())
}

fn nothing_here(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(reply("404 Not Found", "application/json", "{}").as_bytes())
}

fn body_of(request: &Request) -> Option<Value> {
    let is_post = request.line.starts_with("POST");
    is_post
        .then(|| serde_json::from_str(&request.body).ok())
        .flatten()
}

/// Every text in a value, in its order.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone() + "\n",
        Value::Array(items) => items.iter().map(texts).collect(),
        Value::Object(fields) => fields.values().map(texts).collect(),
        _ => String::new(),
    }
}

/// OpenAI's Responses, which codex speaks.
pub fn responses(hold: &Hold) -> StandIn {
    let hold = hold.clone();
    StandIn::new(move |request, stream| {
        let Some(body) = body_of(request) else {
            return nothing_here(stream);
        };
        let input = body["input"].as_array().unwrap();
        let last = input.last().unwrap();
        let asked = input.iter().rfind(|item| item["type"] == "message");
        let asked = asked.map(|item| texts(&item["content"]));
        let result = (last["type"] == "function_call_output").then(|| texts(&last["output"]));
        let act = act(&asked.unwrap_or_default(), result.as_deref());
        if matches!(act, Act::Fail) {
            let error =
                json!({"message": "the model is out of order", "type": "invalid_request_error"});
            return refuse(stream, json!({ "error": error }));
        }
        begin(stream)?;
        let created = json!({"type": "response.created", "response": {"id": "r"}});
        frame(stream, created)?;
        match act {
            Act::Hang | Act::Fail => return hang(stream),
            Act::Run(command) => {
                let arguments = json!({"cmd": command, "sandbox_permissions": "require_escalated",
                    "justification": "it has to"});
                let item = json!({"type": "function_call", "id": "f", "call_id": "c",
                    "name": "exec_command", "arguments": arguments.to_string()});
                frame(
                    stream,
                    json!({"type": "response.output_item.done", "item": item}),
                )?;
            }
            Act::Say(words) => {
                let mut item =
                    json!({"type": "message", "role": "assistant", "id": "m", "content": []});
                let added = json!({"type": "response.output_item.added", "item": item});
                frame(stream, added)?;
                say(words, &hold, |word| {
                    let delta = json!({"type": "response.output_text.delta", "delta": word,
                        "item_id": "m", "output_index": 0, "content_index": 0});
                    frame(stream, delta)
                })?;
                item["content"] = json!([{"type": "output_text", "text": words.concat()}]);
                let done = json!({"type": "response.output_item.done", "item": item});
                frame(stream, done)?;
            }
        }
        let usage = json!({"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 10},
            "output_tokens_details": {"reasoning_tokens": 0}});
        let done = json!({"type": "response.completed", "response": {"id": "r", "usage": usage}});
        frame(stream, done)
    })
}

/// OpenAI's chat completions, which OpenCode speaks to servers of one's own.
pub fn chat_completions(hold: &Hold) -> StandIn {
    let hold = hold.clone();
    StandIn::new(move |request, stream| {
        let Some(body) = body_of(request) else {
            return nothing_here(stream);
        };
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let asked = messages.iter().rfind(|message| message["role"] == "user");
        let asked = asked.map(|message| texts(&message["content"]));
        let result = (last["role"] == "tool").then(|| texts(&last["content"]));
        let has_tools = body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty());
        // A question without tools is for a title.
        let act = match has_tools {
            true => act(&asked.unwrap_or_default(), result.as_deref()),
            false => Act::Say(&["A title"]),
        };
        if matches!(act, Act::Fail) {
            let error =
                json!({"message": "the model is out of order", "type": "invalid_request_error"});
            return refuse(stream, json!({ "error": error }));
        }
        begin(stream)?;
        let chunk = |choice: Value| {
            json!({"id": "c", "object": "chat.completion.chunk",
            "created": 1, "model": "stand-in", "choices": [choice]})
        };
        let end = match act {
            Act::Hang | Act::Fail => return hang(stream),
            Act::Run(command) => {
                let arguments = json!({"command": command, "description": "it has to"});
                let call = json!({"index": 0, "id": "c1", "type": "function", "function":
                    {"name": "bash", "arguments": arguments.to_string()}});
                let delta = json!({"role": "assistant", "tool_calls": [call]});
                frame(stream, chunk(json!({"index": 0, "delta": delta})))?;
                "tool_calls"
            }
            Act::Say(words) => {
                say(words, &hold, |word| {
                    let delta = json!({"role": "assistant", "content": word});
                    frame(stream, chunk(json!({"index": 0, "delta": delta})))
                })?;
                "stop"
            }
        };
        let mut last = chunk(json!({"index": 0, "delta": {}, "finish_reason": end}));
        last["usage"] = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120});
        frame(stream, last)?;
        stream.write_all(b"data: [DONE]\n\n")
    })
}

/// Gemini's API.
pub fn gemini(hold: &Hold) -> StandIn {
    let hold = hold.clone();
    StandIn::new(move |request, stream| {
        let Some(body) = body_of(request) else {
            return nothing_here(stream);
        };
        if request.line.contains(":countTokens") {
            let counted = json!({"totalTokens": 100}).to_string();
            return stream.write_all(reply("200 OK", "application/json", &counted).as_bytes());
        }
        let contents = body["contents"].as_array().unwrap();
        let parts = |content: &Value| content["parts"].as_array().cloned().unwrap_or_default();
        let last = parts(contents.last().unwrap());
        let result = last
            .iter()
            .find(|part| part.get("functionResponse").is_some());
        let result = result.map(|part| texts(&part["functionResponse"]["response"]));
        let asked: String = contents
            .iter()
            .filter(|content| content["role"] == "user")
            .flat_map(parts)
            .map(|part| texts(&part["text"]))
            .collect();
        let act = act(&asked, result.as_deref());
        if matches!(act, Act::Fail) {
            let error = json!({"code": 400, "message": "the model is out of order",
                "status": "INVALID_ARGUMENT"});
            return refuse(stream, json!({ "error": error }));
        }
        let chunk = |part: Value, end: Option<&str>| {
            json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]},
                "finishReason": end}], "modelVersion": "stand-in", "usageMetadata":
                {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}})
        };
        if !request.line.contains(":streamGenerateContent") {
            // The agent's own questions, for example which model to take.
            let answer = chunk(json!({"text": "{}"}), Some("STOP")).to_string();
            return stream.write_all(reply("200 OK", "application/json", &answer).as_bytes());
        }
        begin(stream)?;
        match act {
            Act::Hang | Act::Fail => hang(stream),
            Act::Run(command) => {
                let call = json!({"name": "run_shell_command",
                    "args": {"command": command, "description": "it has to"}});
                frame(stream, chunk(json!({"functionCall": call}), Some("STOP")))
            }
            Act::Say(words) => {
                say(words, &hold, |word| {
                    frame(stream, chunk(json!({"text": word}), None))
                })?;
                frame(stream, chunk(json!({"text": ""}), Some("STOP")))
            }
        }
    })
}

/// Anthropic's messages, which claude speaks.
pub fn messages(hold: &Hold) -> StandIn {
    let hold = hold.clone();
    StandIn::new(move |request, stream| {
        let Some(body) = body_of(request) else {
            return nothing_here(stream);
        };
        if request.line.contains("count_tokens") {
            let counted = json!({"input_tokens": 100}).to_string();
            return stream.write_all(reply("200 OK", "application/json", &counted).as_bytes());
        }
        let messages = body["messages"].as_array().unwrap();
        let asked: String = messages
            .iter()
            .filter(|message| message["role"] == "user")
            .map(|message| texts(&message["content"]))
            .collect();
        let act = act(&asked, None);
        if matches!(act, Act::Fail) {
            let error =
                json!({"message": "the model is out of order", "type": "invalid_request_error"});
            return refuse(stream, json!({"type": "error", "error": error}));
        }
        if body["stream"] != true {
            let answer = json!({"id": "m", "type": "message", "role": "assistant",
                "model": body["model"], "content": [{"type": "text", "text": "ok"}],
                "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}});
            let answer = reply("200 OK", "application/json", &answer.to_string());
            return stream.write_all(answer.as_bytes());
        }
        begin(stream)?;
        let message = json!({"id": "m", "type": "message", "role": "assistant", "content": [],
            "model": body["model"], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 100, "output_tokens": 1}});
        frame(stream, json!({"type": "message_start", "message": message}))?;
        let Act::Say(words) = act else {
            return hang(stream);
        };
        let block = json!({"type": "text", "text": ""});
        let begun = json!({"type": "content_block_start", "index": 0, "content_block": block});
        frame(stream, begun)?;
        say(words, &hold, |word| {
            let delta = json!({"type": "text_delta", "text": word});
            let more = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            frame(stream, more)
        })?;
        frame(stream, json!({"type": "content_block_stop", "index": 0}))?;
        let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
        let usage = json!({"output_tokens": 20});
        let end = json!({"type": "message_delta", "delta": delta, "usage": usage});
        frame(stream, end)?;
        frame(stream, json!({"type": "message_stop"}))
    })
}
