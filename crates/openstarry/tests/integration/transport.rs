//! The way to a model's API: what is tried again, how long is waited, what is hung up, and what a
//! request carries beside its body.

use crate::conformance::{ask, context};
use crate::support::wire::{self, Say};
use crate::support::{ALL, Piece, Reply, Server, within};
use futures_util::StreamExt;
use openstarry::pain::AgentPain;
use openstarry::provider::{Event, ProviderConfig, ProviderKind};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn too_many_requests_are_waited_for_as_the_api_asks() {
    for kind in ALL {
        let busy = Reply::json(429, json!({ "error": { "message": "slow down" } }))
            .header("retry-after", "1");
        let good = Reply::stream(kind, wire::body(kind, &[Say::Text("hi")]));
        let server = Server::start(vec![busy, good]).await;
        let started = Instant::now();
        let reply = within(server.provider(kind).generate("hello", &context()))
            .await
            .unwrap();
        assert_eq!(reply.text(), "hi", "{kind:?}");
        assert!(started.elapsed() >= Duration::from_secs(1), "{kind:?}");
        assert_eq!(server.asked().len(), 2);
    }
}

#[tokio::test]
async fn a_wait_beyond_the_time_limit_fails_at_once_with_the_wait() {
    for kind in ALL {
        let busy = Reply::json(429, json!({ "error": "slow down" })).header("retry-after", "3600");
        let pain = ask(kind, busy).await.unwrap_err();
        assert!(pain.to_string().contains("wait 60 min"), "{pain}");
        let AgentPain::RateLimited { retry_after, .. } = pain else {
            panic!("{kind:?}: {pain}");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(3600)));

        // More than a clock can hold.
        let down = Reply::json(503, json!({})).header("retry-after", "10000000000000000000");
        let pain = ask(kind, down).await.unwrap_err();
        let AgentPain::Unavailable { retry_after, .. } = pain else {
            panic!("{kind:?}: {pain}");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(86_400)));
    }
}

#[tokio::test]
async fn a_failing_api_is_tried_again_and_a_refusal_is_not() {
    for kind in ALL {
        let server = Server::start(vec![
            Reply::json(500, json!({ "error": { "message": "oops" } })),
            Reply::json(503, json!({})),
            Reply::stream(kind, wire::body(kind, &[Say::Text("hi")])),
        ])
        .await;
        let reply = within(server.provider(kind).generate("x", &context()))
            .await
            .unwrap();
        assert_eq!(
            (reply.text().as_str(), server.asked().len()),
            ("hi", 3),
            "{kind:?}"
        );

        for (status, is_key) in [(400, false), (401, true), (404, false)] {
            let server = Server::start(vec![Reply::json(
                status,
                json!({ "error": { "message": "no good" } }),
            )])
            .await;
            let pain = within(server.provider(kind).generate("x", &context()))
                .await
                .unwrap_err();
            assert_eq!(
                matches!(pain, AgentPain::Key(_)),
                is_key,
                "{kind:?}: {pain}"
            );
            assert!(pain.to_string().contains("no good"), "{kind:?}: {pain}");
            assert_eq!(server.asked().len(), 1, "{kind:?}");
        }
    }
}

#[tokio::test]
async fn an_error_as_the_first_event_is_tried_again_like_a_status() {
    for kind in ALL {
        let begun = match kind {
            // The head of a message is no word of it.
            ProviderKind::Anthropic | ProviderKind::Responses => {
                wire::frames(kind, &[]).swap_remove(0)
            }
            _ => String::new(),
        };
        let server = Server::start(vec![
            Reply::stream(kind, begun + &wire::failure(kind)),
            Reply::stream(kind, wire::body(kind, &[Say::Text("hi")])),
        ])
        .await;
        let provider = server.provider(kind);
        let context = context();
        let mut events = provider.stream("x", &context);
        let mut waited = false;
        let mut said = String::new();
        while let Some(event) = within(events.next()).await {
            match event.unwrap() {
                Event::Waiting { why, .. } => {
                    assert!(why.contains("boom"), "{kind:?}: {why}");
                    waited = true;
                }
                Event::Text(text) => said.push_str(&text),
                _ => {}
            }
        }
        assert_eq!((said.as_str(), waited), ("hi", true), "{kind:?}");
        assert_eq!(server.asked().len(), 2, "{kind:?}");
    }
}

