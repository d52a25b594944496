//! The document's sequence example, end to end with each provider.

use crate::support::wire::{self, Say, call};
use crate::support::{ALL, Reply, Server, within};
use openstarry::provider::ProviderKind;
use openstarry::segment::ContentSegment;
use openstarry::session::{Agent, EndReason, SessionEvent, SessionState, Settings};
use openstarry::tool::{FnTool, Registry, Risk, ToolSpec};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn the_weather_in_taipei_is_asked_for_found_and_told() {
    for kind in ALL {
        let server = Server::start(vec![
            Reply::stream(
                kind,
                wire::body(
                    kind,
                    &[
                        Say::Text("Sure, let me check."),
                        call("call_1", "get_weather", "{\"location\":\"Taipei\"}"),
                    ],
                ),
            ),
            Reply::stream(
                kind,
                wire::body(kind, &[Say::Text("It is 25°C and sunny.")]),
            ),
        ])
        .await;
        let schema = json!({ "type": "object", "required": ["location"], "properties": { "location": { "type": "string" } } });
        let spec = ToolSpec::new("get_weather", "The weather at a place.", Risk::Safe, schema);
        let registry = Registry::new();
        let weather = FnTool::new(spec, async |args| {
            assert_eq!(args, json!({ "location": "Taipei" }));
            Ok(vec![ContentSegment::text("25°C, Sunny")])
        });
        registry.add(vec![Arc::new(weather)]).unwrap();
        let agent = Agent::new(server.provider(kind), registry, Settings::default());
        let session = agent.session(SessionState::new("s"), None);

        let mut turn = session.say("Query weather in Taipei").unwrap();
        let mut spoken = String::new();
        let outcome = loop {
            match within(turn.next()).await.unwrap() {
                SessionEvent::Text { text } => spoken.push_str(&text),
                SessionEvent::End(outcome) => break outcome,
                _ => {}
            }
        };
        assert_eq!(outcome.end, EndReason::Answered, "{kind:?}");
        assert_eq!(
            spoken, "Sure, let me check.It is 25°C and sunny.",
            "{kind:?}"
        );
        assert_eq!(outcome.text(), "It is 25°C and sunny.");
        assert_eq!(
            (outcome.usage.input_tokens, outcome.usage.output_tokens),
            (22, 14),
            "{kind:?}"
        );

        // The first reply is the document's object.
        let said: Vec<_> = outcome.trace[0]
            .reply()
            .iter()
            .map(|s| serde_json::to_value(s).unwrap())
            .collect();
        assert_eq!(
            said[0],
            json!({ "type": "text", "text": "Sure, let me check." })
        );
        assert_eq!(said[1]["type"], "tool_call");
        assert_eq!(said[1]["toolCall"]["name"], "get_weather");
        assert_eq!(said[1]["toolCall"]["args"], json!({ "location": "Taipei" }));

        let asked = server.asked();
        let first = asked[0].body.to_string();
        assert!(
            first.contains("Query weather in Taipei") && first.contains("The weather at a place.")
        );
        let path = match kind {
            ProviderKind::OpenAi => "/chat/completions",
            ProviderKind::Responses => "/responses",
            ProviderKind::Anthropic => "/v1/messages",
            ProviderKind::Gemini => "/models/model-1:streamGenerateContent?alt=sse",
            ProviderKind::Ollama => "/api/chat",
        };
        assert_eq!(asked[0].path, path);
        assert!(
            asked[1].body.to_string().contains("25°C, Sunny"),
            "{kind:?}"
        );
    }
}
