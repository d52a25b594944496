//! Reads the events of `…/v1/messages`.

use crate::pain::AgentPain;
use crate::provider::Event;
use crate::provider::decode::{self, Decoder, count, text};
use crate::provider::failure;
use crate::provider::wire::WireTools;
use crate::segment::{ContentSegment, StopReason, Usage};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Fields of a message that are read elsewhere.
const KNOWN_MESSAGE: [&str; 7] = [
    "id",
    "type",
    "role",
    "model",
    "content",
    "stop_reason",
    "usage",
];

pub(super) struct Blocks {
    provider: String,
    tools: Arc<WireTools>,
    open: HashMap<u64, Block>,
    done: bool,
}

/// A content block between its start and its stop. `fields` are those nobody
/// here knows; they go back with the block.
enum Block {
    Text {
        fields: Map<String, Value>,
    },
    Thought {
        signature: String,
        fields: Map<String, Value>,
    },
    Call {
        input: Value,
        streamed: bool,
        fields: Map<String, Value>,
    },
    /// A block nobody here knows: kept whole, with what it streams.
    Unknown {
        block: Value,
        input: String,
    },
}

impl Blocks {
    pub(super) fn new(provider: &str, tools: Arc<WireTools>) -> Self {
        Self {
            provider: provider.into(),
            tools,
            open: HashMap::new(),
            done: false,
        }
    }

    fn start(&mut self, index: u64, block: &Value, out: &mut Vec<Event>) {
        let mut fields = Map::new();
        let open = match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                out.extend(text(block, "text").map(Event::Text));
                decode::keep_unknown(&mut fields, block, &["type", "text"]);
                Block::Text { fields }
            }
            Some("thinking") => {
                let thought = text(block, "thinking").unwrap_or_default();
                out.push(Event::Reasoning(thought));
                decode::keep_unknown(&mut fields, block, &["type", "thinking", "signature"]);
                Block::Thought {
                    signature: text(block, "signature").unwrap_or_default(),
                    fields,
                }
            }
            Some("tool_use") => {
                let name = text(block, "name").unwrap_or_default();
                out.push(Event::CallStart {
                    index: index as usize,
                    id: text(block, "id"),
                    name: self.tools.names.core(&name).to_owned(),
                });
                decode::keep_unknown(&mut fields, block, &["type", "id", "name", "input"]);
                Block::Call {
                    input: block.get("input").cloned().unwrap_or_default(),
                    streamed: false,
                    fields,
                }
            }
            _ => Block::Unknown {
                block: block.clone(),
                input: String::new(),
            },
        };
        self.open.insert(index, open);
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<Event>) {
        match self.open.get_mut(&index) {
            Some(Block::Text { fields }) => {
                out.extend(text(delta, "text").map(Event::Text));
                // Citations come one by one, and go back as a list.
                if let Some(citation) = delta.get("citation") {
                    let list = fields.entry("citations").or_insert(Value::Null);
                    decode::grow(list, &json!([citation]));
                }
                decode::keep_unknown(fields, delta, &["type", "text", "citation"]);
            }
            Some(Block::Thought { signature, fields }) => {
                out.extend(text(delta, "thinking").map(Event::Reasoning));
                signature.push_str(&text(delta, "signature").unwrap_or_default());
                decode::keep_unknown(fields, delta, &["type", "thinking", "signature"]);
            }
            Some(Block::Call {
                streamed, fields, ..
            }) => {
                if let Some(json) = text(delta, "partial_json") {
                    *streamed = true;
                    out.push(Event::CallArguments {
                        index: index as usize,
                        json,
                    });
                }
                decode::keep_unknown(fields, delta, &["type", "partial_json"]);
            }
            Some(Block::Unknown { block, input }) => {
                input.push_str(&text(delta, "partial_json").unwrap_or_default());
                if let Value::Object(block) = block {
                    decode::keep_unknown(block, delta, &["type", "partial_json"]);
                }
            }
            None => out.push(Event::Warning(format!(
                "a piece of a block that never began was left out: {}",
                crate::pain::excerpt(&delta.to_string(), 200)
            ))),
        }
    }

    fn stop(&mut self, index: u64, out: &mut Vec<Event>) {
        match self.open.remove(&index) {
            Some(Block::Text { fields }) => out.extend(self.fields(fields)),
            Some(Block::Thought { signature, fields }) if !signature.is_empty() => {
                let mut item = json!({ "signature": signature });
                if !fields.is_empty() {
                    item["fields"] = fields.into();
                }
                out.push(self.item(item));
            }
            Some(Block::Call {
                input,
                streamed,
                fields,
            }) => {
                let index = index as usize;
                // The arguments came whole with the start, or piece by piece.
                if !streamed && !input.is_null() {
                    let json = input.to_string();
                    out.push(Event::CallArguments { index, json });
                }
                out.push(Event::CallEnd { index });
                out.extend(self.fields(fields));
            }
            Some(Block::Unknown { mut block, input }) => {
                if let Ok(input) = serde_json::from_str::<Value>(&input)
                    && block.is_object()
                {
                    block["input"] = input;
                }
                out.push(self.item(block));
            }
            _ => {}
        }
    }

    fn whole(&mut self, message: &Value, out: &mut Vec<Event>) {
        begin(message, out);
        let blocks = message.get("content").and_then(Value::as_array);
        for (index, block) in (0..).zip(blocks.into_iter().flatten()) {
            self.start(index, block, out);
            self.stop(index, out);
        }
        out.extend(finish(message));
        self.done = true;
    }

    fn fields(&self, fields: Map<String, Value>) -> Option<Event> {
        (!fields.is_empty()).then(|| self.item(json!({ "fields": fields })))
    }

    fn item(&self, item: Value) -> Event {
        Event::Segment(ContentSegment::Provider {
            provider: self.provider.clone(),
            item,
        })
    }
}

