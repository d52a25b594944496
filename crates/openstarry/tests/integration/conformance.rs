//! One suite for all adapters: what a model said arrives as the same segments,
//! whatever the API, however the bytes are cut, and nothing hangs.

use crate::support::wire::{self, Say, call};
use crate::support::{ALL, Piece, Reply, Server, within};
use futures_util::StreamExt;
use openstarry::pain::AgentPain;
use openstarry::provider::{Context, Event, ProviderKind};
use openstarry::segment::{
    ContentSegment, Media, Message, ProviderResponse, Role, StopReason, ToolResult,
};
use openstarry::tool::{Risk, ToolSpec, ToolView};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn tools() -> ToolView {
    let weather = ToolSpec::new(
        "get_weather",
        "The weather.",
        Risk::Safe,
        json!({ "type": "object" }),
    );
    let read = ToolSpec::new("fs.read", "Read.", Risk::Safe, json!({ "type": "object" }));
    ToolView::new(1, [Arc::new(weather), Arc::new(read)])
}

pub fn context() -> Context {
    Context {
        system: "You help.".into(),
        tools: tools(),
        ..Context::default()
    }
}

pub async fn ask(kind: ProviderKind, reply: Reply) -> Result<ProviderResponse, AgentPain> {
    let server = Server::start(vec![reply]).await;
    within(server.provider(kind).generate("hello", &context())).await
}

/// The segments a user sees: without what only the provider understands.
fn said(reply: &ProviderResponse) -> Vec<ContentSegment> {
    let seen = |segment: &&ContentSegment| !matches!(segment, ContentSegment::Provider { .. });
    reply.segments.iter().filter(seen).cloned().collect()
}

