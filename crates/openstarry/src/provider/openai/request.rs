//! The request body. Many servers read it with a template that wants one system
//! message, first, and then the user and the assistant by turns; so it is
//! written for all of them.

use super::refusals::Refusals;
use crate::pain::AgentPain;
use crate::provider::api::Api;
use crate::provider::names::NameRule;
use crate::provider::wire::{self, NO_OUTPUT, Notes, Request, WireTools, as_text, own_item};
use crate::provider::{Context, ProviderConfig};
use crate::segment::{ContentSegment, Media, MediaData, MediaKind, Message, Role, ToolResult};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Stands between results and a user who speaks before the model has answered.
const AFTER_RESULTS: &str = "(Those were the results.)";
/// What a reply without thoughts had to think, for servers that insist.
const NO_THOUGHT: &str = " ";
/// The length of a call's id that Mistral's models take, and no other.
const SHORT_ID: usize = 9;
/// The longest id of a call that OpenAI takes.
const MAX_ID: usize = 40;
/// The mark of thoughts that came as parts of the content.
pub(super) const THINKING_PART: &str = "thinking";

pub(super) fn build(
    api: &Api,
    refusals: &Refusals,
    prompt: &str,
    context: &Context,
) -> Result<Request, AgentPain> {
    let config = &api.config;
    let tools = api.tools.get(
        &context.tools,
        NameRule::Plain,
        wire::function_tool,
        Value::Array,
    )?;
    let messages = context.with_prompt(prompt);
    let mut writer = Writer {
        config,
        name: &api.name,
        tools: &tools,
        reasoning: reasoning_field(&messages, api),
        short_ids: refusals.usual_ids() || is_mistrals(&config.model),
        notes: Notes::default(),
        out: Vec::new(),
    };
    if !context.system.is_empty() {
        writer
            .out
            .push(json!({ "role": "system", "content": context.system }));
    }
    for message in &messages {
        writer.message(message);
    }
    let Writer { notes, mut out, .. } = writer;
    out.iter_mut().for_each(plain_where_it_can_be);

    let mut rest = Map::new();
    rest.insert("model".into(), config.model.clone().into());
    rest.insert("messages".into(), out.into());
    rest.insert("stream".into(), true.into());
    if !refusals.stream_options() {
        rest.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    if let Some(schema) = context.output.as_deref() {
        let format = json!({ "name": "answer", "schema": schema, "strict": false });
        rest.insert(
            "response_format".into(),
            json!({ "type": "json_schema", "json_schema": format }),
        );
    }
    if let Some(most) = context.output_limit(config.max_output_tokens) {
        let key = match config.has_openai_models() || refusals.max_tokens() {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        rest.insert(key.into(), most.into());
    }
    if let (true, true, Some(json)) = (config.is_at_openai(), config.cache, &tools.json) {
        let key = format!("openstarry-{:016x}", crate::hash::fnv([json.get()]));
        rest.insert("prompt_cache_key".into(), key.into());
    }
    Request::new(rest, &config.options, &tools, true, notes)
}

/// The field in which this server takes thoughts back: the one it sent them in, or
/// the one that its makers insist on.
fn reasoning_field(messages: &[Message], api: &Api) -> Option<String> {
    let segments = messages.iter().flat_map(|message| &message.segments);
    let sent = segments
        .filter_map(|segment| own_item(segment, &api.name)?.get("reasoning")?.as_str())
        .next();
    let base = api.config.base_url.as_deref().unwrap_or_default();
    let insists = || base.contains("api.deepseek.com") || base.contains("api.moonshot.");
    sent.map(String::from)
        .or_else(|| insists().then(|| "reasoning_content".into()))
}

/// Whether the name is one of Mistral's models.
fn is_mistrals(model: &str) -> bool {
    let model = model.to_lowercase();
    ["stral", "xtral"].iter().any(|part| model.contains(part))
}

/// Parts that are all text become one text, which every server reads.
fn plain_where_it_can_be(message: &mut Value) {
    let Some(parts) = message["content"].as_array() else {
        return;
    };
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| part["text"].as_str().filter(|_| part["type"] == "text"))
        .collect();
    if let Some(texts) = texts {
        message["content"] = texts.join("\n\n").into();
    }
}

struct Writer<'a> {
    config: &'a ProviderConfig,
    name: &'a str,
    tools: &'a WireTools,
    reasoning: Option<String>,
    /// Whether ids of calls are nine letters and digits, as Mistral's models want them.
    short_ids: bool,
    notes: Notes,
    out: Vec<Value>,
}