fn begin(message: &Value, out: &mut Vec<Event>) {
    out.extend(text(message, "model").map(Event::Model));
    out.extend(usage(message));
    decode::extras(message, &KNOWN_MESSAGE, out);
}

fn finish(message: &Value) -> Option<Event> {
    let reason = text(message, "stop_reason")?;
    Some(Event::Finish(match reason.as_str() {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "model_context_window_exceeded" => StopReason::ContextFull,
        "refusal" => StopReason::Refusal,
        "pause_turn" | "compaction" => StopReason::Pause,
        _ => StopReason::Other(reason),
    }))
}

fn usage(value: &Value) -> Option<Event> {
    let usage = value.get("usage")?;
    let cached = count(usage, "/cache_read_input_tokens");
    Some(Event::Usage(Usage {
        input_tokens: count(usage, "/input_tokens")
            + cached
            + count(usage, "/cache_creation_input_tokens"),
        output_tokens: count(usage, "/output_tokens"),
        cached_tokens: cached,
        estimated: false,
    }))
}

impl Decoder for Blocks {
    fn frame(&mut self, frame: &str, out: &mut Vec<Event>) -> Result<(), AgentPain> {
        let event = decode::json(frame)?;
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        let null = Value::Null;
        let part = |key: &str| event.get(key).unwrap_or(&null);
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => begin(part("message"), out),
            Some("content_block_start") => self.start(index, part("content_block"), out),
            Some("content_block_delta") => self.delta(index, part("delta"), out),
            Some("content_block_stop") => self.stop(index, out),
            Some("message_delta") => {
                out.extend(usage(&event));
                decode::extras(part("delta"), &KNOWN_MESSAGE, out);
                out.extend(finish(part("delta")));
            }
            // A server that cannot stream.
            Some("message") => self.whole(&event, out),
            Some("message_stop") => self.done = true,
            Some("error") => return Err(failure::of_event(&event)),
            // Pings, and events that are still to be invented.
            _ => {}
        }
        Ok(())
    }

    fn done(&self) -> bool {
        self.done
    }

    fn end(&mut self, _: &mut Vec<Event>) -> Result<(), AgentPain> {
        match self.done {
            true => Ok(()),
            false => Err(decode::cut_off()),
        }
    }
}
