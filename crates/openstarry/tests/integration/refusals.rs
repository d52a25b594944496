//! What servers refuse and block, each in its own way, and what is learnt from it.

use crate::support::strict::{self, Dialect};
use crate::support::wire::{self, Say, call};
use crate::support::{Reply, Server, within};
use openstarry::provider::{Context, Fallback, Provider, ProviderKind};
use openstarry::segment::{ContentSegment, StopReason};
use openstarry::session::{
    Agent, EndReason, Outcome, Session, SessionEvent, SessionState, Settings,
};
use openstarry::tool::{FnTool, Registry, Risk, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn session(provider: Arc<dyn Provider>) -> Session {
    let schema = json!({ "type": "object", "properties": {} });
    let spec = ToolSpec::new("work", "Work.", Risk::Safe, schema);
    let registry = Registry::new();
    let work = FnTool::new(spec, async |_| Ok(vec![ContentSegment::text("worked")]));
    registry.add(vec![Arc::new(work)]).unwrap();
    let agent = Agent::new(provider, registry, Settings::default());
    agent.session(SessionState::new("s"), None)
}

async fn ask(session: &Session, question: &str) -> Outcome {
    within(session.say(question).unwrap().outcome()).await
}

fn body(says: &[Say]) -> Reply {
    let kind = ProviderKind::OpenAi;
    Reply::stream(kind, wire::body(kind, says))
}

/// Mistral's API: it takes no field that it does not know, and ids of nine letters.
fn as_mistral(body: &Value) -> Option<Reply> {
    if body.get("stream_options").is_some() {
        let detail = json!([{ "type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"],
            "msg": "Extra inputs are not permitted", "input": true }]);
        return Some(Reply::json(
            422,
            json!({ "object": "error", "message": { "detail": detail }, "type": "invalid_request_error",
                "param": null, "code": null }),
        ));
    }
    let refused = strict::refusal(Dialect::Mistral, "/chat/completions", body)?;
    Some(refused)
}

#[tokio::test]
async fn what_a_server_of_mistrals_refuses_is_learnt_whatever_its_model_is_called() {
    let refused = Arc::new(AtomicUsize::new(0));
    let turns = AtomicUsize::new(0);
    let counted = Arc::clone(&refused);
    let long = "chatcmpl-tool-0123456789abcdef0123456789abcdef";
    let server = Server::answering(move |asked| {
        if let Some(refusal) = as_mistral(&asked.body) {
            counted.fetch_add(1, Ordering::SeqCst);
            return refusal;
        }
        match turns.fetch_add(1, Ordering::SeqCst) {
            0 => body(&[call(long, "work", "{}"), call("call_2", "work", "{}")]),
            2 => body(&[call("call_3", "work", "{}")]),
            _ => body(&[Say::Text("done")]),
        }
    })
    .await;
    let session = session(server.provider(ProviderKind::OpenAi));
    for question in ["first", "second"] {
        let outcome = ask(&session, question).await;
        assert_eq!(outcome.end, EndReason::Answered, "{question}");
    }
    assert_eq!(refused.load(Ordering::SeqCst), 2, "each is learnt once");
}

#[tokio::test]
async fn a_limit_by_another_name_is_learnt() {
    let server = Server::answering(|asked| match asked.body.get("max_tokens") {
        Some(_) => Reply::json(
            400,
            json!({ "error": { "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter" } }),
        ),
        None => body(&[Say::Text("done")]),
    })
    .await;
    let mut config = server.config(ProviderKind::OpenAi);
    config.max_output_tokens = Some(100);
    let session = session(config.build(&|_| None).unwrap());
    assert_eq!(ask(&session, "go").await.end, EndReason::Answered);
    let asked = server.asked();
    assert_eq!(asked.last().unwrap().body["max_completion_tokens"], 100);
}

#[tokio::test]
async fn a_refusal_that_teaches_nothing_is_told_once() {
    let refusal = json!({ "error": { "message": "no", "type": "invalid_request_error" } });
    let server = Server::start(vec![Reply::json(400, refusal)]).await;
    let session = session(server.provider(ProviderKind::OpenAi));
    let end = ask(&session, "go").await.end;
    assert!(matches!(end, EndReason::Failed(_)), "{end:?}");
    assert_eq!(server.asked().len(), 1);
}