#[tokio::test]
async fn text_thought_and_parallel_calls_arrive_in_order() {
    let says = [
        Say::Think("hm"),
        Say::Text("Sure, let me check 天氣."),
        Say::Call(
            "call_a",
            "get_weather",
            vec!["{\"location\":", " \"Tai", "pei\"}"],
        ),
        call("call_b", "get_weather", "{\"location\":\"台中\"}"),
    ];
    for kind in ALL {
        let reply = ask(kind, Reply::stream(kind, wire::body(kind, &says)))
            .await
            .unwrap();
        let said = said(&reply);
        assert_eq!(
            said[0],
            ContentSegment::Reasoning { text: "hm".into() },
            "{kind:?}"
        );
        assert_eq!(
            said[1],
            ContentSegment::text("Sure, let me check 天氣."),
            "{kind:?}"
        );
        let calls: Vec<_> = reply
            .calls()
            .map(|call| (&call.name, call.args.clone()))
            .collect();
        let name = "get_weather".to_owned();
        let wanted = [
            (&name, json!({"location": "Taipei"})),
            (&name, json!({"location": "台中"})),
        ];
        assert_eq!(calls, wanted, "{kind:?}");
        let ids: Vec<_> = reply.calls().map(|call| call.id().to_owned()).collect();
        assert!(
            ids[0] != ids[1] && ids.iter().all(|id| !id.is_empty()),
            "{kind:?}"
        );
        assert_eq!(
            reply.metadata.stop_reason,
            Some(StopReason::ToolUse),
            "{kind:?}"
        );
        assert_eq!(
            reply.metadata.model.as_deref(),
            Some("model-1-long"),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn arguments_that_come_with_the_start_are_kept() {
    let says = [Say::WholeCall(
        "x",
        "get_weather",
        json!({"location": "Taipei"}),
    )];
    for kind in ALL {
        let reply = ask(kind, Reply::stream(kind, wire::body(kind, &says)))
            .await
            .unwrap();
        let call = reply.calls().next().unwrap();
        assert_eq!(call.args, json!({"location": "Taipei"}), "{kind:?}");
    }
}

#[tokio::test]
async fn bytes_cut_anywhere_give_the_same_reply() {
    let says = [
        Say::Text("天氣很好 🌤"),
        call("a", "get_weather", "{\"location\":\"臺北\"}"),
    ];
    for kind in ALL {
        let body = wire::body(kind, &says).into_bytes();
        let whole = ask(kind, Reply::stream(kind, body.clone())).await.unwrap();
        for size in [1, 2, 3, 7] {
            let pieces = body
                .chunks(size)
                .map(|chunk| Piece::Bytes(chunk.into()))
                .collect();
            let cut = ask(kind, Reply::pieces(kind, pieces)).await.unwrap();
            let words = |reply: &ProviderResponse| {
                let calls: Vec<_> = reply.calls().map(|call| call.args.clone()).collect();
                (reply.text(), calls)
            };
            assert_eq!(words(&cut), words(&whole), "{kind:?} {size}");
        }
    }
}

#[tokio::test]
async fn usage_told_after_the_finish_is_counted() {
    for kind in ALL {
        let reply = ask(
            kind,
            Reply::stream(kind, wire::body(kind, &[Say::Text("hi")])),
        )
        .await
        .unwrap();
        let usage = reply.metadata.usage.unwrap();
        assert_eq!(
            (usage.input_tokens, usage.output_tokens),
            (11, 7),
            "{kind:?}"
        );
        assert!(!usage.estimated);
        assert_eq!(
            reply.metadata.stop_reason,
            Some(StopReason::EndTurn),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn broken_arguments_are_kept_and_marked() {
    let says = [Say::Call("a", "get_weather", vec!["{\"location\": \"Tai"])];
    for kind in [
        ProviderKind::OpenAi,
        ProviderKind::Responses,
        ProviderKind::Anthropic,
        ProviderKind::Ollama,
    ] {
        let reply = ask(kind, Reply::stream(kind, wire::body(kind, &says)))
            .await
            .unwrap();
        let call = reply.calls().next().unwrap();
        let broken = call.broken.as_ref().unwrap_or_else(|| panic!("{kind:?}"));
        assert_eq!(broken.raw, "{\"location\": \"Tai");
        assert!(call.args.is_null());
    }
    // Gemini reads the arguments itself, and says so when it cannot.
    let kind = ProviderKind::Gemini;
    let frame = wire::frame(
        kind,
        &json!({ "candidates": [{
        "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(get_weather(" }] }),
    );
    let reply = ask(kind, Reply::stream(kind, frame)).await.unwrap();
    assert_eq!(reply.metadata.stop_reason, Some(StopReason::MalformedCall));
    assert_eq!(reply.metadata.extra["finishMessage"], "print(get_weather(");
}

#[tokio::test]
async fn a_frame_that_is_no_json_is_an_agent_pain_with_what_was_said() {
    for kind in ALL {
        let mut frames = wire::frames(kind, &[Say::Text("so far")]);
        let end = frames.len() - 2;
        frames.truncate(end.max(2));
        frames.push(match kind {
            ProviderKind::Ollama => "{\"mess\n".into(),
            _ => "data: {\"mess\n\n".into(),
        });
        let pain = ask(kind, Reply::stream(kind, frames.concat()))
            .await
            .unwrap_err();
        let AgentPain::Interrupted { partial, cause } = pain else {
            panic!("{kind:?}: {pain}");
        };
        assert!(
            matches!(*cause, AgentPain::Unreadable { .. }),
            "{kind:?}: {cause}"
        );
        assert!(
            "so far".starts_with(&partial.text()) && !partial.text().is_empty(),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_failure_in_mid_stream_keeps_what_was_said() {
    for kind in ALL {
        for end in [wire::failure(kind), String::new()] {
            let mut frames = wire::frames(kind, &[Say::Text("so far, so good")]);
            frames.truncate(wire::opening(kind) + 2);
            frames.retain(|frame| !frame.contains("\"done\":true") && !frame.contains("STOP"));
            frames.push(end.clone());
            let mut pieces: Vec<Piece> = frames
                .iter()
                .map(|f| Piece::Bytes(f.clone().into()))
                .collect();
            pieces.retain(|piece| !matches!(piece, Piece::Bytes(bytes) if bytes.is_empty()));
            pieces.push(Piece::Break);
            let pain = ask(kind, Reply::pieces(kind, pieces)).await.unwrap_err();
            let AgentPain::Interrupted { partial, cause } = pain else {
                panic!("{kind:?}: {pain}");
            };
            assert_eq!(partial.text(), "so far, so good", "{kind:?}");
            if !end.is_empty() {
                assert!(cause.to_string().contains("boom"), "{kind:?}: {cause}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_before_its_finish_is_no_answer() {
    for kind in ALL {
        let mut frames = wire::frames(kind, &[Say::Text("half")]);
        frames.truncate(wire::opening(kind) + 1);
        let pain = ask(kind, Reply::stream(kind, frames.concat()))
            .await
            .unwrap_err();
        assert!(
            matches!(pain, AgentPain::Interrupted { .. }),
            "{kind:?}: {pain}"
        );
    }
}

#[tokio::test]
async fn hidden_work_is_shown_as_activity() {
    for (kind, alive) in [
        (ProviderKind::OpenAi, ": keep-alive\n\n"),
        (
            ProviderKind::Anthropic,
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        ),
    ] {
        let pieces = vec![
            Piece::Bytes(alive.into()),
            Piece::Pause(Duration::from_millis(20)),
            Piece::Bytes(wire::body(kind, &[Say::Text("hi")]).into()),
        ];
        let server = Server::start(vec![Reply::pieces(kind, pieces)]).await;
        let provider = server.provider(kind);
        let context = context();
        let mut events = provider.stream("x", &context);
        let first = within(events.next()).await.unwrap().unwrap();
        assert_eq!(first, Event::Activity, "{kind:?}");
    }
}

#[tokio::test]
async fn pictures_come_out_and_what_nobody_knows_is_kept() {
    for kind in ALL {
        let says = [Say::Text("look"), Say::Image("iVBORw0KGgo=")];
        let reply = ask(kind, Reply::stream(kind, wire::body(kind, &says)))
            .await
            .unwrap();
        match kind {
            // A block of a type that is not known here.
            ProviderKind::Anthropic => {
                let ContentSegment::Provider { item, .. } = &reply.segments[1] else {
                    panic!("{:?}", reply.segments);
                };
                assert_eq!(item["data"], "iVBORw0KGgo=");
            }
            _ => assert_eq!(
                reply.segments[1],
                ContentSegment::Image(Media::base64("image/png", "iVBORw0KGgo=")),
                "{kind:?}"
            ),
        }
    }
}

#[tokio::test]
async fn items_of_a_provider_go_back_to_it_and_to_no_other() {
    let item = json!({ "type": "redacted_thinking", "data": "secret-item" });
    for kind in ALL {
        for own in [true, false] {
            let server = Server::start(vec![Reply::stream(
                kind,
                wire::body(kind, &[Say::Text("x")]),
            )])
            .await;
            let provider = server.provider(kind);
            let from = if own {
                provider.name().to_owned()
            } else {
                "another".into()
            };
            // In the shape in which the OpenAI adapter keeps unknown fields.
            let item = match kind {
                ProviderKind::OpenAi => json!({ "message": { "reasoning_details": [item] } }),
                ProviderKind::Responses => {
                    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret-item" })
                }
                _ => item.clone(),
            };
            let mut context = context();
            context.messages = vec![
                Message::text(Role::User, "a"),
                Message {
                    role: Role::Assistant,
                    segments: vec![
                        ContentSegment::Provider {
                            provider: from,
                            item,
                        },
                        ContentSegment::text("b"),
                    ],
                },
            ];
            within(provider.generate("c", &context)).await.unwrap();
            let sent = server.asked()[0].body.to_string();
            assert_eq!(sent.contains("secret-item"), own, "{kind:?}: {sent}");
        }
    }
}

#[tokio::test]
async fn what_a_provider_signed_is_sent_back_with_its_signature() {
    let says = [Say::Think("hm"), call("a", "get_weather", "{}")];
    for kind in [
        ProviderKind::Anthropic,
        ProviderKind::Gemini,
        ProviderKind::Responses,
    ] {
        let server = Server::start(vec![Reply::stream(kind, wire::body(kind, &says))]).await;
        let provider = server.provider(kind);
        let mut context = context();
        let reply = within(provider.generate("a", &context)).await.unwrap();
        let result = ToolResult {
            id: reply.calls().next().unwrap().id().into(),
            name: "get_weather".into(),
            content: vec![ContentSegment::text("25°C")],
            is_error: false,
        };
        context.messages = vec![
            Message::text(Role::User, "a"),
            Message {
                role: Role::Assistant,
                segments: reply.segments,
            },
            Message {
                role: Role::Tool,
                segments: vec![ContentSegment::ToolResult {
                    tool_result: result,
                }],
            },
        ];
        within(provider.generate("b", &context)).await.unwrap();
        let sent = &server.asked()[1].body;
        match kind {
            ProviderKind::Anthropic => {
                let block = &sent["messages"][1]["content"][0];
                assert_eq!(
                    *block,
                    json!({ "type": "thinking", "thinking": "hm", "signature": "signed hm" })
                );
            }
            ProviderKind::Responses => {
                let item = &sent["input"][1];
                assert_eq!(item["type"], "reasoning", "{sent}");
                assert_eq!(item["encrypted_content"], "sealed");
                assert_eq!(item["id"], "rs_0");
            }
            _ => {
                let part = &sent["contents"][1]["parts"][0];
                assert_eq!(part["thoughtSignature"], "c2lnbmVk", "{sent}");
                assert_eq!(part["functionCall"]["name"], "get_weather");
            }
        }
    }
}

#[tokio::test]
async fn media_a_model_does_not_take_become_a_note_and_a_warning() {
    for kind in ALL {
        let server = Server::start(vec![Reply::stream(
            kind,
            wire::body(kind, &[Say::Text("x")]),
        )])
        .await;
        let mut config = server.config(kind);
        config.accepts = Some(vec![]);
        let provider = config.build(&|_| None).unwrap();
        let mut context = context();
        context.messages = vec![Message {
            role: Role::User,
            segments: vec![
                ContentSegment::text("see"),
                ContentSegment::Image(Media::base64("image/png", "iVBORw0KGgo=")),
            ],
        }];
        let reply = within(provider.generate("", &context)).await.unwrap();
        let sent = server.asked()[0].body.to_string();
        assert!(!sent.contains("iVBORw0KGgo="), "{kind:?}");
        assert!(sent.contains("image left out"), "{kind:?}: {sent}");
        assert_eq!(reply.metadata.warnings.len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn names_an_api_refuses_go_out_bent_and_come_back_straight() {
    for kind in ALL {
        let wire_name = match kind {
            ProviderKind::Gemini | ProviderKind::Ollama => "fs.read",
            _ => "fs_read",
        };
        let body = wire::body(kind, &[call("a", wire_name, "{\"path\":\"a.txt\"}")]);
        let server = Server::start(vec![Reply::stream(kind, body)]).await;
        let reply = within(server.provider(kind).generate("x", &context()))
            .await
            .unwrap();
        assert_eq!(reply.calls().next().unwrap().name, "fs.read", "{kind:?}");
        let sent = server.asked()[0].body["tools"].to_string();
        assert!(
            sent.contains(&format!("\"{wire_name}\"")),
            "{kind:?}: {sent}"
        );
    }
}

#[tokio::test]
async fn json_of_any_other_shape_does_no_harm() {
    let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
    let frames = [
        "null",
        "[]",
        "7",
        "\"x\"",
        "{}",
        "{\"type\":7}",
        "{\"choices\":[null]}",
        "{\"usage\":[]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[null,7,{}]}}]}",
        "{\"candidates\":7}",
        "{\"candidates\":[{\"content\":{\"parts\":[null,7,{},{\"functionCall\":7}]}}]}",
        "{\"message\":7}",
        "{\"message\":{\"tool_calls\":[null,7],\"images\":[7]}}",
        "{\"type\":\"content_block_start\",\"index\":-1}",
        "{\"type\":\"content_block_stop\",\"index\":9}",
        "{\"type\":\"content_block_delta\",\"index\":99,\"delta\":{\"text\":\"x\"}}",
        "{\"type\":\"message_start\"}",
        "{\"type\":\"message_delta\"}",
        deep.as_str(),
    ];
    for kind in ALL {
        let mut body: String = frames
            .iter()
            .map(|frame| match kind {
                ProviderKind::Ollama => format!("{frame}\n"),
                _ => format!("data: {frame}\n\n"),
            })
            .collect();
        body.push_str(&wire::body(kind, &[Say::Text("still here")]));
        let reply = ask(kind, Reply::stream(kind, body)).await.unwrap();
        assert!(reply.text().ends_with("still here"), "{kind:?}: {reply:?}");
    }
}
