//! Whatever happens in a session, the next request is one that the real APIs
//! take. Each story is told to all of them.

use crate::support::strict::Dialect;
use crate::support::wire::{self, Say, call};
use crate::support::{Piece, Reply, Server, within};
use openstarry::provider::{ProviderConfig, ProviderKind};
use openstarry::segment::{ContentSegment, Media};
use openstarry::session::{
    Agent, EndReason, Limits, Outcome, Session, SessionEvent, SessionState, Settings,
};
use openstarry::tool::{FnTool, Registry, Risk, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

/// Every server there are rules for.
const EVERY: [(Dialect, ProviderKind); 13] = [
    (Dialect::Usual, ProviderKind::OpenAi),
    (Dialect::DeepSeek, ProviderKind::OpenAi),
    (Dialect::DeepSeek4, ProviderKind::OpenAi),
    (Dialect::Kimi, ProviderKind::OpenAi),
    (Dialect::GeminiChat, ProviderKind::OpenAi),
    (Dialect::Qwen, ProviderKind::OpenAi),
    (Dialect::Mistral, ProviderKind::OpenAi),
    (Dialect::Usual, ProviderKind::Responses),
    (Dialect::Usual, ProviderKind::Anthropic),
    (Dialect::Thinking, ProviderKind::Anthropic),
    (Dialect::Usual, ProviderKind::Gemini),
    (Dialect::Gemini3, ProviderKind::Gemini),
    (Dialect::Usual, ProviderKind::Ollama),
];

fn config(server: &Server, dialect: Dialect, kind: ProviderKind) -> ProviderConfig {
    let mut config = server.config(kind);
    config.retries = Some(0);
    match dialect {
        Dialect::GeminiChat | Dialect::Gemini3 => config.model = "gemini-3-pro".into(),
        Dialect::Mistral => config.model = "devstral-small".into(),
        Dialect::Thinking => {
            let thinking = json!({ "type": "enabled", "budget_tokens": 1024 });
            config.options.insert("thinking".into(), thinking);
        }
        _ => {}
    }
    config
}

fn tool<F, Fut>(name: &str, run: F) -> Arc<dyn Tool>
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<ContentSegment>, ToolError>> + Send + 'static,
{
    let schema = json!({ "type": "object", "properties": {} });
    let spec = ToolSpec::new(name, "A tool.", Risk::Safe, schema);
    Arc::new(FnTool::new(spec, run))
}

fn tools() -> Registry {
    let registry = Registry::new();
    registry
        .add(vec![
            tool("fs.read", async |_| {
                Ok(vec![ContentSegment::text("it holds")])
            }),
            tool("fail", async |_| Err(ToolError::new("no luck"))),
            tool("nothing", async |_| Ok(vec![])),
            tool("blank", async |_| Ok(vec![ContentSegment::text(" ")])),
            tool("hang", async |_| std::future::pending().await),
            tool("look", async |_| {
                let picture = Media::base64("image/png", "iVBORw0KGgo=");
                Ok(vec![ContentSegment::Image(picture)])
            }),
        ])
        .unwrap();
    registry
}

struct World {
    about: String,
    server: Server,
    session: Session,
}

impl World {
    async fn new(
        (dialect, kind): (Dialect, ProviderKind),
        replies: Vec<Reply>,
        settings: Settings,
    ) -> Self {
        let server = Server::as_strict_as(dialect, replies).await;
        let provider = config(&server, dialect, kind).build(&|_| None).unwrap();
        let agent = Agent::new(provider, tools(), settings);
        Self {
            about: format!("{dialect:?} {kind:?}"),
            server,
            session: agent.session(SessionState::new("s"), None),
        }
    }

    async fn ask(&self, question: &str) -> Outcome {
        within(self.session.say(question).unwrap().outcome()).await
    }

    async fn answers(&self, question: &str) {
        let outcome = self.ask(question).await;
        assert_eq!(
            outcome.end,
            EndReason::Answered,
            "{}: {question}",
            self.about
        );
    }

    /// Cancels a turn once `seen` has happened.
    async fn cancels(&self, question: &str, seen: fn(&SessionEvent) -> bool) {
        let mut turn = self.session.say(question).unwrap();
        while let Some(event) = within(turn.next()).await {
            assert!(
                !matches!(event, SessionEvent::End(_)),
                "{}: {event:?}",
                self.about
            );
            if seen(&event) {
                return;
            }
        }
    }
}

fn say(kind: ProviderKind, says: &[Say]) -> Reply {
    Reply::stream(kind, wire::body(kind, says))
}

/// The beginning of an answer, and then nothing.
fn hang(kind: ProviderKind, says: &[Say]) -> Reply {
    let mut frames = wire::frames(kind, says);
    let keep = frames.iter().rposition(|frame| frame.contains("\"one"));
    frames.truncate(keep.map_or(0, |at| at + 1));
    Reply::pieces(
        kind,
        vec![Piece::Bytes(frames.concat().into()), Piece::Stall],
    )
}

#[tokio::test]
async fn thoughts_and_calls_go_back_as_they_came() {
    for every in EVERY {
        let name = match every.1 {
            ProviderKind::Gemini | ProviderKind::Ollama => "fs.read",
            _ => "fs_read",
        };
        let world = World::new(
            every,
            vec![
                say(
                    every.1,
                    &[
                        Say::Think("hm"),
                        Say::Text("Let me see."),
                        call("a", name, "{}"),
                        call("b", "nothing", "{}"),
                    ],
                ),
                say(every.1, &[Say::Think("so"), call("c", "blank", "{}")]),
                say(every.1, &[call("d", "look", "{}")]),
                say(every.1, &[Say::Think("ah"), Say::Text("It holds.")]),
                say(every.1, &[Say::Text("Yes.")]),
            ],
            Settings::default(),
        )
        .await;
        world.answers("what is in it?").await;
        world.answers("really?").await;
        assert_eq!(world.server.asked().len(), 5, "{}", world.about);
    }
}

#[tokio::test]
async fn a_cancelled_answer_does_not_break_the_session() {
    let spoke = |event: &SessionEvent| matches!(event, SessionEvent::Text { .. });
    for every in EVERY {
        let replies = vec![
            hang(every.1, &[Say::Think("hm"), Say::Text("one two")]),
            say(every.1, &[call("a", "fail", "{}")]),
            say(every.1, &[Say::Text("Here I am.")]),
        ];
        let world = World::new(every, replies, Settings::default()).await;
        world.cancels("count", spoke).await;
        world.answers("are you there?").await;
        world.answers("and now?").await;
        let told = world.server.asked()[1].body.to_string();
        assert!(told.contains("it was cancelled"), "{}: {told}", world.about);
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_before_a_word_does_not_break_the_session() {
    for every in EVERY {
        let replies = vec![
            Reply::pieces(every.1, vec![Piece::Stall]),
            say(every.1, &[Say::Text("Here I am.")]),
        ];
        let world = World::new(every, replies, Settings::default()).await;
        let turn = world.session.say("count").unwrap();
        while world.server.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        drop(turn);
        world.answers("are you there?").await;
        let asked = world.server.asked()[1].body.to_string();
        assert!(
            asked.contains("count") && asked.contains("are you there?"),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn a_tool_that_is_cancelled_does_not_break_the_session() {
    let ran = |event: &SessionEvent| matches!(event, SessionEvent::ToolStarted { .. });
    for every in EVERY {
        let replies = vec![
            say(
                every.1,
                &[
                    Say::Think("hm"),
                    call("a", "hang", "{}"),
                    call("b", "hang", "{}"),
                ],
            ),
            say(every.1, &[Say::Text("Here I am.")]),
        ];
        let world = World::new(every, replies, Settings::default()).await;
        world.cancels("wait", ran).await;
        world.answers("are you there?").await;
    }
}

#[tokio::test]
async fn a_loop_notice_goes_in_a_form_every_server_takes() {
    for every in EVERY {
        let failing = || {
            say(
                every.1,
                &[Say::Think("again"), call("a", "fail", "{\"n\":1}")],
            )
        };
        let replies = vec![
            failing(),
            failing(),
            failing(),
            say(every.1, &[Say::Text("I give up.")]),
        ];
        let world = World::new(every, replies, Settings::default()).await;
        world.answers("try").await;
        let told = world.server.asked()[3].body.to_string();
        assert!(told.contains("failed 3 times"), "{}: {told}", world.about);
        world.answers("and now?").await;
    }
}

#[tokio::test]
async fn a_turn_that_used_up_its_rounds_can_go_on() {
    for every in EVERY {
        let replies = vec![
            say(every.1, &[Say::Think("hm"), call("a", "nothing", "{}")]),
            say(every.1, &[call("b", "nothing", "{}")]),
            say(every.1, &[Say::Text("Done.")]),
        ];
        let limits = Limits {
            rounds: 1,
            ..Limits::default()
        };
        let settings = Settings {
            limits,
            ..Settings::default()
        };
        let world = World::new(every, replies, settings).await;
        let outcome = world.ask("work").await;
        assert!(
            matches!(outcome.end, EndReason::Rounds(_)),
            "{}: {:?}",
            world.about,
            outcome.end
        );
        world.answers("go on").await;
    }
}

#[tokio::test]
async fn a_reply_of_nothing_or_of_thoughts_alone_does_not_break_the_session() {
    for every in EVERY {
        for says in [vec![], vec![Say::Think("hm")]] {
            let replies = vec![
                say(every.1, &says),
                say(every.1, &[Say::Text("Here I am.")]),
            ];
            let world = World::new(every, replies, Settings::default()).await;
            world.ask("hello").await;
            world.answers("are you there?").await;
        }
    }
}

#[tokio::test]
async fn a_signature_on_a_call_of_geminis_openai_form_goes_back() {
    let kind = ProviderKind::OpenAi;
    let frame = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "delta": { "role": "assistant", "tool_calls": [
        { "index": 0, "id": "a", "type": "function", "function": { "name": "nothing", "arguments": "{}" },
          "extra_content": { "google": { "thought_signature": "signed" } } },
        { "index": 1, "id": "b", "type": "function", "function": { "name": "nothing", "arguments": "{}" } },
    ] } }] });
    let first = format!("{}data: [DONE]\n\n", wire::frame(kind, &frame));
    let replies = vec![Reply::stream(kind, first), say(kind, &[Say::Text("ok")])];
    let world = World::new((Dialect::GeminiChat, kind), replies, Settings::default()).await;
    world.answers("go").await;
    let calls = world.server.asked()[1].body["messages"][1]["tool_calls"].clone();
    assert_eq!(
        calls[0]["extra_content"]["google"]["thought_signature"],
        "signed"
    );
    assert_eq!(calls[1]["extra_content"], Value::Null);
}

#[tokio::test]
async fn redacted_thoughts_come_first_and_unknown_blocks_come_back_whole() {
    let kind = ProviderKind::Anthropic;
    let blocks = [
        (
            json!({ "type": "redacted_thinking", "data": "sealed" }),
            vec![],
        ),
        (
            json!({ "type": "thinking", "thinking": "", "signature": "", "origin": { "kind": "new" } }),
            vec![
                json!({ "type": "thinking_delta", "thinking": "hm" }),
                json!({ "type": "signature_delta", "signature": wire::signature("hm") }),
            ],
        ),
        // A thought that the API keeps to itself.
        (
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
            vec![json!({ "type": "signature_delta", "signature": wire::signature("") })],
        ),
        (
            json!({ "type": "compaction", "content": "" }),
            vec![
                json!({ "type": "compaction_delta", "content": "it was " }),
                json!({ "type": "compaction_delta", "content": "long" }),
            ],
        ),
        (
            json!({ "type": "server_tool_use", "id": "srv", "name": "web_search", "input": {} }),
            vec![
                json!({ "type": "input_json_delta", "partial_json": "{\"query\":" }),
                json!({ "type": "input_json_delta", "partial_json": "\"x\"}" }),
            ],
        ),
        (
            json!({ "type": "tool_use", "id": "a", "name": "nothing", "input": {}, "caller": { "type": "direct" } }),
            vec![],
        ),
    ];
    let mut frames = vec![
        json!({ "type": "message_start", "message": { "model": "m", "container": { "id": "c" } } }),
    ];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        frames
            .push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        for delta in deltas {
            frames.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        frames.push(json!({ "type": "content_block_stop", "index": index }));
    }
    frames.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }));
    frames.push(json!({ "type": "message_stop" }));
    let body: String = frames
        .iter()
        .map(|frame| wire::frame(kind, frame))
        .collect();
    let replies = vec![Reply::stream(kind, body), say(kind, &[Say::Text("ok")])];
    let world = World::new((Dialect::Thinking, kind), replies, Settings::default()).await;
    world.answers("go").await;
    let sent = world.server.asked()[1].body["messages"][1]["content"].clone();
    assert_eq!(
        sent,
        json!([
            { "type": "redacted_thinking", "data": "sealed" },
            { "type": "thinking", "thinking": "hm", "signature": "signed hm", "origin": { "kind": "new" } },
            { "type": "thinking", "thinking": "", "signature": "signed " },
            { "type": "compaction", "content": "it was long" },
            { "type": "server_tool_use", "id": "srv", "name": "web_search", "input": { "query": "x" } },
            { "type": "tool_use", "id": "a", "name": "nothing", "input": {}, "caller": { "type": "direct" } },
        ])
    );
}

