//! Spans with the names of OpenTelemetry's conventions for generative AI, so that
//! whatever collects traces knows what it sees.

use crate::provider::Provider;
use crate::segment::{ProviderResponse, ToolCall};
use tracing::{Span, field};

/// A turn, below whatever asked for it; requests and calls of tools are below it.
pub(super) fn turn(asked: &Span, session: &str) -> Span {
    tracing::info_span!(
        parent: asked,
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = session,
    )
}

/// A request to a model.
pub fn chat(provider: &dyn Provider, session: &str) -> Span {
    let model = provider.model().unwrap_or("unknown");
    tracing::info_span!(
        "chat",
        otel.name = format!("chat {model}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider.name(),
        gen_ai.request.model = model,
        gen_ai.conversation.id = session,
        gen_ai.response.model = field::Empty,
        gen_ai.response.finish_reasons = field::Empty,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        error.type = field::Empty,
    )
}

/// What came of it.
pub fn answered(span: &Span, reply: &ProviderResponse) {
    if span.is_disabled() {
        return;
    }
    let metadata = &reply.metadata;
    if let Some(model) = &metadata.model {
        span.record("gen_ai.response.model", model.as_str());
    }
    if let Some(stop) = &metadata.stop_reason {
        span.record("gen_ai.response.finish_reasons", format!("[\"{stop}\"]"));
    }
    if let Some(usage) = metadata.usage {
        span.record("gen_ai.usage.input_tokens", usage.input_tokens);
        span.record("gen_ai.usage.output_tokens", usage.output_tokens);
    }
}

/// A call of a tool.
pub(super) fn tool(call: &ToolCall) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {}", call.name),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name,
        gen_ai.tool.call.id = call.id(),
    )
}
