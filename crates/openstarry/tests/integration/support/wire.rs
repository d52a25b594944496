//! What a model says, in the words of each API.

use openstarry::provider::ProviderKind;
use serde_json::{Value, json};

/// One thing a model says.
#[derive(Clone, Debug)]
pub enum Say {
    Text(&'static str),
    Think(&'static str),
    /// A call whose arguments come in these parts.
    Call(&'static str, &'static str, Vec<&'static str>),
    /// A call whose arguments come whole with its start.
    WholeCall(&'static str, &'static str, Value),
    /// A picture, in base64.
    Image(&'static str),
}

pub fn call(id: &'static str, name: &'static str, args: &'static str) -> Say {
    Say::Call(id, name, vec![args])
}

/// The whole answer, usage (11 read, 7 written) told after the finish.
pub fn body(kind: ProviderKind, says: &[Say]) -> String {
    frames(kind, says).concat()
}

/// The answer, frame by frame.
pub fn frames(kind: ProviderKind, says: &[Say]) -> Vec<String> {
    let called = says
        .iter()
        .any(|say| matches!(say, Say::Call(..) | Say::WholeCall(..)));
    let values = match kind {
        ProviderKind::OpenAi => openai(says, called),
        ProviderKind::Responses => responses(says),
        ProviderKind::Anthropic => anthropic(says, called),
        ProviderKind::Gemini => gemini(says),
        ProviderKind::Ollama => ollama(says),
    };
    let mut frames: Vec<String> = values.iter().map(|value| frame(kind, value)).collect();
    if kind == ProviderKind::OpenAi {
        frames.push("data: [DONE]\n\n".into());
    }
    frames
}

/// How many frames come before the first word.
pub fn opening(kind: ProviderKind) -> usize {
    match kind {
        ProviderKind::OpenAi => 1,
        ProviderKind::Responses => 2,
        ProviderKind::Anthropic => 3,
        ProviderKind::Gemini | ProviderKind::Ollama => 0,
    }
}

/// One frame.
pub fn frame(kind: ProviderKind, value: &Value) -> String {
    match kind {
        ProviderKind::Ollama => format!("{value}\n"),
        ProviderKind::Anthropic | ProviderKind::Responses => {
            format!(
                "event: {}\r\ndata: {value}\r\n\r\n",
                value["type"].as_str().unwrap()
            )
        }
        ProviderKind::OpenAi => format!(": keep-alive\n\ndata: {value}\n\n"),
        ProviderKind::Gemini => format!("data: {value}\r\n\r\n"),
    }
}

/// The frame by which an API tells of its own failure in a stream.
pub fn failure(kind: ProviderKind) -> String {
    frame(
        kind,
        &match kind {
            ProviderKind::OpenAi => {
                json!({ "error": { "message": "boom", "type": "server_error" } })
            }
            ProviderKind::Anthropic => {
                json!({ "type": "error", "error": { "type": "overloaded_error", "message": "boom" } })
            }
            ProviderKind::Responses => {
                json!({ "type": "response.failed", "response": { "status": "failed",
                    "error": { "code": "server_error", "message": "boom" } } })
            }
            ProviderKind::Gemini => {
                json!({ "error": { "code": 500, "message": "boom", "status": "INTERNAL" } })
            }
            ProviderKind::Ollama => json!({ "error": "boom" }),
        },
    )
}

fn openai(says: &[Say], called: bool) -> Vec<Value> {
    let chunk = |delta: Value| {
        json!({ "id": "c", "object": "chat.completion.chunk", "model": "model-1-long",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
    };
    let mut out = vec![chunk(json!({ "role": "assistant", "content": "" }))];
    let mut index = 0;
    for say in says {
        match say {
            Say::Text(text) => {
                let (a, b) = text.split_at(text.floor_char_boundary(text.len() / 2));
                out.push(chunk(json!({ "content": a })));
                out.push(chunk(json!({ "content": b })));
            }
            Say::Think(text) => out.push(chunk(json!({ "reasoning_content": text }))),
            Say::Call(id, name, parts) => {
                out.push(chunk(
                    json!({ "tool_calls": [{ "index": index, "id": id, "type": "function",
                    "function": { "name": name, "arguments": "" } }] }),
                ));
                for part in parts {
                    out.push(chunk(json!({ "tool_calls": [{ "index": index, "function": { "arguments": part } }] })));
                }
                index += 1;
            }
            Say::WholeCall(id, name, args) => {
                out.push(chunk(
                    json!({ "tool_calls": [{ "index": index, "id": id, "type": "function",
                    "function": { "name": name, "arguments": args.to_string() } }] }),
                ));
                index += 1;
            }
            Say::Image(data) => out.push(chunk(json!({ "images": [{ "type": "image_url",
                "image_url": { "url": format!("data:image/png;base64,{data}") } }] }))),
        }
    }
    let reason = if called { "tool_calls" } else { "stop" };
    out.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }));
    out.push(json!({ "choices": [], "usage": { "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 } }));
    out
}

/// Anthropic's signature of a thought: it fits no other.
pub fn signature(thought: &str) -> String {
    format!("signed {thought}")
}

fn anthropic(says: &[Say], called: bool) -> Vec<Value> {
    let mut out = vec![
        json!({ "type": "message_start", "message": { "id": "m", "type": "message", "role": "assistant",
            "model": "model-1-long", "content": [], "usage": { "input_tokens": 11, "output_tokens": 1 } } }),
        json!({ "type": "ping" }),
    ];
    for (index, say) in says.iter().enumerate() {
        let (block, deltas) = match say {
            Say::Text(text) => {
                let (a, b) = text.split_at(text.floor_char_boundary(text.len() / 2));
                (
                    json!({ "type": "text", "text": "" }),
                    vec![
                        json!({ "type": "text_delta", "text": a }),
                        json!({ "type": "text_delta", "text": b }),
                    ],
                )
            }
            Say::Think(text) => (
                json!({ "type": "thinking", "thinking": "" }),
                vec![
                    json!({ "type": "thinking_delta", "thinking": text }),
                    json!({ "type": "signature_delta", "signature": signature(text) }),
                ],
            ),
            Say::Call(id, name, parts) => (
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
                parts
                    .iter()
                    .map(|part| json!({ "type": "input_json_delta", "partial_json": part }))
                    .collect(),
            ),
            Say::WholeCall(id, name, args) => (
                json!({ "type": "tool_use", "id": id, "name": name, "input": args }),
                vec![],
            ),
            // The API makes no pictures; a block it may have one day.
            Say::Image(data) => (json!({ "type": "picture", "data": data }), vec![]),
        };
        out.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        for delta in deltas {
            out.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        out.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let reason = if called { "tool_use" } else { "end_turn" };
    out.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 7 } }));
    out.push(json!({ "type": "message_stop" }));
    out
}

fn gemini(says: &[Say]) -> Vec<Value> {
    let chunk = |part: Value| {
        json!({ "candidates": [{ "content": { "role": "model", "parts": [part] }, "index": 0 }],
                "modelVersion": "model-1-long" })
    };
    let mut out = Vec::new();
    for say in says {
        match say {
            Say::Text(text) => {
                let (a, b) = text.split_at(text.floor_char_boundary(text.len() / 2));
                out.push(chunk(json!({ "text": a })));
                out.push(chunk(json!({ "text": b })));
            }
            Say::Think(text) => out.push(chunk(json!({ "text": text, "thought": true }))),
            Say::Call(_, name, parts) => {
                let args: Value = serde_json::from_str(&parts.concat()).unwrap();
                out.push(chunk(json!({ "functionCall": { "name": name, "args": args }, "thoughtSignature": "c2lnbmVk" })));
            }
            Say::WholeCall(_, name, args) => out.push(chunk(
                json!({ "functionCall": { "name": name, "args": args } }),
            )),
            Say::Image(data) => out.push(chunk(
                json!({ "inlineData": { "mimeType": "image/png", "data": data } }),
            )),
        }
    }
    out.push(json!({ "candidates": [{ "content": { "role": "model", "parts": [] }, "finishReason": "STOP", "index": 0 }] }));
    out.push(json!({ "usageMetadata": { "promptTokenCount": 11, "candidatesTokenCount": 5, "thoughtsTokenCount": 2 } }));
    out
}

fn ollama(says: &[Say]) -> Vec<Value> {
    let line =
        |message: Value| json!({ "model": "model-1-long", "message": message, "done": false });
    let mut out = Vec::new();
    for say in says {
        match say {
            Say::Text(text) => {
                let (a, b) = text.split_at(text.floor_char_boundary(text.len() / 2));
                out.push(line(json!({ "role": "assistant", "content": a })));
                out.push(line(json!({ "role": "assistant", "content": b })));
            }
            Say::Think(text) => out.push(line(
                json!({ "role": "assistant", "content": "", "thinking": text }),
            )),
            Say::Call(_, name, parts) => {
                let text = parts.concat();
                let args = serde_json::from_str(&text).unwrap_or(Value::String(text));
                out.push(line(json!({ "role": "assistant", "content": "",
                    "tool_calls": [{ "function": { "name": name, "arguments": args } }] })));
            }
            Say::WholeCall(_, name, args) => out
                .push(line(json!({ "role": "assistant", "content": "",
                "tool_calls": [{ "function": { "name": name, "arguments": args } }] }))),
            Say::Image(data) => out.push(line(
                json!({ "role": "assistant", "content": "", "images": [data] }),
            )),
        }
    }
    out.push(json!({ "model": "model-1-long", "message": { "role": "assistant", "content": "" }, "done": true,
        "done_reason": "stop", "prompt_eval_count": 11, "eval_count": 7 }));
    out
}

fn responses(says: &[Say]) -> Vec<Value> {
    let mut out = vec![
        json!({ "type": "response.created", "response": { "id": "r", "model": "model-1-long", "status": "in_progress" } }),
    ];
    for (index, say) in says.iter().enumerate() {
        let added = |item: Value| json!({ "type": "response.output_item.added", "output_index": index, "item": item });
        let done = |item: Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
        match say {
            Say::Text(text) => {
                let (a, b) = text.split_at(text.floor_char_boundary(text.len() / 2));
                let message = |text: &str| {
                    json!({ "type": "message", "id": format!("msg_{index}"), "role": "assistant", "status": "completed",
                        "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
                };
                out.push(added(message("")));
                for delta in [a, b] {
                    out.push(json!({ "type": "response.output_text.delta", "output_index": index, "delta": delta }));
                }
                out.push(done(message(text)));
            }
            Say::Think(text) => {
                let item = json!({ "type": "reasoning", "id": format!("rs_{index}"), "status": "completed",
                    "encrypted_content": "sealed", "summary": [{ "type": "summary_text", "text": text }] });
                out.push(added(json!({ "type": "reasoning", "summary": [] })));
                out.push(json!({ "type": "response.reasoning_summary_text.delta", "output_index": index,
                    "summary_index": 0, "delta": text }));
                out.push(done(item));
            }
            Say::Call(id, name, parts) => {
                let item = |arguments: &str| {
                    json!({ "type": "function_call", "id": format!("fc_{index}"), "call_id": id, "name": name,
                        "arguments": arguments, "status": "completed" })
                };
                out.push(added(item("")));
                for part in parts {
                    out.push(json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": part }));
                }
                out.push(done(item(&parts.concat())));
            }
            Say::WholeCall(id, name, args) => {
                let item = json!({ "type": "function_call", "call_id": id, "name": name, "arguments": args.to_string() });
                out.push(done(item));
            }
            Say::Image(data) => out.push(done(
                json!({ "type": "image_generation_call", "id": "ig_1", "result": data, "output_format": "png" }),
            )),
        }
    }
    out.push(json!({ "type": "response.completed", "response": { "status": "completed", "model": "model-1-long",
        "usage": { "input_tokens": 11, "output_tokens": 7 } } }));
    out
}
