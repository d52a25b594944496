//! What the adapters share when they read a stream.

use super::Event;
use crate::pain::AgentPain;
use serde_json::{Map, Value};

/// Reads an API's frames into events. Pure: it is handed frames, and told when
/// the stream ended.
pub(crate) trait Decoder: Send {
    /// Takes one frame.
    fn frame(&mut self, frame: &str, out: &mut Vec<Event>) -> Result<(), AgentPain>;

    /// Whether the API has said that nothing more comes.
    fn done(&self) -> bool;

    /// The stream ended. An error when the API had not said that it was done.
    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), AgentPain>;
}

/// A frame as JSON. The parser itself refuses what is nested too deeply.
pub(crate) fn json(frame: &str) -> Result<Value, AgentPain> {
    serde_json::from_str(frame).map_err(|error| AgentPain::unreadable(error, frame))
}

/// The stream ended too early.
pub(crate) fn cut_off() -> AgentPain {
    AgentPain::Network("the stream ended before the model was done".into())
}

/// The text at `key`, when it is a text that says something.
pub(crate) fn text(value: &Value, key: &str) -> Option<String> {
    value
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .map(String::from)
}

/// The number at `pointer`, or nought.
pub(crate) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// What an API's error body says: `{"error":{"message":…}}`, `{"error":"…"}`,
/// `{"message":…}`, or a list of one of them; or what is wrong with which field.
pub(crate) fn error_message(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    error
        .as_str()
        .or_else(|| error.get("message").and_then(Value::as_str))
        .or_else(|| body.get("message").and_then(Value::as_str))
        .map(|message| crate::pain::excerpt(message, 1000).to_owned())
        .or_else(|| wrong_fields(body.get("message").unwrap_or(body)))
}

/// `{"detail":[{"loc":["body","x"],"msg":…}]}`, as servers in Python have it.
fn wrong_fields(body: &Value) -> Option<String> {
    let wrong = |detail: &Value| {
        let place: Vec<String> = detail.get("loc")?.as_array()?.iter().map(plain).collect();
        Some(format!("{}: {}", place.join("."), text(detail, "msg")?))
    };
    let details = body.get("detail")?.as_array()?;
    let all: Vec<String> = details.iter().take(5).filter_map(wrong).collect();
    (!all.is_empty()).then(|| crate::pain::excerpt(&all.join("; "), 1000).to_owned())
}

/// A value without the quotes of a text.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), String::from)
}

/// Arguments as text: some servers send an object where a text belongs.
pub(crate) fn arguments(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Puts the next piece of a field to what came before: texts and lists grow,
/// objects field by field.
pub(crate) fn grow(old: &mut Value, more: &Value) {
    match (old, more) {
        (Value::String(old), Value::String(more)) => old.push_str(more),
        (Value::Array(old), Value::Array(more)) => old.extend(more.iter().cloned()),
        (Value::Object(old), Value::Object(more)) => {
            for (key, value) in more {
                grow(old.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (old, more) => *old = more.clone(),
    }
}

/// Puts those fields of `object` that are not `known` to what was kept before.
pub(crate) fn keep_unknown(kept: &mut Map<String, Value>, object: &Value, known: &[&str]) {
    for (key, value) in object.as_object().into_iter().flatten() {
        if !known.contains(&key.as_str()) && !value.is_null() {
            grow(kept.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Tells the fields of `object` that are not `known`, for the metadata.
pub(crate) fn extras(object: &Value, known: &[&str], out: &mut Vec<Event>) {
    for (key, value) in object.as_object().into_iter().flatten() {
        if !known.contains(&key.as_str()) && !value.is_null() {
            out.push(Event::Extra(key.clone(), value.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_is_read_in_every_shape() {
        let detail =
            json!({ "detail": [{ "loc": ["body", "stream_options", 0], "msg": "not permitted" }] });
        for (body, message) in [
            (json!({ "error": { "message": "a" } }), "a"),
            (json!({ "error": "b" }), "b"),
            (json!([{ "error": { "message": "c" } }]), "c"),
            (json!({ "object": "error", "message": "d" }), "d"),
            (
                json!({ "object": "error", "message": detail }),
                "body.stream_options.0: not permitted",
            ),
            (detail, "body.stream_options.0: not permitted"),
        ] {
            assert_eq!(error_message(&body).as_deref(), Some(message));
        }
        assert_eq!(error_message(&json!({ "detail": "x" })), None);
    }
}