#[tokio::test]
async fn a_session_that_another_model_began_goes_on_with_each() {
    let began = json!({ "id": "s", "history": { "turns": [{
        "input": [{ "type": "text", "text": "look" }],
        "rounds": [{
            "reply": [
                { "type": "reasoning", "text": "hm" },
                { "type": "provider", "provider": "another", "item": { "signature": "theirs" } },
                { "type": "tool_call", "toolCall": { "id": "x.1", "name": "gone.tool", "args": {} } },
            ],
            "results": [{ "id": "x.1", "name": "gone.tool", "content": [{ "type": "text", "text": "seen" }] }],
        }],
    }] } });
    for every in EVERY {
        let server = Server::as_strict_as(
            every.0,
            vec![
                say(every.1, &[Say::Think("hm"), call("a", "nothing", "{}")]),
                say(every.1, &[Say::Text("Yes.")]),
            ],
        )
        .await;
        let mut config = config(&server, every.0, every.1);
        if matches!(
            every.0,
            Dialect::DeepSeek | Dialect::DeepSeek4 | Dialect::Kimi
        ) {
            // The adapter knows these by their address alone, until they have spoken.
            config.base_url = Some(format!("{}/api.deepseek.com", server.url));
        }
        let agent = Agent::new(
            config.build(&|_| None).unwrap(),
            tools(),
            Settings::default(),
        );
        let state: SessionState = serde_json::from_value(began.clone()).unwrap();
        let session = agent.session(state, None);
        let outcome = within(session.say("and?").unwrap().outcome()).await;
        assert_eq!(outcome.end, EndReason::Answered, "{every:?}");
    }
}

