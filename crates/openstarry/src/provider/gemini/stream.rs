//! Reads the chunks of `…:streamGenerateContent`.

use crate::pain::AgentPain;
use crate::provider::Event;
use crate::provider::decode::{self, Decoder, arguments, count, text};
use crate::provider::failure;
use crate::provider::wire::WireTools;
use crate::segment::{ContentSegment, Media, StopReason, Usage};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct Parts {
    provider: String,
    tools: Arc<WireTools>,
    calls: usize,
    model_told: bool,
    finished: bool,
}

impl Parts {
    pub(super) fn new(provider: &str, tools: Arc<WireTools>) -> Self {
        Self {
            provider: provider.into(),
            tools,
            calls: 0,
            model_told: false,
            finished: false,
        }
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Event>) {
        let signature = part.get("thoughtSignature").cloned();
        if part.get("thought") == Some(&Value::Bool(true)) {
            out.extend(text(part, "text").map(Event::Reasoning));
            // A signed thought goes back as it came.
            if signature.is_some() {
                out.push(self.item(part.clone()));
            }
            return;
        }
        if let Some(call) = part.get("functionCall") {
            self.call(call, out);
        } else if let Some(media) = part.get("inlineData") {
            let mime = text(media, "mimeType").unwrap_or_else(|| "image/png".into());
            let media = Media::base64(mime, text(media, "data").unwrap_or_default());
            out.push(self.media(media, part));
        } else if let Some(file) = part.get("fileData") {
            let uri = text(file, "fileUri").unwrap_or_default();
            out.push(self.media(Media::url(uri, text(file, "mimeType")), part));
        } else if let Some(Value::String(words)) = part.get("text") {
            if !words.is_empty() {
                out.push(Event::Text(words.clone()));
            }
        } else {
            return out.push(self.item(part.clone()));
        }
        if let Some(signature) = signature {
            out.push(self.item(json!({ "thoughtSignature": signature })));
        }
    }

    fn call(&mut self, call: &Value, out: &mut Vec<Event>) {
        let index = self.calls;
        self.calls += 1;
        let name = text(call, "name").unwrap_or_default();
        out.push(Event::CallStart {
            index,
            id: text(call, "id"),
            name: self.tools.names.core(&name).to_owned(),
        });
        if let Some(json) = call.get("args").and_then(arguments) {
            out.push(Event::CallArguments { index, json });
        }
        out.push(Event::CallEnd { index });
    }

    fn media(&self, media: Media, part: &Value) -> Event {
        match ContentSegment::media(media) {
            Some(segment) => Event::Segment(segment),
            None => self.item(part.clone()),
        }
    }

    fn item(&self, item: Value) -> Event {
        Event::Segment(ContentSegment::Provider {
            provider: self.provider.clone(),
            item,
        })
    }

    fn finish(&mut self, reason: String, candidate: &Value, out: &mut Vec<Event>) {
        self.finished = true;
        let said = text(candidate, "finishMessage");
        out.push(Event::Finish(match reason.as_str() {
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => StopReason::ContentFilter,
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => StopReason::MalformedCall,
            _ => StopReason::Other(reason.clone()),
        }));
        if reason != "STOP" {
            out.push(Event::Extra("finishReason".into(), reason.into()));
        }
        out.extend(said.map(|said| Event::Extra("finishMessage".into(), said.into())));
    }
}

impl Decoder for Parts {
    fn frame(&mut self, frame: &str, out: &mut Vec<Event>) -> Result<(), AgentPain> {
        let chunk = decode::json(frame)?;
        if chunk.get("error").is_some() {
            return Err(failure::of_event(&chunk));
        }
        if !self.model_told
            && let Some(model) = text(&chunk, "modelVersion")
        {
            self.model_told = true;
            out.push(Event::Model(model));
        }
        if let Some(usage) = chunk.get("usageMetadata") {
            out.push(Event::Usage(Usage {
                input_tokens: count(usage, "/promptTokenCount")
                    + count(usage, "/toolUsePromptTokenCount"),
                output_tokens: count(usage, "/candidatesTokenCount")
                    + count(usage, "/thoughtsTokenCount"),
                cached_tokens: count(usage, "/cachedContentTokenCount"),
                estimated: false,
            }));
        }
        if let Some(reason) = chunk.pointer("/promptFeedback/blockReason") {
            self.finished = true;
            out.push(Event::Extra("blockReason".into(), reason.clone()));
            out.push(Event::Finish(StopReason::BlockedPrompt));
        }
        if let Some(candidate) = chunk.pointer("/candidates/0") {
            let parts = candidate
                .pointer("/content/parts")
                .and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                self.part(part, out);
            }
            if let Some(reason) = text(candidate, "finishReason") {
                self.finish(reason, candidate, out);
            }
            let known = ["content", "index", "finishReason", "finishMessage"];
            decode::extras(candidate, &known, out);
        }
        let known = ["candidates", "usageMetadata", "modelVersion", "responseId"];
        decode::extras(&chunk, &known, out);
        Ok(())
    }

    fn done(&self) -> bool {
        // Usage may come in a frame after the finish: the connection's end ends it.
        false
    }

    fn end(&mut self, _: &mut Vec<Event>) -> Result<(), AgentPain> {
        match self.finished {
            true => Ok(()),
            false => Err(decode::cut_off()),
        }
    }
}
