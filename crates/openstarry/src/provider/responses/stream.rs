//! Reads the events of `…/responses`, or one whole response.

use crate::pain::AgentPain;
use crate::provider::Event;
use crate::provider::decode::{self, Decoder, count, text};
use crate::provider::failure;
use crate::provider::wire::WireTools;
use crate::segment::{ContentSegment, Media, StopReason, Usage};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) struct Items {
    provider: String,
    tools: Arc<WireTools>,
    /// Items of which something was streamed, by their index.
    streamed: HashSet<u64>,
    /// Calls that have begun.
    calls: HashSet<u64>,
    model_told: bool,
    refused: bool,
    done: bool,
}

impl Items {
    pub(super) fn new(provider: &str, tools: Arc<WireTools>) -> Self {
        Self {
            provider: provider.into(),
            tools,
            streamed: HashSet::new(),
            calls: HashSet::new(),
            model_told: false,
            refused: false,
            done: false,
        }
    }

    fn model(&mut self, response: &Value, out: &mut Vec<Event>) {
        if !self.model_told
            && let Some(model) = text(response, "model")
        {
            self.model_told = true;
            out.push(Event::Model(model));
        }
    }

    fn start_call(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        if self.calls.insert(index) {
            let name = text(item, "name").unwrap_or_default();
            out.push(Event::CallStart {
                index: index as usize,
                id: text(item, "call_id"),
                name: self.tools.names.core(&name).to_owned(),
            });
        }
    }

    /// A whole item. What was streamed of it is known already.
    fn item(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        let streamed = self.streamed.contains(&index);
        let mut fields = Map::new();
        match item.get("type").and_then(Value::as_str) {
            Some("message") => {
                let parts = item.get("content").and_then(Value::as_array);
                for part in parts.into_iter().flatten().filter(|_| !streamed) {
                    self.refused |= part.get("refusal").is_some();
                    let words = text(part, "text").or_else(|| text(part, "refusal"));
                    out.extend(words.map(Event::Text));
                }
                let known = ["id", "type", "status", "role", "content"];
                decode::keep_unknown(&mut fields, item, &known);
            }
            Some("function_call") => {
                self.start_call(index, item, out);
                let at = index as usize;
                if !streamed && let Some(json) = text(item, "arguments") {
                    out.push(Event::CallArguments { index: at, json });
                }
                out.push(Event::CallEnd { index: at });
                let known = ["id", "type", "status", "call_id", "name", "arguments"];
                decode::keep_unknown(&mut fields, item, &known);
            }
            Some("reasoning") => {
                let parts = ["summary", "content"].map(|key| item.get(key));
                let parts = parts.into_iter().flatten().filter_map(Value::as_array);
                let thoughts = parts.flatten().filter_map(|part| text(part, "text"));
                if !streamed {
                    out.extend(thoughts.map(Event::Reasoning));
                }
                let mut item = item.clone();
                // The API refuses the status that it sent.
                if let Value::Object(fields) = &mut item {
                    fields.remove("status");
                }
                out.push(self.kept(item));
            }
            kind => {
                if kind == Some("image_generation_call")
                    && let Some(data) = text(item, "result")
                {
                    let format = text(item, "output_format").unwrap_or_else(|| "png".into());
                    let media = Media::base64(format!("image/{format}"), data);
                    out.push(Event::Segment(ContentSegment::Image(media)));
                }
                out.push(self.kept(item.clone()));
            }
        }
        if !fields.is_empty() {
            out.push(self.kept(json!({ "fields": fields })));
        }
    }

    fn kept(&self, item: Value) -> Event {
        Event::Segment(ContentSegment::Provider {
            provider: self.provider.clone(),
            item,
        })
    }

    fn finish(&mut self, response: &Value, out: &mut Vec<Event>) {
        self.done = true;
        self.model(response, out);
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            out.push(Event::Usage(Usage {
                input_tokens: count(usage, "/input_tokens"),
                output_tokens: count(usage, "/output_tokens"),
                cached_tokens: count(usage, "/input_tokens_details/cached_tokens"),
                estimated: false,
            }));
        }
        let reason = response
            .pointer("/incomplete_details/reason")
            .and_then(Value::as_str);
        out.push(Event::Finish(match reason {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::ContentFilter,
            Some(other) => StopReason::Other(other.into()),
            None if self.refused => StopReason::Refusal,
            None => StopReason::EndTurn,
        }));
    }
}

impl Decoder for Items {
    fn frame(&mut self, frame: &str, out: &mut Vec<Event>) -> Result<(), AgentPain> {
        if frame.trim() == "[DONE]" {
            return Ok(());
        }
        let event = decode::json(frame)?;
        let index = event.get("output_index").and_then(Value::as_u64);
        let index = index.unwrap_or(0);
        let null = Value::Null;
        let part = |key: &str| event.get(key).unwrap_or(&null);
        let delta = || text(&event, "delta");
        match event.get("type").and_then(Value::as_str) {
            Some("response.created" | "response.in_progress" | "response.queued") => {
                self.model(part("response"), out);
            }
            Some("response.output_item.added") if part("item")["type"] == "function_call" => {
                self.start_call(index, part("item"), out);
            }
            Some("response.output_text.delta") => {
                self.streamed.insert(index);
                out.extend(delta().map(Event::Text));
            }
            Some("response.refusal.delta") => {
                self.streamed.insert(index);
                self.refused = true;
                out.extend(delta().map(Event::Text));
            }
            Some("response.function_call_arguments.delta") => {
                self.streamed.insert(index);
                out.extend(delta().map(|json| Event::CallArguments {
                    index: index as usize,
                    json,
                }));
            }
            Some("response.reasoning_summary_part.added")
                if count(&event, "/summary_index") > 0 =>
            {
                out.push(Event::Reasoning("\n\n".into()));
            }
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                self.streamed.insert(index);
                out.extend(delta().map(Event::Reasoning));
            }
            Some("response.output_item.done") => self.item(index, part("item"), out),
            Some("response.completed" | "response.incomplete") => {
                self.finish(part("response"), out);
            }
            Some("response.failed") => return Err(failure::of_event(part("response"))),
            Some("error") => return Err(failure::of_event(&event)),
            // A server that cannot stream.
            None if event.get("output").is_some_and(Value::is_array) => {
                if event.get("error").is_some_and(|error| !error.is_null()) {
                    return Err(failure::of_event(&event));
                }
                let items = event.get("output").and_then(Value::as_array);
                for (index, item) in items.into_iter().flatten().enumerate() {
                    self.item(index as u64, item, out);
                }
                self.finish(&event, out);
            }
            None if event.get("error").is_some() => return Err(failure::of_event(&event)),
            // Progress of the API's own tools, and events still to be invented.
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
