//! Google's Gemini.

use super::{Checked, Dialect, list};
use serde_json::Value;

pub fn check(dialect: Dialect, body: &Value) -> Checked {
    for tool in list(body, "tools") {
        for (at, function) in list(tool, "functionDeclarations").iter().enumerate() {
            let name = function["name"].as_str().unwrap_or_default();
            let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let fits = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
            if !first || name.len() > 64 || !name.chars().all(fits) {
                return Err(format!(
                    "* GenerateContentRequest.tools[0].function_declarations[{at}].name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
                ));
            }
        }
    }
    let contents = list(body, "contents");
    if contents.is_empty() {
        return Err("* GenerateContentRequest.contents: contents is not specified".into());
    }
    for (at, content) in contents.iter().enumerate() {
        let parts = list(content, "parts");
        if parts.is_empty() {
            return Err(format!(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."
            ));
        }
        if parts.iter().any(|part| !holds_data(part)) {
            return Err(format!(
                "* GenerateContentRequest.contents[{at}].parts[0].data: required oneof field 'data' must have one initialized field"
            ));
        }
        if !matches!(content["role"].as_str(), Some("user" | "model")) {
            return Err("Please use a valid role: user, model.".into());
        }
        let count = |content: &Value, key: &str| {
            let parts = list(content, "parts").iter();
            parts.filter(|part| part.get(key).is_some()).count()
        };
        let calls = count(content, "functionCall");
        let before = at.checked_sub(1).map(|at| &contents[at]);
        if calls > 0 && before.is_none_or(|before| before["role"] != "user") {
            return Err("Please ensure that function call turn comes immediately after a user turn or after a function response turn.".into());
        }
        let answered = contents
            .get(at + 1)
            .map_or(0, |next| count(next, "functionResponse"));
        if calls != answered {
            return Err("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".into());
        }
        let responses = count(content, "functionResponse");
        if responses > 0 && before.is_none_or(|before| count(before, "functionCall") == 0) {
            return Err("Please ensure that function response turn comes immediately after a function call turn.".into());
        }
        if dialect == Dialect::Gemini3 {
            signed(at, parts)?;
        }
    }
    Ok(())
}

/// What a part may hold, besides remarks about it.
const DATA: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

fn holds_data(part: &Value) -> bool {
    // Parts that nobody knows yet may hold what they like.
    let remarks = ["thought", "thoughtSignature", "partMetadata"];
    let mut keys = part
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str());
    keys.any(|key| DATA.contains(&key) || !remarks.contains(&key))
}

fn signed(at: usize, parts: &[Value]) -> Checked {
    let first = parts.iter().find(|part| part.get("functionCall").is_some());
    let Some(first) = first else { return Ok(()) };
    match first["thoughtSignature"]
        .as_str()
        .is_some_and(|s| !s.is_empty())
    {
        true => Ok(()),
        false => Err(format!(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{}` , position {at}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
            first["functionCall"]["name"].as_str().unwrap_or_default()
        )),
    }
}
