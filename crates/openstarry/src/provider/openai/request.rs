//! The request body.

use crate::pain::AgentPain;
use crate::provider::api::Api;
use crate::provider::names::NameRule;
use crate::provider::wire::{self, Notes, Request, WireTools, as_text, own_item};
use crate::provider::{Context, ProviderConfig};
use crate::segment::{ContentSegment, Media, MediaData, MediaKind, Message, Role, ToolResult};
use serde_json::{Map, Value, json};

pub(super) fn build(api: &Api, prompt: &str, context: &Context) -> Result<Request, AgentPain> {
    let config = &api.config;
    let tools = api.tools.get(
        &context.tools,
        NameRule::Plain,
        wire::function_tool,
        Value::Array,
    )?;
    let mut writer = Writer {
        config,
        name: &api.name,
        tools: &tools,
        notes: Notes::default(),
        out: Vec::new(),
    };
    if !context.system.is_empty() {
        writer
            .out
            .push(json!({ "role": "system", "content": context.system }));
    }
    for message in context.with_prompt(prompt) {
        writer.message(&message);
    }
    let Writer { notes, out, .. } = writer;

    let mut rest = Map::new();
    rest.insert("model".into(), config.model.clone().into());
    rest.insert("messages".into(), out.into());
    rest.insert("stream".into(), true.into());
    rest.insert("stream_options".into(), json!({ "include_usage": true }));
    let at_openai = config.base_url.is_none();
    if let Some(most) = config.max_output_tokens {
        let key = match at_openai {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        rest.insert(key.into(), most.into());
    }
    if let (true, true, Some(json)) = (at_openai, config.cache, &tools.json) {
        let key = format!("openstarry-{:016x}", crate::hash::fnv([json.get()]));
        rest.insert("prompt_cache_key".into(), key.into());
    }
    Request::new(rest, &config.options, &tools, true, notes)
}

struct Writer<'a> {
    config: &'a ProviderConfig,
    name: &'a str,
    tools: &'a WireTools,
    notes: Notes,
    out: Vec<Value>,
}

impl Writer<'_> {
    fn message(&mut self, message: &Message) {
        match message.role {
            Role::User => self.user(&message.segments),
            Role::System => {
                let text = crate::segment::joined_text(&message.segments);
                self.out.push(json!({ "role": "system", "content": text }));
            }
            Role::Assistant => self.assistant(&message.segments),
            Role::Tool => self.results(&message.segments),
        }
    }

    fn user(&mut self, segments: &[ContentSegment]) {
        let parts: Vec<Value> = segments.iter().filter_map(|s| self.part(s)).collect();
        let content = match parts.as_slice() {
            [one] if one["type"] == "text" => one["text"].clone(),
            _ => Value::Array(parts),
        };
        self.out.push(json!({ "role": "user", "content": content }));
    }

    fn part(&mut self, segment: &ContentSegment) -> Option<Value> {
        if let Some((kind, media)) = segment.as_media() {
            let part = self.media(kind, media);
            return Some(part.unwrap_or_else(
                |why| json!({ "type": "text", "text": self.notes.left_out(kind, media, &why) }),
            ));
        }
        Some(json!({ "type": "text", "text": as_text(segment)? }))
    }

    fn media(&self, kind: MediaKind, media: &Media) -> Result<Value, String> {
        if !self.config.takes(kind) {
            return Err(format!("{} takes no {kind}", self.config.model));
        }
        match (kind, &media.data) {
            (MediaKind::Image, _) => {
                Ok(json!({ "type": "image_url", "image_url": { "url": media.as_url() } }))
            }
            (MediaKind::Audio, MediaData::Base64(data)) => {
                let format = match media.mime_type.as_str() {
                    "audio/mpeg" | "audio/mp3" => "mp3",
                    "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                    other => return Err(format!("the API takes no {other}")),
                };
                Ok(
                    json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } }),
                )
            }
            (MediaKind::Audio, MediaData::Url(_)) => Err("the API takes no audio by URL".into()),
            (MediaKind::Video, _) => {
                Ok(json!({ "type": "video_url", "video_url": { "url": media.as_url() } }))
            }
        }
    }

    fn assistant(&mut self, segments: &[ContentSegment]) {
        let mut message = Map::new();
        let mut words: Vec<String> = Vec::new();
        let mut calls: Vec<Value> = Vec::new();
        for segment in segments {
            if let Some(call) = segment.as_call() {
                // Some servers read the arguments of old calls: they must be JSON.
                calls.push(json!({ "id": call.id(), "type": "function", "function": {
                    "name": self.tools.names.wire(&call.name), "arguments": call.args_object().to_string(),
                }}));
            } else if let Some((kind, media)) = segment.as_media() {
                words.push(self.notes.left_out(kind, media, "the API takes none back"));
            } else if let Some(text) = as_text(segment) {
                words.push(text);
            }
        }
        let mut parts: Vec<Value> = Vec::new();
        for item in segments.iter().filter_map(|s| own_item(s, self.name)) {
            parts.extend(item.get("part").cloned());
            if let Some(Value::Object(fields)) = item.get("message") {
                wire::merge(&mut message, fields);
            }
            let at = item
                .get("call")
                .and_then(Value::as_u64)
                .map(|at| at as usize);
            if let (Some(Value::Object(call)), Some(Value::Object(fields))) =
                (at.and_then(|at| calls.get_mut(at)), item.get("fields"))
            {
                wire::merge(call, fields);
            }
        }
        message.insert("role".into(), "assistant".into());
        let content = match words.is_empty() {
            _ if !parts.is_empty() => {
                let words = words
                    .into_iter()
                    .map(|text| json!({ "type": "text", "text": text }));
                words.chain(parts).collect()
            }
            true if !calls.is_empty() || message.contains_key("audio") => Value::Null,
            _ => words.join("\n").into(),
        };
        message.insert("content".into(), content);
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        self.out.push(message.into());
    }

    /// Results are text alone here; what else a tool gave follows as a message
    /// of the user, after the last result.
    fn results(&mut self, segments: &[ContentSegment]) {
        let mut media = Vec::new();
        for segment in segments {
            let ContentSegment::ToolResult { tool_result } = segment else {
                continue;
            };
            let content = self.result_text(tool_result, &mut media);
            self.out.push(json!({
                "role": "tool", "tool_call_id": tool_result.id, "content": content,
            }));
        }
        if !media.is_empty() {
            self.out.push(json!({ "role": "user", "content": media }));
        }
    }

    fn result_text(&mut self, result: &ToolResult, media: &mut Vec<Value>) -> String {
        let mut words: Vec<String> = Vec::new();
        if result.is_error {
            words.push("error:".into());
        }
        for segment in &result.content {
            match segment.as_media() {
                None => words.extend(as_text(segment)),
                Some((kind, medium)) => match self.media(kind, medium) {
                    Err(why) => words.push(self.notes.left_out(kind, medium, &why)),
                    Ok(part) => {
                        words.push(format!("[{kind} {} follows]", media.len() / 2 + 1));
                        let label = format!("{kind} {} from {}:", media.len() / 2 + 1, result.name);
                        media.push(json!({ "type": "text", "text": label }));
                        media.push(part);
                    }
                },
            }
        }
        words.join("\n")
    }
}
