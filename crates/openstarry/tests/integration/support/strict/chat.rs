//! OpenAI's chat completions, and servers that speak like it.

use super::{Checked, Dialect, list, plain_name};
use serde_json::Value;

/// Fields of a message by role. OpenAI refuses others; what other servers send
/// themselves they take back.
const FIELDS: [&str; 8] = [
    "role",
    "content",
    "name",
    "refusal",
    "audio",
    "tool_calls",
    "function_call",
    "tool_call_id",
];

pub fn check(dialect: Dialect, body: &Value) -> Checked {
    tools(body)?;
    let messages = list(body, "messages");
    if messages.is_empty() {
        return Err("Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.".into());
    }
    for (at, message) in messages.iter().enumerate() {
        content(dialect, at, message)?;
        if matches!(dialect, Dialect::Usual | Dialect::OpenAi) {
            fields(dialect, at, message)?;
        }
    }
    pairing(messages)?;
    match dialect {
        Dialect::DeepSeek => reasoning(messages, |at| {
            format!(
                "Missing `reasoning_content` field in the assistant message at message index {at}. For more information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
            )
        }),
        Dialect::DeepSeek4 => reasoning_everywhere(messages),
        Dialect::Kimi => reasoning(messages, |at| {
            format!(
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
            )
        }),
        Dialect::GeminiChat => signatures(messages),
        Dialect::Qwen => system_first(messages),
        Dialect::Mistral => {
            system_first(messages)?;
            short_ids(messages)?;
            alternating(messages)
        }
        _ => Ok(()),
    }
}

fn tools(body: &Value) -> Checked {
    if body["tools"].as_array().is_some_and(Vec::is_empty) {
        return Err("Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.".into());
    }
    for (at, tool) in list(body, "tools").iter().enumerate() {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        if !plain_name(name, 64) {
            return Err(format!(
                "Invalid 'tools[{at}].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ));
        }
        if tool["function"]["parameters"]["type"] != "object" {
            return Err(format!(
                "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."
            ));
        }
    }
    Ok(())
}

fn content(dialect: Dialect, at: usize, message: &Value) -> Checked {
    let role = message["role"].as_str().unwrap_or_default();
    let has_calls = !list(message, "tool_calls").is_empty();
    match &message["content"] {
        Value::Null if role == "assistant" && (has_calls || message["audio"].is_object()) => Ok(()),
        Value::Null => Err(format!(
            "Invalid value for 'content': expected a string, got null. (messages.[{at}].content)"
        )),
        Value::Array(parts) if parts.is_empty() => Err(format!(
            "Invalid 'messages[{at}].content': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )),
        Value::Array(parts) => {
            let blank = |part: &Value| part["type"] == "text" && part["text"] == "";
            match parts.iter().any(blank) {
                true => Err(format!(
                    "Invalid 'messages[{at}].content': text content is empty"
                )),
                false => Ok(()),
            }
        }
        Value::String(text) if text.is_empty() && !has_calls && dialect == Dialect::Kimi => {
            Err(format!(
                "Invalid request: message at position {at} with role '{role}' must not be empty"
            ))
        }
        Value::String(text) if text.is_empty() && !has_calls => {
            Err(format!("Invalid 'messages[{at}].content': empty string"))
        }
        Value::String(_) => Ok(()),
        _ => Err(format!(
            "Invalid type for 'messages[{at}].content': expected one of a string or array of objects"
        )),
    }
}

fn fields(dialect: Dialect, at: usize, message: &Value) -> Checked {
    let fields = message.as_object().into_iter().flatten();
    for (key, _) in fields {
        let theirs = dialect == Dialect::Usual && key.starts_with("reasoning");
        if !FIELDS.contains(&key.as_str()) && !theirs {
            return Err(format!("Unknown parameter: 'messages[{at}].{key}'."));
        }
    }
    Ok(())
}

/// Every call has its result in the messages right after it.
fn pairing(messages: &[Value]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(found) = open.iter().position(|open| *open == id) else {
                return Err("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.".into());
            };
            open.remove(found);
            continue;
        }
        unanswered(&open)?;
        for call in list(message, "tool_calls") {
            let name = call["function"]["name"].as_str().unwrap_or_default();
            if !plain_name(name, 64) {
                return Err(format!(
                    "Invalid 'messages[].tool_calls[].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'. {name}"
                ));
            }
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if serde_json::from_str::<Value>(arguments).is_err() {
                return Err(
                    "Invalid 'messages[].tool_calls[].function.arguments': not JSON".into(),
                );
            }
            let id = call["id"].as_str().unwrap_or_default();
            if id.len() > 40 {
                return Err(format!(
                    "Invalid 'messages[].tool_calls[].id': string too long. Expected a string with maximum length 40, but got a string with length {} instead.",
                    id.len()
                ));
            }
            open.push(id);
        }
    }
    unanswered(&open)
}

fn unanswered(open: &[&str]) -> Checked {
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            open.join(", ")
        )),
    }
}

fn reasoning(messages: &[Value], words: impl Fn(usize) -> String) -> Checked {
    for (at, message) in messages.iter().enumerate() {
        let thought = message["reasoning_content"].as_str().unwrap_or_default();
        if !list(message, "tool_calls").is_empty() && thought.is_empty() {
            return Err(words(at));
        }
    }
    Ok(())
}

/// Plain answers too.
fn reasoning_everywhere(messages: &[Value]) -> Checked {
    let mut said = messages.iter().filter(|m| m["role"] == "assistant");
    match said.all(|message| message["reasoning_content"].is_string()) {
        true => Ok(()),
        false => Err(
            "The `reasoning_content` in the thinking mode must be passed back to the API.".into(),
        ),
    }
}

fn short_ids(messages: &[Value]) -> Checked {
    let calls = messages
        .iter()
        .flat_map(|message| list(message, "tool_calls"));
    for id in calls.filter_map(|call| call["id"].as_str()) {
        if id.len() != 9 || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(format!(
                "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
            ));
        }
    }
    Ok(())
}

fn signatures(messages: &[Value]) -> Checked {
    for (at, message) in messages.iter().enumerate() {
        let Some(first) = list(message, "tool_calls").first() else {
            continue;
        };
        let signature = first.pointer("/extra_content/google/thought_signature");
        if signature.and_then(Value::as_str).is_none_or(str::is_empty) {
            let name = first["function"]["name"].as_str().unwrap_or_default();
            return Err(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{name}` , position {at}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            ));
        }
    }
    Ok(())
}

fn system_first(messages: &[Value]) -> Checked {
    let late = messages
        .iter()
        .skip(1)
        .any(|message| message["role"] == "system");
    match late {
        true => Err("System message must be at the beginning.".into()),
        false => Ok(()),
    }
}

/// Messages that call tools, and results, do not count.
fn alternating(messages: &[Value]) -> Checked {
    let mut users_turn = true;
    let mut last = "";
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "user" && last == "tool" {
            return Err("Unexpected role 'user' after role 'tool'".into());
        }
        last = role;
        let counts =
            role == "user" || (role == "assistant" && list(message, "tool_calls").is_empty());
        if counts && (role == "user") != users_turn {
            return Err("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...".into());
        }
        if counts {
            users_turn = !users_turn;
        }
    }
    match last {
        "user" | "tool" => Ok(()),
        role => Err(format!(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got {role}"
        )),
    }
}
