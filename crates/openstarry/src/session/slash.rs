//! Slash commands: the user's way to the same tools. Pure.

mod arguments;

use crate::tool::{ToolSet, ToolSpec, nearest};
use serde_json::Value;

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

/// What a line typed by the owner of the terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed<'a> {
    /// Words for the model.
    Words(&'a str),
    /// A command.
    Command(&'a str),
}

/// Tells words and commands apart. `//` at its start stands for a slash that is
/// meant for the model.
pub fn typed(line: &str) -> Typed<'_> {
    let line = line.trim();
    match line.strip_prefix('/') {
        Some(rest) if rest.starts_with('/') => Typed::Words(rest),
        Some(_) => Typed::Command(line),
        None => Typed::Words(line),
    }
}

/// Reads a command, with or without its slash.
pub fn parse(line: &str, tools: &ToolSet) -> Slash {
    let line = line.trim();
    let rest = line.strip_prefix('/').unwrap_or(line);
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match word {
        "" | "help" => Slash::Help,
        "tools" => Slash::Tools,
        "reset" => Slash::Reset,
        "usage" | "cost" => Slash::Usage,
        "compact" => Slash::Compact,
        "model" => Slash::Model(Some(rest.trim().to_owned()).filter(|name| !name.is_empty())),
        _ => match find(word, tools) {
            Some(spec) => Slash::Tool {
                name: spec.name.clone(),
                args: arguments::arguments(rest.trim(), spec),
            },
            None => Slash::Unknown(unknown(word, tools)),
        },
    }
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

#[cfg(test)]
#[path = "slash_tests.rs"]
mod tests;