/// OpenRouter streams one thought of Claude's in pieces, and its signature last.
#[tokio::test]
async fn a_signed_thought_that_came_in_pieces_goes_back_whole() {
    let kind = ProviderKind::OpenAi;
    let piece = |more: Value| {
        let mut detail =
            json!({ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0 });
        for (key, value) in more.as_object().unwrap() {
            detail[key] = value.clone();
        }
        let delta = json!({ "role": "assistant", "content": "", "reasoning_details": [detail] });
        wire::frame(
            kind,
            &json!({ "choices": [{ "index": 0, "delta": delta }] }),
        )
    };
    let mut thinks = [
        piece(json!({ "text": "Let me" })),
        piece(json!({ "text": " see." })),
        piece(json!({ "signature": "S" })),
    ]
    .concat();
    thinks.push_str(&wire::body(kind, &[call("call_1", "work", "{}")]));
    let whole = json!([{ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0,
        "text": "Let me see.", "signature": "S" }]);
    let server = Server::answering(move |asked| {
        let messages = asked.body["messages"].as_array().unwrap();
        let called = messages.iter().find(|m| m.get("tool_calls").is_some());
        match called {
            None => Reply::stream(kind, thinks.clone()),
            Some(message) if message["reasoning_details"] == whole => body(&[Say::Text("done")]),
            Some(message) => Reply::json(
                400,
                json!({ "error": { "code": 400, "message": format!("messages.1.content.0: Invalid `signature` in `thinking` block: {message}") } }),
            ),
        }
    })
    .await;
    let session = session(server.provider(kind));
    assert_eq!(ask(&session, "go").await.end, EndReason::Answered);
}

#[tokio::test]
async fn a_blocked_request_is_refused_in_words_whatever_status_tells_it() {
    let flagged =
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.";
    let openai = [
        (
            400,
            json!({ "message": "The response was filtered due to the prompt triggering the content management policy.",
            "type": null, "param": "prompt", "code": "content_filter", "status": 400,
            "innererror": { "code": "ResponsibleAIPolicyViolation" } }),
        ),
        (
            400,
            json!({ "message": flagged, "type": "invalid_request_error", "code": "invalid_prompt" }),
        ),
        (
            403,
            json!({ "code": 403, "message": "Your input was flagged", "metadata": { "reasons": ["violence"] } }),
        ),
        (
            400,
            json!({ "message": "Content Exists Risk", "type": "invalid_request_error", "code": "invalid_request_error" }),
        ),
        (
            400,
            json!({ "message": "The request was rejected because it was considered high risk", "type": "content_filter" }),
        ),
    ];
    let mut cases: Vec<(ProviderKind, Reply)> = Vec::new();
    for (status, error) in openai {
        cases.push((
            ProviderKind::OpenAi,
            Reply::json(status, json!({ "error": error })),
        ));
    }
    let failed = json!({ "type": "response.failed", "response": { "status": "failed",
        "error": { "code": "invalid_prompt", "message": flagged } } });
    let failed = wire::frame(ProviderKind::Responses, &failed);
    cases.push((
        ProviderKind::Responses,
        Reply::stream(ProviderKind::Responses, failed),
    ));
    for (kind, blocked) in cases {
        let about = format!("{blocked:?}");
        let well = Reply::stream(kind, wire::body(kind, &[Say::Text("done")]));
        let server = Server::start(vec![blocked, well]).await;
        let session = session(server.provider(kind));
        let outcome = ask(&session, "something").await;
        assert_eq!(outcome.stop, Some(StopReason::BlockedPrompt), "{about}");
        let EndReason::Refused(why) = &outcome.end else {
            panic!("{about}: {:?}", outcome.end);
        };
        assert!(why.contains("blocked the request"), "{why}");
        assert_eq!(server.asked().len(), 1, "it is not asked twice: {about}");
        assert_eq!(
            ask(&session, "something else").await.end,
            EndReason::Answered
        );
    }
}

#[tokio::test]
async fn a_window_that_a_stream_finds_too_small_is_no_failure_of_the_server() {
    let kind = ProviderKind::Responses;
    let failed = json!({ "type": "response.failed", "response": { "status": "failed",
        "error": { "code": "context_length_exceeded", "message": "Your input exceeds the context window of this model." } } });
    let failed = Reply::stream(kind, wire::frame(kind, &failed));
    let well = Reply::stream(kind, wire::body(kind, &[Say::Text("done")]));
    let server = Server::start(vec![failed, well]).await;
    let session = session(server.provider(kind));
    let mut turn = session.say("go").unwrap();
    let mut notices = Vec::new();
    loop {
        match within(turn.next()).await.unwrap() {
            SessionEvent::Notice { text } => notices.push(text),
            SessionEvent::Waiting { why, .. } => panic!("waited: {why}"),
            SessionEvent::End(outcome) => break assert_eq!(outcome.end, EndReason::Answered),
            _ => {}
        }
    }
    assert!(
        notices.iter().any(|text| text.contains("too long")),
        "{notices:?}"
    );
}