#[tokio::test]
async fn a_request_that_a_stream_refuses_is_not_sent_again() {
    let kind = ProviderKind::Anthropic;
    let error = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no good" } });
    let server = Server::start(vec![Reply::stream(kind, wire::frame(kind, &error))]).await;
    let pain = within(server.provider(kind).generate("x", &context())).await;
    assert!(matches!(pain, Err(AgentPain::Refused { .. })), "{pain:?}");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_stream_may_last_longer_than_any_silence_in_it_may() {
    let slowly = ALL.map(|kind| async move {
        let mut pieces = Vec::new();
        for frame in wire::frames(
            kind,
            &[Say::Text("a b"), Say::Text("c d"), Say::Text("e f")],
        ) {
            pieces.push(Piece::Pause(Duration::from_millis(600)));
            pieces.push(Piece::Bytes(frame.into()));
        }
        let server = Server::start(vec![Reply::pieces(kind, pieces)]).await;
        let mut config = server.config(kind);
        // The whole takes longer than these; no silence comes near them.
        config.first_byte_seconds = Some(3.0);
        config.stall_seconds = Some(3.0);
        let provider = config.build(&|_| None).unwrap();
        let reply = within(provider.generate("x", &context())).await.unwrap();
        assert_eq!(reply.text().replace('\n', ""), "a bc de f", "{kind:?}");
    });
    futures_util::future::join_all(slowly).await;
}

#[tokio::test]
async fn silence_before_the_first_byte_has_a_limit_of_its_own() {
    for kind in ALL {
        let server = Server::start(vec![Reply::pieces(kind, vec![Piece::Stall])]).await;
        let mut config = server.config(kind);
        config.first_byte_seconds = Some(0.05);
        let provider = config.build(&|_| None).unwrap();
        let pain = within(provider.generate("x", &context())).await;
        let pain = pain.unwrap_err();
        assert!(matches!(pain, AgentPain::Silent(_)), "{kind:?}: {pain}");
        assert!(pain.to_string().contains("first_byte_seconds"), "{pain}");
    }
}

#[tokio::test]
async fn headers_and_the_query_of_an_address_go_with_every_request() {
    let kind = ProviderKind::OpenAi;
    let reply = Reply::stream(kind, wire::body(kind, &[Say::Text("hi")]));
    let server = Server::start(vec![reply]).await;
    let mut config = server.config(kind);
    config.base_url = Some(format!(
        "{}/openai/deployments/d?api-version=2024-10-21",
        server.url
    ));
    config.key_header = Some("api-key".into());
    let headers = [("anthropic-beta", "a,b"), ("x-org", "$ORG")];
    config.headers = headers
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let env = |name: &str| match name {
        "OPENAI_API_KEY" => Some("sk-secret".to_owned()),
        "ORG" => Some("us".to_owned()),
        _ => None,
    };
    let provider = config.build(&env).unwrap();
    within(provider.generate("x", &context())).await.unwrap();
    let asked = &server.asked()[0];
    assert_eq!(
        asked.path,
        "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    );
    for header in ["api-key: sk-secret", "anthropic-beta: a,b", "x-org: us"] {
        assert!(asked.head.contains(header), "{header}: {}", asked.head);
    }
    assert!(!asked.head.contains("Bearer"), "{}", asked.head);
    assert!(config.build(&|_| None).is_err(), "a variable is missing");
}

#[tokio::test]
async fn a_web_page_in_place_of_an_answer_is_told_in_words() {
    for kind in ALL {
        for status in [200, 404] {
            let page = Reply {
                status,
                headers: vec![("content-type", "text/html; charset=utf-8".into())],
                pieces: vec![Piece::Bytes(
                    "<html><head><title>Welcome</title></head><body>hi</body></html>".into(),
                )],
            };
            let pain = ask(kind, page).await.unwrap_err().to_string();
            assert!(
                pain.contains("web page (Welcome)") && pain.contains("base_url"),
                "{kind:?}: {pain}"
            );
            assert!(!pain.contains("<html>"), "{pain}");
        }
    }
}

#[tokio::test]
async fn a_server_out_of_reach_is_named() {
    let mut config = ProviderConfig::new(ProviderKind::Ollama, "m");
    config.base_url = Some("http://127.0.0.1:1".into());
    config.retries = Some(0);
    let provider = config.build(&|_| None).unwrap();
    let pain = within(provider.generate("x", &context())).await;
    let pain = pain.unwrap_err().to_string();
    assert!(pain.contains("http://127.0.0.1:1"), "{pain}");
}

#[tokio::test]
async fn each_server_tells_its_models() {
    for (kind, answer) in [
        (
            ProviderKind::OpenAi,
            json!({ "object": "list", "data": [{ "id": "m-1", "object": "model", "created": 5 }] }),
        ),
        (
            ProviderKind::Responses,
            json!({ "object": "list", "data": [{ "id": "m-1" }] }),
        ),
        (
            ProviderKind::Anthropic,
            json!({ "data": [{ "type": "model", "id": "m-1" }], "has_more": false }),
        ),
        (
            ProviderKind::Gemini,
            json!({ "models": [
            { "name": "models/m-1", "supportedGenerationMethods": ["generateContent"] },
            { "name": "models/e", "supportedGenerationMethods": ["embedContent"] }] }),
        ),
        (
            ProviderKind::Ollama,
            json!({ "models": [{ "name": "m-1", "model": "m-1" }] }),
        ),
    ] {
        let server = Server::start(vec![Reply::json(200, answer)]).await;
        let models = within(server.config(kind).models(&|_| None)).await.unwrap();
        let ids: Vec<_> = models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!(ids, ["m-1"], "{kind:?}");
    }
}

#[tokio::test]
async fn a_stalled_stream_ends_and_hangs_up() {
    for kind in ALL {
        let mut frames = wire::frames(kind, &[Say::Text("one two")]);
        frames.truncate(wire::opening(kind) + 1);
        let pieces = vec![Piece::Bytes(frames.concat().into()), Piece::Stall];
        let server = Server::start(vec![Reply::pieces(kind, pieces)]).await;
        let mut config = server.config(kind);
        config.stall_seconds = Some(1.0);
        let provider = config.build(&|_| None).unwrap();
        let pain = within(provider.generate("x", &context()))
            .await
            .unwrap_err();
        let AgentPain::Interrupted { cause, .. } = pain else {
            panic!("{kind:?}: {pain}");
        };
        assert!(matches!(*cause, AgentPain::Stalled(_)), "{kind:?}: {cause}");
        server.hung_up().await;
    }
}

#[tokio::test]
async fn an_answer_that_never_begins_times_out() {
    for kind in ALL {
        let server = Server::start(vec![Reply::pieces(kind, vec![Piece::Stall])]).await;
        let mut config = server.config(kind);
        config.timeout_seconds = Some(0.05);
        let provider = config.build(&|_| None).unwrap();
        let pain = within(provider.generate("x", &context()))
            .await
            .unwrap_err();
        assert!(matches!(pain, AgentPain::Timeout(_)), "{kind:?}: {pain}");
    }
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    for kind in ALL {
        let mut frames = wire::frames(kind, &[Say::Text("one two")]);
        frames.truncate(wire::opening(kind) + 1);
        let pieces = vec![Piece::Bytes(frames.concat().into()), Piece::Stall];
        let server = Server::start(vec![Reply::pieces(kind, pieces)]).await;
        let provider = server.provider(kind);
        let context = context();
        let mut events = provider.stream("x", &context);
        loop {
            match within(events.next()).await {
                Some(Ok(Event::Text(_))) => break,
                Some(Ok(_)) => {}
                other => panic!("{kind:?}: {other:?}"),
            }
        }
        drop(events);
        server.hung_up().await;
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    for kind in ALL {
        let long = vec![b'x'; 1 << 20];
        let server = Server::start(vec![Reply::pieces(kind, vec![Piece::Bytes(long); 40])]).await;
        let pain = within(server.provider(kind).generate("x", &context()))
            .await
            .unwrap_err();
        assert!(matches!(pain, AgentPain::TooLarge(_)), "{kind:?}: {pain}");
    }
}

#[tokio::test]
async fn the_key_goes_into_the_header_and_never_into_an_error() {
    for kind in ALL {
        let server = Server::start(vec![Reply::json(401, json!({}))]).await;
        let mut config = server.config(kind);
        config.key_env = Some("THE_KEY".into());
        let provider = config
            .build(&|name| (name == "THE_KEY").then(|| "sk-secret".into()))
            .unwrap();
        let pain = within(provider.generate("x", &context()))
            .await
            .unwrap_err();
        assert!(server.asked()[0].head.contains("sk-secret"), "{kind:?}");
        assert!(
            !format!("{pain:?} {pain}").contains("sk-secret"),
            "{kind:?}"
        );
        assert!(
            config.build(&|_| None).is_err(),
            "{kind:?}: a key that was asked for is missing"
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_hang_up_after_the_finish_costs_no_answer() {
    for kind in ALL {
        let body = wire::body(kind, &[Say::Text("all said")]);
        let pieces = vec![Piece::Bytes(body.into()), Piece::Stall];
        let server = Server::start(vec![Reply::pieces(kind, pieces)]).await;
        let mut config = server.config(kind);
        config.stall_seconds = Some(1.0);
        let provider = config.build(&|_| None).unwrap();
        let reply = within(provider.generate("x", &context())).await.unwrap();
        assert_eq!(reply.text(), "all said", "{kind:?}");
        server.hung_up().await;
    }
}