impl Writer<'_> {
    fn message(&mut self, message: &Message) {
        match message.role {
            Role::User => {
                let parts = message.segments.iter();
                let parts = parts.filter_map(|segment| self.part(segment)).collect();
                self.user(parts);
            }
            Role::System => self.observation(&message.segments),
            Role::Assistant => self.assistant(&message.segments),
            Role::Tool => self.results(&message.segments),
        }
    }

    /// A message of the user. It joins the one before it.
    fn user(&mut self, parts: Vec<Value>) {
        if self.last_role() == Some("tool") && !parts.is_empty() {
            let mut message = Map::new();
            self.think(&mut message, "");
            message.insert("role".into(), "assistant".into());
            message.insert("content".into(), AFTER_RESULTS.into());
            self.out.push(message.into());
        }
        wire::join(&mut self.out, "user", "content", parts);
    }

    /// What the core observed goes with the results it is about, or else to the
    /// user's words: no server minds it there.
    fn observation(&mut self, segments: &[ContentSegment]) {
        let text = wire::observation(segments);
        match self.out.last_mut().filter(|last| last["role"] == "tool") {
            Some(result) => {
                let before = result["content"].as_str().unwrap_or_default();
                result["content"] = format!("{before}\n\n{text}").into();
            }
            None => self.user(vec![json!({ "type": "text", "text": text })]),
        }
    }

    fn last_role(&self) -> Option<&str> {
        self.out.last()?["role"].as_str()
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
        let mut thoughts: Vec<&str> = Vec::new();
        let mut calls: Vec<Value> = Vec::new();
        for segment in segments {
            if let Some(call) = segment.as_call() {
                // Some servers read the arguments of old calls: they must be JSON.
                calls.push(json!({ "id": self.call_id(call.id()), "type": "function", "function": {
                    "name": self.tools.names.wire(&call.name), "arguments": call.args_object().to_string(),
                }}));
            } else if let Some((kind, media)) = segment.as_media() {
                words.push(self.notes.left_out(kind, media, "the API takes none back"));
            } else if let ContentSegment::Reasoning { text } = segment {
                thoughts.push(text);
            } else if let Some(text) = as_text(segment) {
                words.push(text);
            }
        }
        let own = || segments.iter().filter_map(|s| own_item(s, self.name));
        let mut parts: Vec<Value> = Vec::new();
        for item in own() {
            parts.extend(item.get("part").cloned());
            if let Some(Value::Object(fields)) = item.get("message") {
                wire::merge(&mut message, fields);
            }
            let at = item.get("call").and_then(Value::as_u64);
            if let (Some(Value::Object(call)), Some(Value::Object(fields))) = (
                at.and_then(|at| calls.get_mut(at as usize)),
                item.get("fields"),
            ) {
                wire::merge(call, fields);
            }
        }
        if words.is_empty()
            && parts.is_empty()
            && calls.is_empty()
            && message.get("audio").is_none()
        {
            return;
        }
        self.sign_first_call(&mut calls);
        let thought = thoughts.join("\n\n");
        match own().find_map(|item| item.get("reasoning")?.as_str()) {
            // Mistral's thoughts are parts of the content.
            Some(THINKING_PART) => {
                let thought = json!([{ "type": "text", "text": thought }]);
                parts.insert(0, json!({ "type": "thinking", "thinking": thought }));
            }
            Some(field) => {
                message.insert(field.into(), thought.into());
            }
            None => self.think(&mut message, &thought),
        }
        message.insert("role".into(), "assistant".into());
        let content = match words.is_empty() {
            _ if !parts.is_empty() => {
                let words = words
                    .into_iter()
                    .map(|text| json!({ "type": "text", "text": text }));
                let thinking = |part: &Value| part["type"] == "thinking";
                let (mut first, rest): (Vec<Value>, Vec<Value>) =
                    parts.into_iter().partition(thinking);
                first.extend(words.chain(rest));
                first.into()
            }
            true => Value::Null,
            false => words.join("\n").into(),
        };
        message.insert("content".into(), content);
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        self.out.push(message.into());
    }

    /// A thought for a server that wants one with every call, or with every message.
    fn think(&self, message: &mut Map<String, Value>, thought: &str) {
        let field = self.reasoning.as_deref().filter(|f| *f != THINKING_PART);
        if let Some(field) = field {
            let thought = if thought.is_empty() {
                NO_THOUGHT
            } else {
                thought
            };
            message.insert(field.into(), thought.into());
        }
    }

    /// The id of a call as this server takes it: Mistral's want nine letters and
    /// digits, also where the server itself made others; OpenAI has a longest.
    fn call_id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        let fits = match self.short_ids {
            true => id.len() == SHORT_ID && id.chars().all(|c| c.is_ascii_alphanumeric()),
            false => id.len() <= MAX_ID,
        };
        match fits {
            true => Cow::Borrowed(id),
            false => Cow::Owned(crate::hash::letters(id, SHORT_ID)),
        }
    }

    /// Gemini behind this API wants a signature on the first call; one that
    /// another model made has none.
    fn sign_first_call(&self, calls: &mut [Value]) {
        if let Some(first) = calls.first_mut()
            && wire::signs_calls(&self.config.model)
            && first.pointer("/extra_content/google").is_none()
        {
            first["extra_content"] =
                json!({ "google": { "thought_signature": wire::UNSIGNED_CALL } });
        }
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
                "role": "tool", "tool_call_id": self.call_id(&tool_result.id), "content": content,
            }));
        }
        self.user(media);
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
        match words.is_empty() {
            true => NO_OUTPUT.into(),
            false => words.join("\n"),
        }
    }
}
