//! The arguments of a slash command, read as a person means them. Pure.

use crate::tool::ToolSpec;
use serde_json::{Map, Value};

/// A JSON object; or `name=value` pairs, whose values go on to the next name;
/// or values alone, which fill the required parameters in their order, the last
/// one taking the rest. Quotes keep a value together.
pub(super) fn arguments(text: &str, spec: &ToolSpec) -> Value {
    if text.starts_with('{')
        && let Ok(value @ Value::Object(_)) = serde_json::from_str(text)
    {
        return value;
    }
    let parameters = Parameters::of(spec);
    let mut args = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, value, after) = match parameters.named(rest, &args) {
            Some(name) => {
                let value = &rest[name.len() + 1..];
                let end = parameters.end_of_value(value, name, &args);
                (name, &value[..end], &value[end..])
            }
            None => {
                let Some((name, last)) = parameters.next_positional(&args) else {
                    break;
                };
                let end = match last {
                    true => parameters.end_of_value(rest, name, &args),
                    false => token(rest),
                };
                (name, &rest[..end], &rest[end..])
            }
        };
        let schema = parameters.properties.and_then(|known| known.get(name));
        let value = typed(&unquoted(value.trim()), schema);
        args.insert(name.to_owned(), value);
        rest = after.trim_start();
    }
    args.into()
}

/// What a tool takes.
struct Parameters<'a> {
    properties: Option<&'a Map<String, Value>>,
    required: Vec<&'a str>,
}

impl<'a> Parameters<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        let required = spec.parameters.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        Self {
            properties: spec.parameters.get("properties").and_then(Value::as_object),
            required: required.collect(),
        }
    }

    /// The parameter that `text` begins by naming, unless it has its value.
    fn named(&self, text: &str, taken: &Map<String, Value>) -> Option<&'a str> {
        let (word, _) = text.split_once('=')?;
        let (name, _) = self.properties?.get_key_value(word)?;
        (!taken.contains_key(word)).then_some(name)
    }

    /// The parameter that the next value without a name is for, and whether it
    /// is the last such.
    fn next_positional(&self, taken: &Map<String, Value>) -> Option<(&'a str, bool)> {
        let free = |name: &&str| !taken.contains_key(*name);
        let mut left = self.required.iter().copied().filter(free);
        if let Some(name) = left.next() {
            return Some((name, left.next().is_none()));
        }
        let mut optional = self.properties?.keys().map(String::as_str).filter(free);
        Some((optional.next()?, true))
    }

    /// Where the value of `name` ends: at its closing quote, or where another
    /// parameter is named.
    fn end_of_value(&self, text: &str, name: &str, taken: &Map<String, Value>) -> usize {
        let ends = |at: usize| {
            let next = text[at..].trim_start();
            let other = self.named(next, taken).filter(|other| *other != name);
            next.is_empty() || other.is_some()
        };
        if let Some(end) = quoted(text).filter(|end| ends(*end)) {
            return end;
        }
        let mut at = 0;
        loop {
            at += token(&text[at..]);
            if ends(at) {
                return at;
            }
            at = text.len() - text[at..].trim_start().len();
        }
    }
}

/// The length of the first word, quotes included.
fn token(text: &str) -> usize {
    quoted(text).unwrap_or_else(|| text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// The length of the quoted word that `text` begins with. An apostrophe within
/// a word opens no quote, and one that is never closed is only a character.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            let end = at + 1;
            let closed = text[end..].chars().next().is_none_or(char::is_whitespace);
            return closed.then_some(end);
        }
        escaped = quote == '"' && c == '\\' && !escaped;
    }
    None
}

/// A value without the quotes around it.
fn unquoted(value: &str) -> String {
    if quoted(value) != Some(value.len()) {
        return value.to_owned();
    }
    let inner = &value[1..value.len() - 1];
    if value.starts_with('\'') {
        return inner.to_owned();
    }
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = chars.next_if(|next| c == '\\' && matches!(next, '"' | '\\'));
        plain.push(escaped.unwrap_or(c));
    }
    plain
}

/// A word as the type its schema wants; text where it is none.
fn typed(word: &str, schema: Option<&Value>) -> Value {
    let kind = match schema.and_then(|schema| schema.get("type")) {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("integer" | "number" | "boolean" | "array" | "object") => {
            serde_json::from_str(word).unwrap_or_else(|_| word.into())
        }
        _ => word.into(),
    }
}
