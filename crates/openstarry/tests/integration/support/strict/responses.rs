//! OpenAI's responses.

use super::{Checked, list, plain_name};
use serde_json::Value;

pub fn check(body: &Value) -> Checked {
    for (at, tool) in list(body, "tools").iter().enumerate() {
        if tool["type"] == "function" && !plain_name(tool["name"].as_str().unwrap_or_default(), 64)
        {
            return Err(format!(
                "Invalid 'tools[{at}].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ));
        }
    }
    let items = list(body, "input");
    if items.is_empty() {
        return Err("Missing required parameter: 'input'.".into());
    }
    let ids = |kind: &str| -> Vec<&str> {
        let items = items.iter().filter(|item| item["type"] == kind);
        items.filter_map(|item| item["call_id"].as_str()).collect()
    };
    let (calls, outputs) = (ids("function_call"), ids("function_call_output"));
    if let Some(id) = outputs.iter().find(|id| !calls.contains(id)) {
        return Err(format!(
            "No tool call found for function call output with call_id {id}."
        ));
    }
    if let Some(id) = calls.iter().find(|id| !outputs.contains(id)) {
        return Err(format!("No tool output found for function call {id}."));
    }
    for (at, item) in items.iter().enumerate() {
        match item["type"].as_str().unwrap_or("message") {
            "message" => message(at, item)?,
            "reasoning" => {
                let follows = items.get(at + 1).map(|next| &next["type"]);
                let role = items.get(at + 1).map(|next| &next["role"]);
                let good = follows
                    .is_some_and(|kind| kind == "function_call" || kind == "reasoning")
                    || role.is_some_and(|role| role == "assistant");
                if !good {
                    return Err(format!(
                        "Item '{}' of type 'reasoning' was provided without its required following item.",
                        item["id"].as_str().unwrap_or_default()
                    ));
                }
                if body["store"] == false && item["encrypted_content"].as_str().is_none() {
                    return Err(format!(
                        "Item with id '{}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
                        item["id"].as_str().unwrap_or_default()
                    ));
                }
                if item.get("status").is_some() {
                    return Err(format!("Unknown parameter: 'input[{at}].status'."));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn message(at: usize, item: &Value) -> Checked {
    let parts = list(item, "content");
    if parts.is_empty() {
        return Err(format!("Invalid 'input[{at}].content': empty array."));
    }
    let wanted = match item["role"].as_str() {
        Some("assistant") => ["output_text", "refusal"].as_slice(),
        Some("user" | "system" | "developer") => &["input_text", "input_image", "input_file"],
        _ => return Err(format!("Invalid value for 'input[{at}].role'.")),
    };
    for (n, part) in parts.iter().enumerate() {
        let kind = part["type"].as_str().unwrap_or_default();
        if !wanted.contains(&kind) {
            return Err(format!(
                "Invalid value: '{kind}'. Supported values are: '{}'. (input[{at}].content[{n}])",
                wanted.join("', '")
            ));
        }
    }
    Ok(())
}
