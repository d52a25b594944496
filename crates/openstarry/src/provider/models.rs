//! Which models a server has.

use super::decode::text;
use super::{Endpoint, ProviderKind};
use crate::pain::AgentPain;
use serde_json::Value;

/// Models of one list that are read.
const MOST: usize = 2000;

/// A model of a server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Model {
    /// The name, as requests have it.
    pub id: String,
    /// The tokens of its context window, where the server tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// When it was made, in seconds since 1970, where the server tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
}

/// The models in the server's order.
pub(super) async fn list(kind: ProviderKind, endpoint: &Endpoint) -> Result<Vec<Model>, AgentPain> {
    let path = match kind {
        ProviderKind::OpenAi | ProviderKind::Responses => "/models",
        ProviderKind::Anthropic => "/v1/models?limit=1000",
        ProviderKind::Gemini => "/models?pageSize=1000",
        ProviderKind::Ollama => "/api/tags",
    };
    let answer = endpoint.get(path).await?;
    let listed = ["data", "models"].iter().find_map(|key| answer.get(key));
    let listed = listed.unwrap_or(&answer).as_array();
    let Some(listed) = listed else {
        return Err(AgentPain::unreadable(
            "no list of models",
            &answer.to_string(),
        ));
    };
    Ok(listed.iter().filter_map(model).take(MOST).collect())
}

fn model(value: &Value) -> Option<Model> {
    // Gemini lists models that only embed, too.
    let methods = value.get("supportedGenerationMethods");
    let methods = methods.and_then(Value::as_array);
    if methods.is_some_and(|methods| !methods.contains(&"generateContent".into())) {
        return None;
    }
    let id = text(value, "id").or_else(|| text(value, "name"))?;
    let id = id.strip_prefix("models/").unwrap_or(&id);
    let sizes = [
        "/context_length",
        "/context_window",
        "/max_model_len",
        "/max_input_tokens",
        "/inputTokenLimit",
        "/meta/n_ctx_train",
    ];
    let number = |pointer: &&str| value.pointer(pointer).and_then(Value::as_u64);
    Some(Model {
        id: id.to_owned(),
        context_tokens: sizes.iter().find_map(number),
        created: number(&"/created").or_else(|| {
            let at = text(value, "created_at").or_else(|| text(value, "modified_at"))?;
            let at: jiff::Timestamp = at.parse().ok()?;
            u64::try_from(at.as_second()).ok()
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_servers_entry_is_read() {
        let gemini = json!({ "name": "models/gemini-x", "inputTokenLimit": 9, "supportedGenerationMethods": ["generateContent"] });
        assert_eq!(model(&gemini).unwrap().id, "gemini-x");
        assert_eq!(model(&gemini).unwrap().context_tokens, Some(9));
        let embeds = json!({ "name": "models/e", "supportedGenerationMethods": ["embedContent"] });
        assert_eq!(model(&embeds), None);
        let claude =
            json!({ "type": "model", "id": "claude-x", "created_at": "2025-02-19T00:00:00Z" });
        assert_eq!(model(&claude).unwrap().created, Some(1_739_923_200));
        let local =
            json!({ "name": "qwen3:8b", "modified_at": "2025-10-03T23:34:03.409490317-07:00" });
        assert_eq!(model(&local).unwrap().id, "qwen3:8b");
        assert_eq!(model(&json!(7)), None);
    }
}
