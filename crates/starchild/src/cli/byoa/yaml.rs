//! Writes `handler.yaml` and changes single keys of it; what else its owner wrote stays.

use crate::backend::{answer_in::AnswerIn, config::BackendConfig};
use std::path::PathBuf;

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
#[error("{}: the change does not fit: {why}", path.display())]
pub struct EditError {
    /// Which file.
    pub path: PathBuf,
    /// What to change.
    pub why: String,
}

/// A key and its value in YAML; nothing takes the key away.
pub type Change = (&'static str, Option<String>);

/// A scalar as YAML writes it. JSON's strings are YAML's.
pub fn scalar(text: impl AsRef<str>) -> String {
    serde_json::Value::from(text.as_ref()).to_string()
}

/// A list of scalars.
pub fn list(items: &[String]) -> String {
    serde_json::Value::from(items).to_string()
}

/// Where an agent answers from now on.
pub fn answer_in(value: &AnswerIn) -> Change {
    // Texts and lists of texts are JSON, whatever is in them.
    let value = serde_json::to_value(value).unwrap_or_default();
    ("answer_in", Some(value.to_string()))
}

/// Changes keys, and checks that the result can be used.
pub fn edit(text: &str, changes: &[Change]) -> Result<String, String> {
    let mut text = text.to_owned();
    for (key, value) in changes {
        text = set(&text, key, value.as_deref());
    }
    BackendConfig::parse(&text)?;
    Ok(text)
}

/// Replaces the lines of a key at the top, or adds it.
fn set(text: &str, key: &str, value: Option<&str>) -> String {
    let new = value.map(|value| format!("{key}: {value}\n"));
    let mut result = String::new();
    let mut inside = false;
    let mut placed = false;
    for line in text.split_inclusive('\n') {
        let is_key = line
            .strip_prefix(key)
            .is_some_and(|rest| rest.trim_start().starts_with(':'));
        // A value goes on for as long as its lines are indented.
        inside = is_key || (inside && line.starts_with([' ', '\t', '-']));
        if !inside {
            result.push_str(line);
        } else if is_key && !placed {
            placed = true;
            result.push_str(new.as_deref().unwrap_or_default());
        }
    }
    if let Some(new) = new.filter(|_| !placed) {
        if !result.is_empty() && !result.ends_with('\n') {
            result.push('\n');
        }
        result.push_str(&new);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_everything_else_as_it_was() {
        let text =
            "# mine\nbackend: plain # why not\ncommand: |\n  cat\n  date\nmodel: a\nextra: 1\n";
        let edited = edit(
            text,
            &[
                ("command", Some(scalar("tr a \"b\""))),
                ("model", None),
                ("timeout_seconds", Some("5".into())),
            ],
        )
        .unwrap();
        assert_eq!(
            edited,
            "# mine\nbackend: plain # why not\ncommand: \"tr a \\\"b\\\"\"\nextra: 1\ntimeout_seconds: 5\n"
        );
        let config = BackendConfig::parse(&edited).unwrap();
        assert_eq!(config.command.as_deref(), Some("tr a \"b\""));
    }

    #[test]
    fn a_change_that_does_not_fit_is_refused() {
        let change = ("timeout_seconds", Some("never".to_owned()));
        assert!(edit("backend: plain\n", &[change]).is_err());
        assert!(edit("backend: plain\n", &[("backend", Some("handler".into()))]).is_err());
    }

    #[test]
    fn any_text_survives_as_a_scalar() {
        for text in [
            "",
            "a: b",
            "#x",
            "- y",
            "\"",
            "\\n",
            "ä\n\t\u{1}…",
            "null",
            "12",
        ] {
            let yaml = format!("backend: plain\nmodel: {}\n", scalar(text));
            let config = BackendConfig::parse(&yaml).unwrap();
            assert_eq!(config.model.as_deref(), Some(text));
        }
    }
}
