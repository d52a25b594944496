//! What the adapters share when they write a request.

use super::names::{NameMap, NameRule};
use crate::pain::AgentPain;
use crate::segment::{ContentSegment, Media, MediaKind};
use crate::tool::{ToolSpec, ToolView};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The tools of a request in an API's words.
#[derive(Debug)]
pub(crate) struct WireTools {
    pub(crate) names: NameMap,
    /// `None` when there are no tools.
    pub(crate) json: Option<Box<RawValue>>,
    pub(crate) fingerprint: u64,
}

/// The last tools an adapter translated, so that the same set is translated once
/// and sent byte for byte the same, as the caches of APIs want it.
#[derive(Debug, Default)]
pub(crate) struct ToolCache(Mutex<Option<Arc<WireTools>>>);

impl ToolCache {
    /// The translated tools. `list` writes the whole list from the single tools.
    pub(crate) fn get(
        &self,
        view: &ToolView,
        rule: NameRule,
        one: impl Fn(&str, &ToolSpec) -> Value,
        list: impl FnOnce(Vec<Value>) -> Value,
    ) -> Result<Arc<WireTools>, AgentPain> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tools) = slot.as_ref()
            && tools.fingerprint == view.fingerprint()
        {
            return Ok(Arc::clone(tools));
        }
        let names = NameMap::new(rule, view.names());
        let all: Vec<Value> = view
            .specs()
            .map(|spec| one(&names.wire(&spec.name), spec))
            .collect();
        let json = match all.is_empty() {
            true => None,
            false => Some(raw(&list(all))?),
        };
        let tools = Arc::new(WireTools {
            names,
            json,
            fingerprint: view.fingerprint(),
        });
        *slot = Some(Arc::clone(&tools));
        Ok(tools)
    }
}

fn raw(value: &Value) -> Result<Box<RawValue>, AgentPain> {
    serde_json::value::to_raw_value(value)
        .map_err(|error| AgentPain::Config(format!("tools cannot be written: {error}")))
}

/// A request body whose tools were written before.
#[derive(Serialize)]
pub(crate) struct Body<'a> {
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<&'a RawValue>,
}

impl Body<'_> {
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, AgentPain> {
        serde_json::to_vec(self)
            .map_err(|error| AgentPain::Config(format!("the request cannot be written: {error}")))
    }
}

/// A request, ready to send.
pub(crate) struct Request {
    pub(crate) body: Vec<u8>,
    pub(crate) tools: Arc<WireTools>,
    pub(crate) warnings: Vec<String>,
}

impl Request {
    /// A body with the owner's options over it, and the tools where wanted.
    pub(crate) fn new(
        mut rest: Map<String, Value>,
        options: &Map<String, Value>,
        tools: &Arc<WireTools>,
        send_tools: bool,
        notes: Notes,
    ) -> Result<Self, AgentPain> {
        merge(&mut rest, options);
        let mut sent = tools.json.clone().filter(|_| send_tools);
        // Tools of the API's own, which the owner put into the options.
        if let (Some(Value::Array(own)), Some(ours)) = (rest.get("tools"), &sent) {
            let ours: Vec<Value> = serde_json::from_str(ours.get()).unwrap_or_default();
            sent = Some(raw(&ours.into_iter().chain(own.iter().cloned()).collect())?);
            rest.remove("tools");
        }
        let body = Body {
            rest,
            tools: sent.as_deref(),
        };
        Ok(Self {
            body: body.bytes()?,
            tools: Arc::clone(tools),
            warnings: notes.0,
        })
    }
}

/// Puts the owner's options over a body; objects are merged, other values replaced.
pub(crate) fn merge(body: &mut Map<String, Value>, options: &Map<String, Value>) {
    for (key, value) in options {
        match (body.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

/// What could not be sent as it was.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<String>);

impl Notes {
    /// The visible text that stands for a medium the model does not take.
    pub(crate) fn left_out(&mut self, kind: MediaKind, media: &Media, why: &str) -> String {
        let note = format!("[{kind} left out ({}): {why}]", media.mime_type);
        if !self.0.contains(&note) {
            self.0.push(note.clone());
        }
        note
    }
}

/// A tool as OpenAI and those who follow it write it.
pub(crate) fn function_tool(name: &str, spec: &ToolSpec) -> Value {
    json!({ "type": "function", "function": {
        "name": name, "description": spec.description, "parameters": spec.parameters,
    }})
}

/// What the core observed, for APIs where only the user can say it.
pub(crate) fn observation(segments: &[ContentSegment]) -> String {
    let text = crate::segment::joined_text(segments);
    format!("<system-observation>{text}</system-observation>")
}

/// Adds a message where roles must alternate: one of the same role as the last
/// joins it, so that results stay first in the message after their calls.
pub(crate) fn join(out: &mut Vec<Value>, role: &str, key: &str, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    match out.last_mut().filter(|last| last["role"] == role) {
        Some(last) => {
            if let Some(old) = last[key].as_array_mut() {
                old.extend(parts);
            }
        }
        None => out.push(json!({ "role": role, key: parts })),
    }
}

/// The signature that Gemini takes for a call it did not make itself.
pub(crate) const UNSIGNED_CALL: &str = "skip_thought_signature_validator";

/// Whether a model refuses calls without a signature: Gemini from 3 on.
pub(crate) fn signs_calls(model: &str) -> bool {
    let version = model.split("gemini-").nth(1);
    version.is_some_and(|version| !version.starts_with(['1', '2']))
}

/// What stands for a result without a word: some servers refuse empty content.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// The text by which a segment without a form of its own in an API is shown.
pub(crate) fn as_text(segment: &ContentSegment) -> Option<String> {
    match segment {
        ContentSegment::Text { text } if !text.is_empty() => Some(text.clone()),
        ContentSegment::Ui { ui } => Some(format!("[ui] {ui}")),
        _ => None,
    }
}

/// The items among `segment` that this provider sent itself.
pub(crate) fn own_item<'a>(segment: &'a ContentSegment, provider: &str) -> Option<&'a Value> {
    match segment {
        ContentSegment::Provider {
            provider: from,
            item,
        } if from == provider => Some(item),
        _ => None,
    }
}
