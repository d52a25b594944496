//! What Gemini tells of a turn's cost, beside the protocol. Whatever is not as expected is not told.

use crate::backend::Call;
use agent_client_protocol::v1::schema::Meta;
use serde_json::Value;

/// Counts the tokens of `_meta.quota`, and names the model where there was one.
pub fn count(call: &Call, meta: Option<&Meta>) {
    let Some(quota) = meta.and_then(|meta| meta.get("quota")) else {
        return;
    };
    let tokens = |name: &str| quota.get("token_count")?.get(name)?.as_u64();
    let models = quota.get("model_usage").and_then(Value::as_array);
    let model = match models.map(Vec::as_slice) {
        Some([only]) => only.get("model").and_then(Value::as_str),
        _ => None,
    };
    call.report_usage(|usage| {
        usage.input_tokens = tokens("input_tokens").or(usage.input_tokens);
        usage.output_tokens = tokens("output_tokens").or(usage.output_tokens);
        if let Some(model) = model {
            usage.model = Some(model.to_owned());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_told_is_counted_and_what_is_odd_is_not() {
        let call = Call::default();
        for odd in [
            json!({}),
            json!({"quota": 3}),
            json!({"quota": {"token_count": {"input_tokens": -1}, "model_usage": [{}, {}]}}),
        ] {
            count(&call, odd.as_object());
        }
        assert_eq!(call.progress().usage.input_tokens, None);
        let told = json!({"quota": {"token_count": {"input_tokens": 7, "output_tokens": 2},
            "model_usage": [{"model": "flash"}]}});
        count(&call, told.as_object());
        let usage = call.progress().usage;
        assert_eq!(
            (usage.input_tokens, usage.output_tokens),
            (Some(7), Some(2))
        );
        assert_eq!(usage.model.as_deref(), Some("flash"));
    }
}
