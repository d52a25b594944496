//! The request bodies, word for word. `UPDATE_GOLDEN=1` writes them anew; read
//! the difference before you keep it.

use crate::support::wire::{self, Say};
use crate::support::{ALL, Reply, Server, within};
use openstarry::provider::{Context, ProviderKind};
use openstarry::segment::{BrokenArgs, ContentSegment, Media, Message, Role, ToolCall, ToolResult};
use openstarry::tool::{Risk, ToolSpec, ToolView};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// A conversation with everything in it.
fn context(provider: &str) -> Context {
    let location = json!({ "type": "object", "properties": { "location": { "type": "string" } }, "required": ["location"] });
    let path = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let tools = [
        ToolSpec::new(
            "get_weather",
            "The weather at a place.",
            Risk::Safe,
            location,
        ),
        ToolSpec::new("fs.read", "Read a file.", Risk::Safe, path),
    ];
    let call = |tool_call| ContentSegment::ToolCall { tool_call };
    let result = |id: &str, name: &str, content, is_error| ContentSegment::ToolResult {
        tool_result: ToolResult {
            id: id.into(),
            name: name.into(),
            content,
            is_error,
        },
    };
    let mut broken = ToolCall::new("call_3", "get_weather", Value::Null);
    broken.broken = Some(BrokenArgs {
        raw: "{\"location\": \"Tai".into(),
        error: "EOF".into(),
    });
    let picture = || ContentSegment::Image(Media::base64("image/png", "iVBORw0KGgo="));
    Context {
        system: "You help with the weather.".into(),
        messages: vec![
            Message {
                role: Role::User,
                segments: vec![
                    ContentSegment::text("What is in this picture?"),
                    picture(),
                    ContentSegment::Image(Media::url("https://example.com/cat.png", None)),
                    ContentSegment::Video(Media::url("https://example.com/v.mp4", None)),
                ],
            },
            Message {
                role: Role::Assistant,
                segments: vec![
                    ContentSegment::Reasoning {
                        text: "I should look.".into(),
                    },
                    ContentSegment::Provider {
                        provider: "another".into(),
                        item: json!({ "private": true }),
                    },
                    ContentSegment::Provider {
                        provider: provider.into(),
                        item: match provider.split('@').next() {
                            Some("gemini") => {
                                json!({ "text": "hm", "thought": true, "thoughtSignature": "c2lnbmVk" })
                            }
                            Some("responses") => {
                                json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed" })
                            }
                            _ => json!({ "signature": wire::signature("I should look.") }),
                        },
                    },
                    ContentSegment::text("Let me look."),
                    call(ToolCall::new(
                        "call_1",
                        "fs.read",
                        json!({ "path": "a.txt" }),
                    )),
                    call(ToolCall::new("call.2", "gone.tool", json!({}))),
                    call(broken),
                ],
            },
            Message {
                role: Role::Tool,
                segments: vec![
                    result(
                        "call_1",
                        "fs.read",
                        vec![ContentSegment::text("hello"), picture()],
                        false,
                    ),
                    result(
                        "call.2",
                        "gone.tool",
                        vec![ContentSegment::text("there is no such tool")],
                        true,
                    ),
                    result(
                        "call_3",
                        "get_weather",
                        vec![ContentSegment::text("the arguments are no JSON")],
                        true,
                    ),
                ],
            },
            Message::text(Role::System, "Mind the arguments."),
            Message {
                role: Role::Assistant,
                segments: vec![
                    ContentSegment::Ui {
                        ui: json!({ "button": "OK" }),
                    },
                    picture(),
                ],
            },
        ],
        tools: ToolView::new(1, tools.map(Arc::new)),
        ..Context::default()
    }
}

#[tokio::test]
async fn request_bodies_are_as_they_were() {
    for kind in ALL {
        let server = Server::start(vec![Reply::stream(
            kind,
            wire::body(kind, &[Say::Text("x")]),
        )])
        .await;
        let mut config = server.config(kind);
        config.max_output_tokens = Some(1000);
        config.options = json!({ "temperature": 0.5 }).as_object().unwrap().clone();
        if kind == ProviderKind::Anthropic {
            config.options = json!({ "metadata": { "user_id": "u" } })
                .as_object()
                .unwrap()
                .clone();
        }
        if kind == ProviderKind::Gemini {
            config.options = json!({ "generationConfig": { "temperature": 0.5 } })
                .as_object()
                .unwrap()
                .clone();
        }
        let provider = config.build(&|_| None).unwrap();
        within(provider.generate("Query weather in Taipei", &context(provider.name())))
            .await
            .unwrap();
        let asked = &server.asked()[0];
        let sent = json!({ "path": asked.path, "body": asked.body });
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/golden/{}.json", kind.word()));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&sent).unwrap() + "\n").unwrap();
        }
        let golden: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(sent, golden, "{kind:?}: see {}", path.display());
    }
}

#[tokio::test]
async fn the_same_tools_are_sent_byte_for_byte_the_same_in_one_order() {
    for kind in ALL {
        let server = Server::start(vec![Reply::stream(
            kind,
            wire::body(kind, &[Say::Text("x")]),
        )])
        .await;
        let provider = server.provider(kind);
        for _ in 0..2 {
            within(provider.generate("hi", &context(provider.name())))
                .await
                .unwrap();
        }
        let asked = server.asked();
        assert_eq!(
            asked[0].body["tools"].to_string(),
            asked[1].body["tools"].to_string()
        );
        let text = asked[0].body["tools"].to_string();
        assert!(
            text.find("fs").unwrap() < text.find("get_weather").unwrap(),
            "{text}"
        );
    }
}

#[tokio::test]
async fn gemini_gets_large_tools_once_and_their_id_from_then_on() {
    let kind = ProviderKind::Gemini;
    let good = || Reply::stream(kind, wire::body(kind, &[Say::Text("x")]));
    let gone = Reply::json(
        403,
        json!({ "error": { "message": "CachedContent not found" } }),
    );
    let server = Server::start(vec![
        Reply::json(200, json!({ "name": "cachedContents/abc" })),
        good(),
        good(),
        gone,
        good(),
    ])
    .await;
    let provider = server.provider(kind);
    let mut context = context(provider.name());
    context.system = "x".repeat(5000);
    for _ in 0..3 {
        within(provider.generate("hi", &context)).await.unwrap();
    }
    let asked = server.asked();
    assert_eq!(asked[0].path, "/cachedContents");
    assert!(asked[0].body["tools"].is_array() && asked[0].body["systemInstruction"].is_object());
    for again in [&asked[1], &asked[2]] {
        assert_eq!(again.body["cachedContent"], "cachedContents/abc");
        assert!(again.body.get("tools").is_none() && again.body.get("systemInstruction").is_none());
    }
    // The upload was gone before its time: everything is sent once more.
    assert_eq!(asked[3].body["cachedContent"], "cachedContents/abc");
    assert!(asked[4].body["tools"].is_array() && asked[4].body.get("cachedContent").is_none());
}
