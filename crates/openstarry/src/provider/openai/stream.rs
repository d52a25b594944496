//! Reads chunks of `…/chat/completions`, or one whole completion.

use super::request::THINKING_PART;
use super::thoughts;
use crate::pain::AgentPain;
use crate::provider::Event;
use crate::provider::decode::{self, Decoder, arguments, count, text};
use crate::provider::failure;
use crate::provider::wire::WireTools;
use crate::segment::{ContentSegment, Media, StopReason, Usage};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Fields of a message that have an event of their own.
const KNOWN: [&str; 11] = [
    "role",
    "content",
    "tool_calls",
    "function_call",
    "reasoning_content",
    "reasoning",
    "refusal",
    "images",
    "audio",
    "index",
    "annotations",
];
/// Fields of a chunk that are no news.
const KNOWN_CHUNK: [&str; 9] = [
    "id",
    "object",
    "created",
    "model",
    "choices",
    "usage",
    "error",
    "obfuscation",
    "code",
];
/// Fields of a choice that are read elsewhere.
const KNOWN_CHOICE: [&str; 5] = ["index", "delta", "message", "finish_reason", "usage"];

pub(super) struct Chunks {
    provider: String,
    tools: Arc<WireTools>,
    calls: Vec<PartialCall>,
    /// Fields nobody here knows; they go back with the message.
    unknown: Map<String, Value>,
    /// The field in which thoughts come: they go back in the same.
    reasoning: Option<&'static str>,
    reasoning_noted: bool,
    audio: Vec<u8>,
    finished: bool,
    done: bool,
    model_told: bool,
    refused: bool,
}

#[derive(Default)]
struct PartialCall {
    wire_index: Option<u64>,
    id: Option<String>,
    named: bool,
    /// Arguments that came before the name.
    early: String,
    unknown: Map<String, Value>,
}

impl Chunks {
    pub(super) fn new(provider: &str, tools: Arc<WireTools>) -> Self {
        Self {
            provider: provider.into(),
            tools,
            calls: Vec::new(),
            unknown: Map::new(),
            reasoning: None,
            reasoning_noted: false,
            audio: Vec::new(),
            finished: false,
            done: false,
            model_told: false,
            refused: false,
        }
    }

    fn message(&mut self, message: &Value, out: &mut Vec<Event>) {
        let since = out.len();
        for key in ["reasoning_content", "reasoning"] {
            if let Some(thought) = text(message, key) {
                self.reasoning = Some(key);
                out.push(Event::Reasoning(thought));
                break;
            }
        }
        match message.get("content") {
            Some(Value::String(words)) if !words.is_empty() => out.push(Event::Text(words.clone())),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.part(part, out)),
            _ => {}
        }
        if let Some(words) = text(message, "refusal") {
            self.refused = true;
            out.push(Event::Text(words));
        }
        for part in message
            .get("images")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.part(part, out);
        }
        if let Some(audio) = message.get("audio") {
            self.audio(audio, out);
        }
        for call in message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.call(call, out);
        }
        if let Some(function) = message.get("function_call").filter(|call| call.is_object()) {
            self.call(&json!({ "index": 0, "function": function }), out);
        }
        if let Some(notes) = message.get("annotations").filter(|notes| !notes.is_null()) {
            out.push(Event::Extra("annotations".into(), notes.clone()));
        }
        decode::keep_unknown(&mut self.unknown, message, &KNOWN);
        self.note_reasoning(since, out);
    }

    /// Notes once in which field thoughts came, before what follows them.
    fn note_reasoning(&mut self, since: usize, out: &mut Vec<Event>) {
        let Some(field) = self.reasoning.filter(|_| !self.reasoning_noted) else {
            return;
        };
        let follows = |event: &Event| event.is_said() && !matches!(event, Event::Reasoning(_));
        if let Some(at) = out[since..].iter().position(follows) {
            out.insert(since + at, self.item(json!({ "reasoning": field })));
            self.reasoning_noted = true;
        }
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Event>) {
        let url = part.pointer("/image_url/url").and_then(Value::as_str);
        if let Some(words) = text(part, "text") {
            out.push(Event::Text(words));
        } else if let Some(url) = url {
            let mut media = Media::url(url, None);
            if media.kind().is_none() {
                media.mime_type = "image/png".into();
            }
            out.push(Event::Segment(ContentSegment::Image(media)));
        } else if let Some(thoughts) = part.get("thinking").and_then(Value::as_array) {
            self.reasoning = Some(THINKING_PART);
            out.extend(
                thoughts
                    .iter()
                    .filter_map(|t| text(t, "text"))
                    .map(Event::Reasoning),
            );
        } else if part.get("type") != Some(&"text".into()) {
            out.push(self.item(json!({ "part": part })));
        }
    }

    fn audio(&mut self, audio: &Value, out: &mut Vec<Event>) {
        out.extend(text(audio, "transcript").map(Event::Text));
        if let Some(data) = text(audio, "data") {
            match STANDARD.decode(data) {
                Ok(bytes) => self.audio.extend(bytes),
                Err(error) => out.push(Event::Warning(format!("audio left out: {error}"))),
            }
        }
        if let Some(id) = text(audio, "id") {
            self.unknown.insert("audio".into(), json!({ "id": id }));
        }
    }

    fn call(&mut self, call: &Value, out: &mut Vec<Event>) {
        let wire_index = call.get("index").and_then(Value::as_u64);
        let id = text(call, "id");
        let at = self.find(wire_index, id.as_deref());
        let index = at.unwrap_or_else(|| {
            self.calls.push(PartialCall {
                wire_index,
                id: id.clone(),
                ..PartialCall::default()
            });
            self.calls.len() - 1
        });
        let known = &mut self.calls[index];
        decode::keep_unknown(
            &mut known.unknown,
            call,
            &["index", "id", "type", "function"],
        );
        let function = call.get("function").unwrap_or(&Value::Null);
        let json = function.get("arguments").and_then(arguments);
        if !known.named
            && let Some(name) = text(function, "name")
        {
            known.named = true;
            let name = self.tools.names.core(&name).to_owned();
            out.push(Event::CallStart {
                index,
                id: known.id.clone().or(id),
                name,
            });
            if !known.early.is_empty() {
                let json = std::mem::take(&mut known.early);
                out.push(Event::CallArguments { index, json });
            }
        }
        match json {
            Some(json) if known.named => out.push(Event::CallArguments { index, json }),
            Some(json) => known.early.push_str(&json),
            None => {}
        }
    }

    /// Which call a piece belongs to. Some servers give every call the index 0
    /// and tell them apart by id, some give no index, some no id.
    fn find(&self, wire_index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let same_id =
            |call: &PartialCall| id.is_none() || call.id.is_none() || call.id.as_deref() == id;
        match (wire_index, id) {
            (None, None) => self.calls.len().checked_sub(1),
            (None, Some(_)) => self.calls.iter().rposition(|call| call.id.as_deref() == id),
            (Some(_), _) => self
                .calls
                .iter()
                .rposition(|call| call.wire_index == wire_index && same_id(call)),
        }
    }

    fn item(&self, item: Value) -> Event {
        Event::Segment(ContentSegment::Provider {
            provider: self.provider.clone(),
            item,
        })
    }
}

