//! Slash commands: the user's way to the same tools. Pure.

use crate::tool::{ToolSet, ToolSpec, nearest};
use serde_json::{Map, Value};

/// What a line that begins with a slash asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Slash {
    /// What exists.
    Help,
    /// The tools.
    Tools,
    /// Forget what was said, and start again after a stop.
    Reset,
    /// What the session has used up.
    Usage,
    /// Show the model less of what was said.
    Compact,
    /// Which model is asked, or which from now on.
    Model(Option<String>),
    /// A tool, with its arguments.
    Tool {
        /// Its name.
        name: String,
        /// The arguments, still to be checked.
        args: Value,
    },
    /// There is no such command.
    Unknown(String),
}

/// The commands that are no tools.
pub const OWN: [(&str, &str); 7] = [
    ("help", "what exists"),
    ("tools", "the tools, with their risk"),
    (
        "reset",
        "forget what was said, and start again after a stop",
    ),
    ("usage", "tokens and money used"),
    ("cost", "the same"),
    (
        "compact",
        "sum up what was said, so that the model has room again",
    ),
    ("model", "which model is asked; /model NAME takes another"),
];

/// Reads a line. `None` when it is no command; `//` at its start stands for a
/// slash that is meant for the model.
pub fn parse(line: &str, tools: &ToolSet) -> Option<Slash> {
    let line = line.trim();
    let rest = line
        .strip_prefix('/')
        .filter(|rest| !rest.starts_with('/'))?;
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some(match word {
        "" | "help" => Slash::Help,
        "tools" => Slash::Tools,
        "reset" => Slash::Reset,
        "usage" | "cost" => Slash::Usage,
        "compact" => Slash::Compact,
        "model" => Slash::Model(Some(rest.trim().to_owned()).filter(|name| !name.is_empty())),
        _ => match find(word, tools) {
            Some(spec) => Slash::Tool {
                name: spec.name.clone(),
                args: arguments(rest.trim(), spec),
            },
            None => Slash::Unknown(unknown(word, tools)),
        },
    })
}

/// A tool by its name, or by the last part of it where only one tool has that.
fn find<'a>(word: &str, tools: &'a ToolSet) -> Option<&'a ToolSpec> {
    if let Some(tool) = tools.get(word) {
        return Some(tool.spec());
    }
    let mut same = tools.iter().filter(|tool| short(&tool.spec().name) == word);
    match (same.next(), same.next()) {
        (Some(tool), None) => Some(tool.spec()),
        _ => None,
    }
}

/// The last part of a name: `read` of `fs.read`, `echo` of `mcp__x__echo`.
fn short(name: &str) -> &str {
    match name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
    {
        Some((_, tool)) => tool,
        None => name.rsplit('.').next().unwrap_or(name),
    }
}

/// All commands with a slash, for completion.
pub fn commands(tools: &ToolSet) -> Vec<String> {
    let own = OWN.iter().map(|(word, _)| (*word).to_owned());
    let tools = tools.iter().map(|tool| tool.spec().name.as_str());
    let taken = |word: &&str| OWN.iter().any(|(own, _)| own == word);
    let names: Vec<&str> = tools.collect();
    let unique = |word: &&str| names.iter().filter(|name| short(name) == *word).count() == 1;
    let shorts = names
        .iter()
        .map(|name| short(name))
        .filter(|w| !taken(w))
        .filter(unique);
    let mut all: Vec<String> = own
        .chain(shorts.map(String::from))
        .chain(names.iter().map(|name| (*name).to_owned()))
        .map(|word| format!("/{word}"))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn unknown(word: &str, tools: &ToolSet) -> String {
    let all = commands(tools);
    let near = nearest(word, all.iter().map(|name| name.trim_start_matches('/')), 3);
    let hint = match near.is_empty() {
        true => String::new(),
        false => format!(" Did you mean /{}?", near.join(", /")),
    };
    let most = 30;
    let list = all.iter().take(most).cloned().collect::<Vec<_>>().join(" ");
    let more = match all.len() > most {
        true => format!(" and {} more (/tools)", all.len() - most),
        false => String::new(),
    };
    format!("There is no /{word}.{hint} There are: {list}{more}")
}

/// Arguments: a JSON object; or `key=value` pairs; or values in the order of the
/// required parameters, the last of which takes the rest of the line.
fn arguments(text: &str, spec: &ToolSpec) -> Value {
    if text.starts_with('{')
        && let Ok(value @ Value::Object(_)) = serde_json::from_str(text)
    {
        return value;
    }
    let properties = spec.parameters.get("properties").and_then(Value::as_object);
    let empty = Map::new();
    let properties = properties.unwrap_or(&empty);
    let known = |word: &str| {
        let (key, value) = word.split_once('=')?;
        let schema = properties.get(key)?;
        Some((key.to_owned(), typed(value, schema)))
    };
    let pairs: Vec<_> = text.split_whitespace().map(known).collect();
    if !pairs.is_empty() && pairs.iter().all(Option::is_some) {
        return pairs.into_iter().flatten().collect::<Map<_, _>>().into();
    }
    let required = spec.parameters.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut order = required.clone();
    order.extend(
        properties
            .keys()
            .map(String::as_str)
            .filter(|key| !required.contains(key)),
    );
    let mut args = Map::new();
    let mut rest = text;
    for (at, key) in order.iter().enumerate() {
        if rest.is_empty() {
            break;
        }
        // The last required one takes all that is left.
        let last = at + 1 == required.len().max(1);
        let (word, after) = match last {
            true => (rest, ""),
            false => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        let schema = properties.get(*key).unwrap_or(&Value::Null);
        args.insert((*key).into(), typed(word, schema));
        rest = after.trim_start();
    }
    args.into()
}

/// A word as the type its schema wants; text where it is none.
fn typed(word: &str, schema: &Value) -> Value {
    let kind = match schema.get("type") {
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

#[cfg(test)]
#[path = "slash_tests.rs"]
mod tests;
