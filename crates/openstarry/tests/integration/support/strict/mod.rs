//! What the real APIs refuse, and in which words. Our stand-ins answer as they
//! do, so that a request they would not take fails a test here.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use super::Reply;
use serde_json::{Value, json};

/// Servers that take less than the API they speak like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The API itself, or a server that takes back what it sends.
    Usual,
    /// OpenAI's own server: no field that it does not know.
    OpenAi,
    /// Thoughts go back with every message that calls tools.
    DeepSeek,
    /// From version 4 on: with every message of the assistant.
    DeepSeek4,
    /// The same as the first, in other words; and no empty message.
    Kimi,
    /// Gemini behind OpenAI's format: calls are signed.
    GeminiChat,
    /// llama.cpp, vLLM and others with Qwen's template: one system message, first.
    Qwen,
    /// Mistral's template: the user and the assistant by turns, ids of nine letters.
    Mistral,
    /// Gemini from version 3 on: the first call of a reply is signed.
    Gemini3,
    /// Claude with thinking turned on.
    Thinking,
}

/// Why a request is refused.
pub type Checked = Result<(), String>;

/// The answer to a request that the API would refuse.
pub fn refusal(dialect: Dialect, path: &str, body: &Value) -> Option<Reply> {
    let path = path.split('?').next().unwrap_or_default();
    if path.ends_with("/chat/completions") {
        let error = chat::check(dialect, body).err()?;
        return Some(Reply::json(
            400,
            json!({ "error": { "message": error, "type": "invalid_request_error", "param": null, "code": null } }),
        ));
    }
    if path.ends_with("/responses") {
        let error = responses::check(body).err()?;
        return Some(Reply::json(
            400,
            json!({ "error": { "message": error, "type": "invalid_request_error", "param": "input", "code": null } }),
        ));
    }
    if path.ends_with("/v1/messages") {
        let error = anthropic::check(dialect, body).err()?;
        return Some(Reply::json(
            400,
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": error }, "request_id": "req_1" }),
        ));
    }
    if path.ends_with(":streamGenerateContent") {
        let error = gemini::check(dialect, body).err()?;
        return Some(Reply::json(
            400,
            json!({ "error": { "code": 400, "message": error, "status": "INVALID_ARGUMENT" } }),
        ));
    }
    None
}

/// A list, or nothing where there is none.
fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn plain_name(name: &str, most: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= most && name.chars().all(fits)
}