impl Decoder for Chunks {
    fn frame(&mut self, frame: &str, out: &mut Vec<Event>) -> Result<(), AgentPain> {
        if frame.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk = decode::json(frame)?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(failure::of_event(&chunk));
        }
        if !self.model_told
            && let Some(model) = text(&chunk, "model")
        {
            self.model_told = true;
            out.push(Event::Model(model));
        }
        if let Some(choice) = chunk.pointer("/choices/0") {
            let message = choice.get("delta").or_else(|| choice.get("message"));
            if let Some(message) = message {
                self.message(message, out);
            }
            if let Some(reason) = text(choice, "finish_reason") {
                self.finished = true;
                out.push(Event::Finish(match reason.as_str() {
                    "stop" if self.refused => StopReason::Refusal,
                    // The second are what other engines call it.
                    "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" => {
                        StopReason::EndTurn
                    }
                    "length" | "max_tokens" => StopReason::MaxTokens,
                    "model_length" => StopReason::ContextFull,
                    "tool_calls" | "function_call" => StopReason::ToolUse,
                    "refusal" => StopReason::Refusal,
                    "content_filter" => StopReason::ContentFilter,
                    _ => StopReason::Other(reason),
                }));
            }
            decode::extras(choice, &KNOWN_CHOICE, out);
        }
        // Most tell it beside the choices, some within one.
        let told = [chunk.get("usage"), chunk.pointer("/choices/0/usage")];
        let told = told.into_iter().flatten().find(|usage| usage.is_object());
        out.extend(told.map(usage));
        decode::extras(&chunk, &KNOWN_CHUNK, out);
        Ok(())
    }

    fn done(&self) -> bool {
        self.done
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), AgentPain> {
        if !self.finished && !self.done {
            return Err(decode::cut_off());
        }
        for index in 0..self.calls.len() {
            let call = &mut self.calls[index];
            if !call.named {
                let (id, json) = (call.id.clone(), std::mem::take(&mut call.early));
                out.push(Event::CallStart {
                    index,
                    id,
                    name: String::new(),
                });
                out.push(Event::CallArguments { index, json });
            }
            let fields = std::mem::take(&mut call.unknown);
            out.push(Event::CallEnd { index });
            if !fields.is_empty() {
                out.push(self.item(json!({ "call": index, "fields": fields })));
            }
        }
        if !self.audio.is_empty() {
            let media = Media::base64("audio/pcm", STANDARD.encode(&self.audio));
            out.push(Event::Segment(ContentSegment::Audio(media)));
        }
        if !self.unknown.is_empty() {
            let mut message = std::mem::take(&mut self.unknown);
            thoughts::assemble(&mut message);
            out.push(self.item(json!({ "message": message })));
        }
        Ok(())
    }
}

fn usage(usage: &Value) -> Event {
    Event::Usage(Usage {
        input_tokens: count(usage, "/prompt_tokens"),
        output_tokens: count(usage, "/completion_tokens"),
        cached_tokens: count(usage, "/prompt_tokens_details/cached_tokens"),
        estimated: false,
    })
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
