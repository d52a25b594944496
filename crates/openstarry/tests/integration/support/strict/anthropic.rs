//! Anthropic's messages.

use super::{Checked, Dialect, list, plain_name};
use crate::support::wire;
use serde_json::Value;

pub fn check(dialect: Dialect, body: &Value) -> Checked {
    if body["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        return Err("max_tokens: Field required".into());
    }
    for (at, tool) in list(body, "tools").iter().enumerate() {
        if !plain_name(tool["name"].as_str().unwrap_or_default(), 128) {
            return Err(format!(
                "tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if tool["input_schema"]["type"] != "object" {
            return Err(format!(
                "tools.{at}.custom.input_schema.type: Field required"
            ));
        }
    }
    let marked = body.to_string().matches("\"cache_control\"").count();
    if marked > 4 {
        return Err(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {marked}."
        ));
    }
    let messages = list(body, "messages");
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Err("messages: first message must use the \"user\" role".into());
    }
    for (at, message) in messages.iter().enumerate() {
        if at > 0 && messages[at - 1]["role"] == message["role"] {
            return Err(format!(
                "messages: roles must alternate between \"user\" and \"assistant\", but found multiple {} roles in a row",
                message["role"]
            ));
        }
        blocks(at, message)?;
    }
    pairing(messages)?;
    let thinking = dialect == Dialect::Thinking && body["thinking"].is_object();
    match thinking {
        true => thought_first(messages),
        false => Ok(()),
    }
}

fn blocks(at: usize, message: &Value) -> Checked {
    let blocks = list(message, "content");
    if blocks.is_empty() {
        return Err(format!(
            "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
        ));
    }
    for (n, block) in blocks.iter().enumerate() {
        match block["type"].as_str().unwrap_or_default() {
            "text"
                if block["text"]
                    .as_str()
                    .is_none_or(|text| text.trim().is_empty()) =>
            {
                return Err(
                    "messages: text content blocks must contain non-whitespace text".into(),
                );
            }
            "thinking" if block["signature"].as_str().is_none_or(str::is_empty) => {
                return Err(format!(
                    "messages.{at}.content.{n}.thinking.signature: Field required"
                ));
            }
            // As our stand-in signs: the thought has to be the one that was signed.
            "thinking"
                if block["signature"]
                    != wire::signature(block["thinking"].as_str().unwrap_or("")) =>
            {
                return Err(format!(
                    "messages.{at}.content.{n}: Invalid `signature` in `thinking` block"
                ));
            }
            "thinking" | "redacted_thinking" if block["cache_control"].is_object() => {
                return Err(format!(
                    "messages.{at}.content.{n}.thinking.cache_control: Extra inputs are not permitted"
                ));
            }
            "tool_use" => {
                if !plain_name(block["id"].as_str().unwrap_or_default(), 128) {
                    return Err(format!(
                        "messages.{at}.content.{n}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                    ));
                }
                if !block["input"].is_object() {
                    return Err(format!(
                        "messages.{at}.content.{n}.tool_use.input: Input should be a valid dictionary"
                    ));
                }
            }
            "tool_result" if block["is_error"] == true => {
                let words = |part: &Value| part["type"] == "text";
                if !list(block, "content").iter().all(words) {
                    return Err(format!(
                        "messages.{at}.content.{n}.tool_result: all content must be type `text` if `is_error` is true"
                    ));
                }
            }
            _ => {}
        }
    }
    if message["role"] == "assistant"
        && blocks
            .last()
            .is_some_and(|last| last["type"] == "thinking" || last["type"] == "redacted_thinking")
    {
        return Err(format!(
            "messages.{at}: The final block in an assistant message cannot be `thinking`."
        ));
    }
    Ok(())
}

/// Every call has its result first thing in the next message.
fn pairing(messages: &[Value]) -> Checked {
    let ids = |message: &Value, kind: &str, key: &str| -> Vec<String> {
        let blocks = list(message, "content").iter();
        let blocks = blocks.filter(|block| block["type"] == kind);
        blocks
            .filter_map(|block| block[key].as_str().map(String::from))
            .collect()
    };
    for (at, message) in messages.iter().enumerate() {
        let next = messages.get(at + 1).unwrap_or(&Value::Null);
        let mut seen_other = false;
        for block in list(next, "content") {
            match block["type"] == "tool_result" {
                false => seen_other = true,
                true if seen_other => {
                    return Err(format!(
                        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after"
                    ));
                }
                true => {}
            }
        }
        let calls = ids(message, "tool_use", "id");
        let results = ids(next, "tool_result", "tool_use_id");
        if let Some(missing) = calls.iter().find(|id| !results.contains(id)) {
            return Err(format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            ));
        }
        if let Some(extra) = results.iter().find(|id| !calls.contains(id)) {
            return Err(format!(
                "messages.{}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {extra}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
                at + 1
            ));
        }
    }
    Ok(())
}

fn thought_first(messages: &[Value]) -> Checked {
    let within = messages
        .last()
        .is_some_and(|last| last.pointer("/content/0/type") == Some(&"tool_result".into()));
    let said = messages
        .iter()
        .rposition(|message| message["role"] == "assistant");
    let Some(at) = said.filter(|_| within) else {
        return Ok(());
    };
    let first = messages[at]
        .pointer("/content/0/type")
        .and_then(Value::as_str);
    match first {
        Some("thinking" | "redacted_thinking") => Ok(()),
        found => Err(format!(
            "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns.",
            found.unwrap_or_default()
        )),
    }
}