#[tokio::test]
async fn the_model_that_stood_in_is_named() {
    let busy = Reply::json(503, json!({ "error": { "message": "overloaded" } }));
    let first = Server::start(vec![busy]).await;
    let second = Server::start(vec![body(&[Say::Text("done")])]).await;
    let mut config = first.config(ProviderKind::OpenAi);
    config.retries = Some(0);
    let mut other = second.config(ProviderKind::OpenAi);
    other.model = "model-2".into();
    let chain = Fallback::new(
        config.build(&|_| None).unwrap(),
        vec![other.build(&|_| None).unwrap()],
    );
    let session = session(Arc::new(chain));
    let mut turn = session.say("go").unwrap();
    let mut notices = Vec::new();
    let outcome = loop {
        match within(turn.next()).await.unwrap() {
            SessionEvent::Notice { text } => notices.push(text),
            SessionEvent::End(outcome) => break outcome,
            _ => {}
        }
    };
    assert_eq!(outcome.end, EndReason::Answered);
    assert_eq!(outcome.model.as_deref(), Some("model-2"));
    assert!(
        notices.iter().any(|text| text.contains("gave no answer")),
        "{notices:?}"
    );
}

#[tokio::test]
async fn an_answer_of_claudes_that_came_whole_is_read() {
    let kind = ProviderKind::Anthropic;
    let whole = |content: Value, stop: &str| {
        Reply::json(
            200,
            json!({ "id": "m", "type": "message", "role": "assistant", "model": "c",
            "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": { "input_tokens": 11, "output_tokens": 7 } }),
        )
    };
    let server = Server::start(vec![
        whole(
            json!([{ "type": "thinking", "thinking": "hm", "signature": "signed hm" },
                { "type": "tool_use", "id": "toolu_1", "name": "work", "input": {} }]),
            "tool_use",
        ),
        whole(json!([{ "type": "text", "text": "done" }]), "end_turn"),
    ])
    .await;
    let session = session(server.provider(kind));
    let outcome = ask(&session, "go").await;
    assert_eq!(
        (&outcome.end, outcome.text()),
        (&EndReason::Answered, "done".into())
    );
    assert_eq!(outcome.usage.total(), 36);
    let asked = server.asked();
    assert_eq!(
        asked[1].body["messages"][1]["content"][0]["signature"],
        "signed hm"
    );
}

#[tokio::test]
async fn a_signature_of_geminis_that_came_alone_goes_back_with_its_empty_text() {
    let kind = ProviderKind::Gemini;
    let alone = json!({ "candidates": [{ "content": { "role": "model",
        "parts": [{ "text": "", "thoughtSignature": "S" }] }, "finishReason": "STOP", "index": 0 }] });
    let server = Server::start(vec![
        Reply::stream(kind, wire::frame(kind, &alone)),
        Reply::stream(kind, wire::body(kind, &[Say::Text("done")])),
    ])
    .await;
    let session = session(server.provider(kind));
    ask(&session, "go").await;
    assert_eq!(ask(&session, "and?").await.end, EndReason::Answered);
}

#[tokio::test]
async fn a_limit_for_one_reply_is_kept_where_it_is_the_smaller() {
    for (kind, at) in [
        (ProviderKind::OpenAi, "/max_tokens"),
        (ProviderKind::Responses, "/max_output_tokens"),
        (ProviderKind::Anthropic, "/max_tokens"),
        (ProviderKind::Gemini, "/generationConfig/maxOutputTokens"),
        (ProviderKind::Ollama, "/options/num_predict"),
    ] {
        for (own, here, sent) in [
            (None, Some(77), 77),
            (Some(50), Some(77), 50),
            (Some(99), Some(77), 77),
            (Some(99), None, 99),
        ] {
            let well = Reply::stream(kind, wire::body(kind, &[Say::Text("done")]));
            let server = Server::start(vec![well]).await;
            let mut config = server.config(kind);
            config.max_output_tokens = own;
            let context = Context {
                max_output: here,
                ..Context::default()
            };
            let provider = config.build(&|_| None).unwrap();
            within(provider.generate("go", &context)).await.unwrap();
            let asked = server.asked();
            assert_eq!(
                asked[0].body.pointer(at),
                Some(&json!(sent)),
                "{kind:?} {own:?} {here:?}"
            );
        }
    }
}
