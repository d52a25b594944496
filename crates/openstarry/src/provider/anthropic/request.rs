//! The request body.

use crate::pain::AgentPain;
use crate::provider::api::Api;
use crate::provider::names::NameRule;
use crate::provider::wire::{self, NO_OUTPUT, Notes, Request, WireTools, as_text, own_item};
use crate::provider::{Context, ProviderConfig};
use crate::segment::{ContentSegment, Media, MediaData, MediaKind, Message, Role, ToolResult};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Of the four cache markers that the API takes, tools and instructions have one
/// each; these are on the conversation.
const MARKED_MESSAGES: usize = 2;
/// The API wants a limit; this one every current model takes.
const DEFAULT_MAX_TOKENS: u64 = 8192;

fn marker() -> Value {
    json!({ "type": "ephemeral" })
}

pub(super) fn build(api: &Api, prompt: &str, context: &Context) -> Result<Request, AgentPain> {
    let config = &api.config;
    let tools = api.tools.get(
        &context.tools,
        NameRule::Plain,
        |name, spec| {
            json!({ "name": name, "description": spec.description, "input_schema": spec.parameters })
        },
        |mut all| {
            // The marker on the last tool caches them all.
            if let (true, Some(last)) = (config.cache, all.last_mut()) {
                last["cache_control"] = marker();
            }
            Value::Array(all)
        },
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
    let Writer { notes, mut out, .. } = writer;
    if config.cache {
        mark(&mut out);
    }
    let options = options(config, &out);

    let mut rest = Map::new();
    rest.insert("model".into(), config.model.clone().into());
    let most = max_tokens(context, config, &options);
    rest.insert("max_tokens".into(), most.into());
    if !context.system.is_empty() {
        let mut block = json!({ "type": "text", "text": context.system });
        if config.cache {
            block["cache_control"] = marker();
        }
        rest.insert("system".into(), json!([block]));
    }
    rest.insert("messages".into(), out.into());
    rest.insert("stream".into(), true.into());
    Request::new(rest, &options, &tools, true, notes)
}

/// The limit. Thoughts count, so what they may take comes on top, unless the owner set it.
fn max_tokens(context: &Context, config: &ProviderConfig, options: &Map<String, Value>) -> u64 {
    let thoughts = options
        .get("thinking")
        .and_then(|thinking| thinking.get("budget_tokens")?.as_u64())
        .unwrap_or(0);
    match (context.max_output, config.max_output_tokens) {
        (Some(here), own) => (here + thoughts).min(own.unwrap_or(u64::MAX)),
        (None, Some(own)) => own,
        (None, None) => DEFAULT_MAX_TOKENS + thoughts,
    }
}

/// Marks the ends of the last messages of the user: the next request begins
/// with the same.
fn mark(messages: &mut [Value]) {
    let users = messages.iter_mut().rev();
    let users = users.filter(|message| message["role"] == "user");
    for message in users.take(MARKED_MESSAGES) {
        if let Some(last) = message["content"].as_array_mut().and_then(|c| c.last_mut()) {
            last["cache_control"] = marker();
        }
    }
}

/// The owner's options. Thinking is left out for a request within a turn that
/// another model began: the API wants the thought before its calls.
fn options<'a>(config: &'a ProviderConfig, messages: &[Value]) -> Cow<'a, Map<String, Value>> {
    let said = messages
        .iter()
        .rfind(|message| message["role"] == "assistant");
    let blocks = said.and_then(|message| message["content"].as_array());
    let calls = |block: &Value| block["type"] == "tool_use";
    let foreign = blocks
        .is_some_and(|blocks| blocks.iter().any(calls) && !blocks.first().is_some_and(is_thought));
    let within = messages.last().is_some_and(|last| {
        let first = last.pointer("/content/0/type");
        first.is_some_and(|kind| kind == "tool_result")
    });
    match foreign && within && config.options.contains_key("thinking") {
        false => Cow::Borrowed(&config.options),
        true => {
            let mut options = config.options.clone();
            options.remove("thinking");
            Cow::Owned(options)
        }
    }
}

fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
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
        let (role, blocks) = match message.role {
            Role::Assistant => ("assistant", self.assistant(&message.segments)),
            Role::Tool => ("user", self.results(&message.segments)),
            Role::User => ("user", self.plain(&message.segments)),
            Role::System => {
                let text = wire::observation(&message.segments);
                ("user", vec![json!({ "type": "text", "text": text })])
            }
        };
        wire::join(&mut self.out, role, "content", blocks);
    }

    fn plain(&mut self, segments: &[ContentSegment]) -> Vec<Value> {
        segments.iter().filter_map(|s| self.block(s)).collect()
    }

    fn block(&mut self, segment: &ContentSegment) -> Option<Value> {
        let text = match segment.as_media() {
            Some((kind, media)) => match self.image(kind, media) {
                Ok(block) => return Some(block),
                Err(why) => self.notes.left_out(kind, media, &why),
            },
            None => as_text(segment)?,
        };
        // The API refuses text that is blank.
        (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
    }

    /// The API takes words alone from a call that failed.
    fn words(&mut self, segments: &[ContentSegment]) -> Vec<Value> {
        let mut blocks = Vec::new();
        for segment in segments {
            match segment.as_media() {
                None => blocks.extend(self.block(segment)),
                Some((kind, media)) => {
                    let note = self.notes.left_out(kind, media, "the call failed");
                    blocks.push(json!({ "type": "text", "text": note }));
                }
            }
        }
        blocks
    }

    fn image(&self, kind: MediaKind, media: &Media) -> Result<Value, String> {
        if kind != MediaKind::Image || !self.config.takes(kind) {
            return Err(format!("{} takes no {kind}", self.config.model));
        }
        let source = match &media.data {
            MediaData::Url(url) => json!({ "type": "url", "url": url }),
            MediaData::Base64(data) => {
                json!({ "type": "base64", "media_type": media.mime_type, "data": data })
            }
        };
        Ok(json!({ "type": "image", "source": source }))
    }

    fn assistant(&mut self, segments: &[ContentSegment]) -> Vec<Value> {
        let mut blocks: Vec<Value> = Vec::new();
        let mut thought: Option<&str> = None;
        for segment in segments {
            if let ContentSegment::Reasoning { text } = segment {
                thought = Some(text);
            } else if let Some(item) = own_item(segment, self.name) {
                match (item.get("signature"), item.get("fields")) {
                    // A thought goes back with its signature, or not at all.
                    (Some(signature), fields) => {
                        let mut block = Map::new();
                        block.insert("type".into(), "thinking".into());
                        block.insert("thinking".into(), thought.take().unwrap_or("").into());
                        block.insert("signature".into(), signature.clone());
                        if let Some(Value::Object(fields)) = fields {
                            wire::merge(&mut block, fields);
                        }
                        blocks.push(block.into());
                    }
                    (None, Some(Value::Object(fields))) => {
                        if let Some(Value::Object(block)) = blocks.last_mut() {
                            wire::merge(block, fields);
                        }
                    }
                    (None, _) => blocks.push(item.clone()),
                }
            } else if let Some(call) = segment.as_call() {
                blocks.push(json!({
                    "type": "tool_use", "id": NameRule::Plain.id(call.id()),
                    "name": self.tools.names.wire(&call.name), "input": call.args_object(),
                }));
            } else if let Some((kind, media)) = segment.as_media() {
                let note = self.notes.left_out(kind, media, "the API takes none back");
                blocks.push(json!({ "type": "text", "text": note }));
            } else {
                blocks.extend(self.block(segment));
            }
        }
        // A thought that nothing follows was broken off; the API refuses it.
        while blocks.last().is_some_and(is_thought) {
            blocks.pop();
        }
        blocks
    }

    fn results(&mut self, segments: &[ContentSegment]) -> Vec<Value> {
        let mut blocks = Vec::new();
        for segment in segments {
            if let ContentSegment::ToolResult { tool_result } = segment {
                blocks.push(self.result(tool_result));
            }
        }
        blocks
    }

    fn result(&mut self, result: &ToolResult) -> Value {
        let mut content = match result.is_error {
            false => self.plain(&result.content),
            true => self.words(&result.content),
        };
        if content.is_empty() {
            content.push(json!({ "type": "text", "text": NO_OUTPUT }));
        }
        let mut block = json!({
            "type": "tool_result", "tool_use_id": NameRule::Plain.id(&result.id),
            "content": content,
        });
        if result.is_error {
            block["is_error"] = true.into();
        }
        block
    }
}