/// What another server of the same format sent is no field of OpenAI's, and its
/// ids may be longer than OpenAI takes.
#[tokio::test]
async fn openai_itself_gets_no_field_that_another_server_sent() {
    let long = "call_".repeat(20);
    let began = json!({ "id": "s", "history": { "turns": [{
        "input": [{ "type": "text", "text": "look" }],
        "rounds": [{
            "reply": [
                { "type": "reasoning", "text": "hm" },
                { "type": "provider", "provider": "openai https://api.deepseek.com",
                  "item": { "reasoning": "reasoning_content", "message": { "prefix": true } } },
                { "type": "tool_call", "toolCall": { "id": long, "name": "nothing", "args": {} } },
            ],
            "results": [{ "id": long, "name": "nothing", "content": [] }],
        }],
    }] } });
    let kind = ProviderKind::OpenAi;
    let replies = vec![
        say(kind, &[call("a", "nothing", "{}")]),
        say(kind, &[Say::Text("Yes.")]),
    ];
    let server = Server::as_strict_as(Dialect::OpenAi, replies).await;
    let provider = config(&server, Dialect::OpenAi, kind).build(&|_| None);
    let agent = Agent::new(provider.unwrap(), tools(), Settings::default());
    let state: SessionState = serde_json::from_value(began).unwrap();
    let session = agent.session(state, None);
    let outcome = within(session.say("and?").unwrap().outcome()).await;
    assert_eq!(outcome.end, EndReason::Answered);
    let sent = server.asked()[1].body.to_string();
    assert!(!sent.contains("hm") && !sent.contains("prefix"), "{sent}");
}
