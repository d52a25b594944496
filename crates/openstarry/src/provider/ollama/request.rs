//! The request body.

use crate::pain::AgentPain;
use crate::provider::api::Api;
use crate::provider::decode;
use crate::provider::names::NameRule;
use crate::provider::wire::{self, NO_OUTPUT, Notes, Request, as_text, own_item};
use crate::provider::{Context, ProviderConfig};
use crate::segment::{ContentSegment, Media, MediaData, MediaKind, Message, Role};
use serde_json::{Map, Value, json};

pub(super) fn build(api: &Api, prompt: &str, context: &Context) -> Result<Request, AgentPain> {
    let config = &api.config;
    let tools = api.tools.get(
        &context.tools,
        NameRule::Any,
        wire::function_tool,
        Value::Array,
    )?;
    let mut writer = Writer {
        config,
        name: &api.name,
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
    if let Some(schema) = context.output.as_deref() {
        rest.insert("format".into(), schema.clone());
    }
    let mut options = Map::new();
    if let Some(most) = context.output_limit(config.max_output_tokens) {
        options.insert("num_predict".into(), most.into());
    }
    // The server's own window is small, and it cuts without a word: it is told what we count on.
    options.insert("num_ctx".into(), config.context().into());
    rest.insert("options".into(), options.into());
    Request::new(rest, &config.options, &tools, true, notes)
}

struct Writer<'a> {
    config: &'a ProviderConfig,
    name: &'a str,
    notes: Notes,
    out: Vec<Value>,
}

impl Writer<'_> {
    fn message(&mut self, message: &Message) {
        match message.role {
            Role::User => self.user(&message.segments),
            Role::System => self.observation(&message.segments),
            Role::Assistant => self.assistant(&message.segments),
            Role::Tool => self.results(&message.segments),
        }
    }

    fn user(&mut self, segments: &[ContentSegment]) {
        let (content, images) = self.content(segments);
        self.user_said(content, images);
    }

    /// Templates want the user and the assistant by turns.
    fn user_said(&mut self, content: String, images: Vec<String>) {
        if content.is_empty() && images.is_empty() {
            return;
        }
        match self.out.last_mut().filter(|last| last["role"] == "user") {
            Some(last) => {
                let before = last["content"].as_str().unwrap_or_default();
                last["content"] = [before, &content]
                    .into_iter()
                    .filter(|text| !text.is_empty())
                    .collect::<Vec<_>>()
                    .join("\n\n")
                    .into();
                if let Value::Object(last) = last {
                    let all = last.entry("images").or_insert_with(|| json!([]));
                    decode::grow(all, &json!(images));
                    if all.as_array().is_some_and(Vec::is_empty) {
                        last.remove("images");
                    }
                }
            }
            None => {
                let mut message = json!({ "role": "user", "content": content });
                if !images.is_empty() {
                    message["images"] = images.into();
                }
                self.out.push(message);
            }
        }
    }

    /// What the core observed goes with the results it is about, or else to the
    /// user's words: templates take one system message, the first.
    fn observation(&mut self, segments: &[ContentSegment]) {
        let text = wire::observation(segments);
        match self.out.last_mut().filter(|last| last["role"] == "tool") {
            Some(result) => {
                let before = result["content"].as_str().unwrap_or_default();
                result["content"] = format!("{before}\n\n{text}").into();
            }
            None => self.user_said(text, Vec::new()),
        }
    }

    fn assistant(&mut self, segments: &[ContentSegment]) {
        let (content, images) = self.content(segments);
        let mut message = Map::new();
        let mut calls: Vec<Value> = Vec::new();
        for segment in segments {
            if let Some(call) = segment.as_call() {
                calls.push(json!({ "function": {
                    "name": call.name, "arguments": call.args_object(),
                }}));
            } else if let ContentSegment::Reasoning { text } = segment {
                message.insert("thinking".into(), text.clone().into());
            } else if let Some(Value::Object(fields)) = own_item(segment, self.name) {
                wire::merge(&mut message, fields);
            }
        }
        if content.is_empty() && images.is_empty() && calls.is_empty() {
            return;
        }
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), content.into());
        if !images.is_empty() {
            message.insert("images".into(), images.into());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        self.out.push(message.into());
    }

    /// The words, with a note for each medium that cannot go, and the pictures.
    fn content(&mut self, segments: &[ContentSegment]) -> (String, Vec<String>) {
        let mut words: Vec<String> = Vec::new();
        let mut images = Vec::new();
        for segment in segments {
            match segment.as_media() {
                None => words.extend(as_text(segment)),
                Some((kind, media)) => match self.image(kind, media) {
                    Ok(data) => images.push(data),
                    Err(why) => words.push(self.notes.left_out(kind, media, &why)),
                },
            }
        }
        (words.join("\n"), images)
    }

    fn image(&self, kind: MediaKind, media: &Media) -> Result<String, String> {
        if kind != MediaKind::Image || !self.config.takes(kind) {
            return Err(format!("{} takes no {kind}", self.config.model));
        }
        match &media.data {
            MediaData::Base64(data) => Ok(data.clone()),
            MediaData::Url(url) => Err(format!("the API takes no images by URL: {url}")),
        }
    }

    /// Models read pictures in messages of the user alone, so those that tools
    /// gave follow the last result.
    fn results(&mut self, segments: &[ContentSegment]) {
        let mut all_images = Vec::new();
        for segment in segments {
            let ContentSegment::ToolResult { tool_result } = segment else {
                continue;
            };
            let (mut content, images) = self.content(&tool_result.content);
            if content.is_empty() && images.is_empty() {
                content.push_str(NO_OUTPUT);
            }
            if tool_result.is_error {
                content.insert_str(0, "error: ");
            }
            if !images.is_empty() {
                content.push_str(&format!("\n[{} images follow]", images.len()));
                all_images.extend(images);
            }
            self.out.push(json!({
                "role": "tool", "tool_name": tool_result.name, "content": content,
            }));
        }
        if !all_images.is_empty() {
            let about = "The images of the results above, in order.";
            self.user_said(about.into(), all_images);
        }
    }
}
