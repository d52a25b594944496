//! The request body.

use crate::pain::AgentPain;
use crate::provider::api::Api;
use crate::provider::names::NameRule;
use crate::provider::wire::{self, NO_OUTPUT, Notes, Request, WireTools, as_text, own_item};
use crate::provider::{Context, ProviderConfig};
use crate::segment::{ContentSegment, Media, MediaData, MediaKind, Message, Role, ToolResult};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) fn tools(api: &Api, context: &Context) -> Result<Arc<WireTools>, AgentPain> {
    api.tools.get(
        &context.tools,
        NameRule::Dotted,
        |name, spec| {
            // `parameters` takes a part of JSON Schema alone; this field takes all.
            json!({
                "name": name, "description": spec.description,
                "parametersJsonSchema": spec.parameters,
            })
        },
        |all| json!([{ "functionDeclarations": all }]),
    )
}

pub(super) fn system(context: &Context) -> Value {
    json!({ "parts": [{ "text": context.system }] })
}

/// The body; with the id of an upload, without what was uploaded.
pub(super) fn build(
    api: &Api,
    prompt: &str,
    context: &Context,
    tools: &Arc<WireTools>,
    uploaded: Option<&str>,
) -> Result<Request, AgentPain> {
    let config = &api.config;
    let mut writer = Writer {
        config,
        name: &api.name,
        tools,
        notes: Notes::default(),
        out: Vec::new(),
    };
    for message in context.with_prompt(prompt) {
        writer.message(&message);
    }
    let Writer { notes, out, .. } = writer;

    let mut rest = Map::new();
    rest.insert("contents".into(), out.into());
    match uploaded {
        Some(id) => {
            rest.insert("cachedContent".into(), id.into());
        }
        None if !context.system.is_empty() => {
            rest.insert("systemInstruction".into(), system(context));
        }
        None => {}
    }
    let mut generation = Map::new();
    if let Some(most) = context.output_limit(config.max_output_tokens) {
        generation.insert("maxOutputTokens".into(), most.into());
    }
    if let Some(schema) = context.output.as_deref() {
        generation.insert("responseMimeType".into(), "application/json".into());
        generation.insert("responseJsonSchema".into(), schema.clone());
    }
    if !generation.is_empty() {
        rest.insert("generationConfig".into(), generation.into());
    }
    Request::new(rest, &config.options, tools, uploaded.is_none(), notes)
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
        let (role, parts) = match message.role {
            Role::Assistant => ("model", self.model(&message.segments)),
            Role::Tool => ("user", self.results(&message.segments)),
            Role::User => ("user", self.plain(&message.segments)),
            Role::System => {
                let text = wire::observation(&message.segments);
                ("user", vec![json!({ "text": text })])
            }
        };
        wire::join(&mut self.out, role, "parts", parts);
    }

    fn plain(&mut self, segments: &[ContentSegment]) -> Vec<Value> {
        segments.iter().filter_map(|s| self.part(s)).collect()
    }

    fn part(&mut self, segment: &ContentSegment) -> Option<Value> {
        match segment.as_media() {
            Some((kind, media)) => Some(self.media(kind, media)),
            None => Some(json!({ "text": as_text(segment)? })),
        }
    }

    fn media(&mut self, kind: MediaKind, media: &Media) -> Value {
        if !self.config.takes(kind) {
            let why = format!("{} takes no {kind}", self.config.model);
            return json!({ "text": self.notes.left_out(kind, media, &why) });
        }
        match &media.data {
            MediaData::Base64(data) => {
                json!({ "inlineData": { "mimeType": media.mime_type, "data": data } })
            }
            MediaData::Url(url) => {
                json!({ "fileData": { "mimeType": media.mime_type, "fileUri": url } })
            }
        }
    }

    fn model(&mut self, segments: &[ContentSegment]) -> Vec<Value> {
        let mut parts: Vec<Value> = Vec::new();
        for segment in segments {
            if let Some(item) = own_item(segment, self.name) {
                match (item.get("thoughtSignature"), parts.last_mut()) {
                    (Some(signature), Some(last)) if item.get("thought").is_none() => {
                        last["thoughtSignature"] = signature.clone();
                    }
                    // It came with an empty text, and goes back with one.
                    (Some(signature), None) if item.get("thought").is_none() => {
                        parts.push(json!({ "text": "", "thoughtSignature": signature }));
                    }
                    _ => parts.push(item.clone()),
                }
            } else if let Some(call) = segment.as_call() {
                parts.push(json!({ "functionCall": {
                    "id": call.id(), "name": self.tools.names.wire(&call.name),
                    "args": call.args_object(),
                }}));
            } else {
                parts.extend(self.part(segment));
            }
        }
        self.sign_first_call(&mut parts);
        parts
    }

    /// A call that another model made has no signature, which the API wants on
    /// the first call of a reply.
    fn sign_first_call(&self, parts: &mut [Value]) {
        let first = parts.iter_mut().find(|p| p.get("functionCall").is_some());
        if let Some(first) = first
            && wire::signs_calls(&self.config.model)
            && first.get("thoughtSignature").is_none()
        {
            first["thoughtSignature"] = wire::UNSIGNED_CALL.into();
        }
    }

    /// Responses first, in the order of the calls; media of tools after them.
    fn results(&mut self, segments: &[ContentSegment]) -> Vec<Value> {
        let mut parts = Vec::new();
        let mut media = Vec::new();
        for segment in segments {
            if let ContentSegment::ToolResult { tool_result } = segment {
                parts.push(self.result(tool_result, &mut media));
            }
        }
        parts.extend(media);
        parts
    }

    fn result(&mut self, result: &ToolResult, media: &mut Vec<Value>) -> Value {
        let mut words: Vec<String> = Vec::new();
        for segment in &result.content {
            match segment.as_media() {
                None => words.extend(as_text(segment)),
                Some((kind, medium)) => {
                    words.push(format!("[{kind} {} follows]", media.len() + 1));
                    media.push(self.media(kind, medium));
                }
            }
        }
        if words.is_empty() {
            words.push(NO_OUTPUT.into());
        }
        let key = match result.is_error {
            true => "error",
            false => "output",
        };
        json!({ "functionResponse": {
            "id": result.id, "name": self.tools.names.wire(&result.name),
            "response": { key: words.join("\n") },
        }})
    }
}
