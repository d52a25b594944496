//! Reads the lines of `…/api/chat`.

use crate::pain::AgentPain;
use crate::provider::Event;
use crate::provider::decode::{self, Decoder, arguments, count, text};
use crate::provider::failure;
use crate::provider::wire::WireTools;
use crate::segment::{ContentSegment, Media, StopReason, Usage, image_type_of_base64};
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) struct Lines {
    provider: String,
    tools: Arc<WireTools>,
    calls: usize,
    unknown: Map<String, Value>,
    model_told: bool,
    done: bool,
}

impl Lines {
    pub(super) fn new(provider: &str, tools: Arc<WireTools>) -> Self {
        Self {
            provider: provider.into(),
            tools,
            calls: 0,
            unknown: Map::new(),
            model_told: false,
            done: false,
        }
    }

    fn message(&mut self, message: &Map<String, Value>, out: &mut Vec<Event>) {
        for (key, value) in message {
            match (key.as_str(), value) {
                ("thinking", Value::String(thought)) if !thought.is_empty() => {
                    out.insert(0, Event::Reasoning(thought.clone()));
                }
                ("content", Value::String(words)) if !words.is_empty() => {
                    out.push(Event::Text(words.clone()));
                }
                ("images", Value::Array(images)) => {
                    out.extend(images.iter().filter_map(Value::as_str).map(|data| {
                        let media = Media::base64(image_type_of_base64(data), data);
                        Event::Segment(ContentSegment::Image(media))
                    }));
                }
                ("tool_calls", Value::Array(calls)) => {
                    calls.iter().for_each(|call| self.call(call, out));
                }
                ("role" | "content" | "thinking" | "images" | "tool_calls", _) => {}
                (_, Value::Null) => {}
                _ => {
                    self.unknown.insert(key.clone(), value.clone());
                }
            }
        }
    }

    /// Calls come whole, without an id in most versions.
    fn call(&mut self, call: &Value, out: &mut Vec<Event>) {
        let function = call.get("function").unwrap_or(call);
        let index = self.calls;
        self.calls += 1;
        let name = text(function, "name").unwrap_or_default();
        out.push(Event::CallStart {
            index,
            id: text(call, "id"),
            name: self.tools.names.core(&name).to_owned(),
        });
        if let Some(json) = function.get("arguments").and_then(arguments) {
            out.push(Event::CallArguments { index, json });
        }
        out.push(Event::CallEnd { index });
    }
}

impl Decoder for Lines {
    fn frame(&mut self, frame: &str, out: &mut Vec<Event>) -> Result<(), AgentPain> {
        let line = decode::json(frame)?;
        if line.get("error").is_some() {
            return Err(failure::of_event(&line));
        }
        if !self.model_told
            && let Some(model) = text(&line, "model")
        {
            self.model_told = true;
            out.push(Event::Model(model));
        }
        if let Some(Value::Object(message)) = line.get("message") {
            let mut events = Vec::new();
            self.message(message, &mut events);
            out.extend(events);
        }
        if line.get("done") == Some(&Value::Bool(true)) {
            self.done = true;
            out.push(Event::Usage(Usage {
                input_tokens: count(&line, "/prompt_eval_count"),
                output_tokens: count(&line, "/eval_count"),
                ..Usage::default()
            }));
            let reason = text(&line, "done_reason").unwrap_or_else(|| "stop".into());
            out.push(Event::Finish(match reason.as_str() {
                "stop" => StopReason::EndTurn,
                "length" => StopReason::MaxTokens,
                _ => StopReason::Other(reason),
            }));
        }
        Ok(())
    }

    fn done(&self) -> bool {
        self.done
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), AgentPain> {
        if !self.done {
            return Err(decode::cut_off());
        }
        if !self.unknown.is_empty() {
            out.push(Event::Segment(ContentSegment::Provider {
                provider: self.provider.clone(),
                item: std::mem::take(&mut self.unknown).into(),
            }));
        }
        Ok(())
    }
}
