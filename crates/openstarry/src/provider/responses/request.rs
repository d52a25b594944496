//! The request body: the conversation as a list of items.

use crate::pain::AgentPain;
use crate::provider::api::Api;
use crate::provider::names::NameRule;
use crate::provider::wire::{self, NO_OUTPUT, Notes, Request, WireTools, as_text, own_item};
use crate::provider::{Context, ProviderConfig};
use crate::segment::{ContentSegment, Media, MediaKind, Message, Role, ToolResult};
use serde_json::{Map, Value, json};

pub(super) fn build(api: &Api, prompt: &str, context: &Context) -> Result<Request, AgentPain> {
    let config = &api.config;
    let tools = api.tools.get(
        &context.tools,
        NameRule::Plain,
        |name, spec| {
            json!({
                "type": "function", "name": name, "description": spec.description,
                "parameters": spec.parameters, "strict": false,
            })
        },
        Value::Array,
    )?;
    let mut writer = Writer {
        config,
        name: &api.name,
        tools: &tools,
        notes: Notes::default(),
        out: Vec::new(),
    };
    for message in context.with_prompt(prompt) {
        writer.message(&message);
    }
    let Writer { notes, out, .. } = writer;

    let mut rest = Map::new();
    rest.insert("model".into(), config.model.clone().into());
    if !context.system.is_empty() {
        rest.insert("instructions".into(), context.system.clone().into());
    }
    rest.insert("input".into(), out.into());
    rest.insert("stream".into(), true.into());
    rest.insert("store".into(), false.into());
    rest.insert("include".into(), json!(["reasoning.encrypted_content"]));
    if let Some(schema) = context.output.as_deref() {
        let format =
            json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": false });
        rest.insert("text".into(), json!({ "format": format }));
    }
    if let Some(most) = context.output_limit(config.max_output_tokens) {
        rest.insert("max_output_tokens".into(), most.into());
    }
    if let (true, true, Some(json)) = (config.base_url.is_none(), config.cache, &tools.json) {
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
            Role::User => {
                let content = self.content(&message.segments);
                self.user(content);
            }
            Role::System => self.observation(&message.segments),
            Role::Assistant => self.assistant(&message.segments),
            Role::Tool => self.results(&message.segments),
        }
    }

    /// A message of the user. It joins the one before it.
    fn user(&mut self, content: Vec<Value>) {
        wire::join(&mut self.out, "user", "content", content);
        if let Some(Value::Object(last)) = self.out.last_mut()
            && !last.contains_key("type")
        {
            last.insert("type".into(), "message".into());
        }
    }

    /// What the core observed goes with the result it is about, or else to the
    /// user's words.
    fn observation(&mut self, segments: &[ContentSegment]) {
        let part = json!({ "type": "input_text", "text": wire::observation(segments) });
        let result = self.out.last_mut();
        match result.filter(|last| last["type"] == "function_call_output") {
            Some(result) => {
                let mut output = match result["output"].take() {
                    Value::Array(parts) => parts,
                    text => vec![json!({ "type": "input_text", "text": text })],
                };
                output.push(part);
                result["output"] = output.into();
            }
            None => self.user(vec![part]),
        }
    }

    fn content(&mut self, segments: &[ContentSegment]) -> Vec<Value> {
        let part = |segment: &ContentSegment| {
            let text = match segment.as_media() {
                Some((kind, media)) => match self.image(kind, media) {
                    Ok(part) => return Some(part),
                    Err(why) => self.notes.left_out(kind, media, &why),
                },
                None => as_text(segment)?,
            };
            Some(json!({ "type": "input_text", "text": text }))
        };
        segments.iter().filter_map(part).collect()
    }

    fn image(&self, kind: MediaKind, media: &Media) -> Result<Value, String> {
        if kind != MediaKind::Image || !self.config.takes(kind) {
            return Err(format!("{} takes no {kind}", self.config.model));
        }
        Ok(json!({ "type": "input_image", "image_url": media.as_url(), "detail": "auto" }))
    }

    fn assistant(&mut self, segments: &[ContentSegment]) {
        let first = self.out.len();
        for segment in segments {
            if let Some(item) = own_item(segment, self.name) {
                match (item.get("fields"), self.out[first..].last_mut()) {
                    (Some(Value::Object(fields)), Some(Value::Object(last))) => {
                        wire::merge(last, fields);
                    }
                    (Some(_), _) => {}
                    (None, _) => self.out.push(item.clone()),
                }
            } else if let Some(call) = segment.as_call() {
                self.out.push(json!({
                    "type": "function_call", "call_id": NameRule::Plain.id(call.id()),
                    "name": self.tools.names.wire(&call.name),
                    "arguments": call.args_object().to_string(),
                }));
            } else {
                let text = match segment.as_media() {
                    // What the model drew goes back as the item that it came with.
                    Some(_) => None,
                    None => as_text(segment),
                };
                self.out.extend(text.map(|text| {
                    json!({
                        "type": "message", "role": "assistant",
                        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
                    })
                }));
            }
        }
        // A thought belongs to what follows it; one that was broken off has nothing.
        while self.out.len() > first && self.out.last().is_some_and(|i| i["type"] == "reasoning") {
            self.out.pop();
        }
    }

    fn results(&mut self, segments: &[ContentSegment]) {
        for segment in segments {
            if let ContentSegment::ToolResult { tool_result } = segment {
                let output = self.output(tool_result);
                self.out.push(json!({
                    "type": "function_call_output",
                    "call_id": NameRule::Plain.id(&tool_result.id), "output": output,
                }));
            }
        }
    }

    /// A text, or parts where there are pictures.
    fn output(&mut self, result: &ToolResult) -> Value {
        let mut parts = self.content(&result.content);
        if parts.is_empty() {
            parts.push(json!({ "type": "input_text", "text": NO_OUTPUT }));
        }
        if result.is_error {
            parts.insert(0, json!({ "type": "input_text", "text": "error:" }));
        }
        let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
        match texts {
            Some(texts) => texts.join("\n").into(),
            None => parts.into(),
        }
    }
}
