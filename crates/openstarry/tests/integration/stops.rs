//! Why the model stopped is told, and what follows from it.

use crate::support::wire::{self, Say, call};
use crate::support::{ALL, Reply, Server, within};
use openstarry::provider::ProviderKind;
use openstarry::segment::{ContentSegment, StopReason};
use openstarry::session::{Agent, EndReason, Outcome, SessionState, Settings};
use openstarry::tool::{FnTool, Registry, Risk, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

/// What an API says in place of its usual finish.
fn finished_with(kind: ProviderKind, says: &[Say], stop: &StopReason) -> Option<String> {
    let mut frames = wire::frames(kind, says);
    let (from, to): (Value, Value) = match (kind, stop) {
        (ProviderKind::OpenAi, StopReason::MaxTokens) => finish("finish_reason", "length"),
        (ProviderKind::OpenAi, StopReason::ContentFilter) => {
            finish("finish_reason", "content_filter")
        }
        (ProviderKind::OpenAi, StopReason::Other(word)) => finish("finish_reason", word),
        (ProviderKind::OpenAi, StopReason::ContextFull) => finish("finish_reason", "model_length"),
        (ProviderKind::Anthropic, StopReason::MaxTokens) => finish("stop_reason", "max_tokens"),
        (ProviderKind::Anthropic, StopReason::Refusal) => finish("stop_reason", "refusal"),
        (ProviderKind::Anthropic, StopReason::Pause) => finish("stop_reason", "pause_turn"),
        (ProviderKind::Anthropic, StopReason::ContextFull) => {
            finish("stop_reason", "model_context_window_exceeded")
        }
        (ProviderKind::Gemini, StopReason::MaxTokens) => finish("finishReason", "MAX_TOKENS"),
        (ProviderKind::Gemini, StopReason::ContentFilter) => {
            finish("finishReason", "PROHIBITED_CONTENT")
        }
        (ProviderKind::Gemini, StopReason::BlockedPrompt) => {
            let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
            return Some(wire::frame(kind, &blocked));
        }
        (ProviderKind::Ollama, StopReason::MaxTokens) => finish("done_reason", "length"),
        (ProviderKind::Responses, StopReason::MaxTokens | StopReason::ContentFilter) => {
            let why = match stop {
                StopReason::MaxTokens => "max_output_tokens",
                _ => "content_filter",
            };
            frames.pop();
            frames.push(wire::frame(
                kind,
                &json!({ "type": "response.incomplete",
                "response": { "status": "incomplete", "incomplete_details": { "reason": why } } }),
            ));
            return Some(frames.concat());
        }
        _ => return None,
    };
    let key = from.as_str().unwrap_or_default();
    for frame in &mut frames {
        for usual in ["stop", "tool_calls", "end_turn", "tool_use", "STOP"] {
            *frame = frame.replace(
                &format!("\"{key}\":\"{usual}\""),
                &format!("\"{key}\":{to}"),
            );
        }
    }
    Some(frames.concat())
}

fn finish(key: &str, word: &str) -> (Value, Value) {
    (key.into(), word.into())
}

async fn outcome(kind: ProviderKind, bodies: Vec<String>) -> (Outcome, Server) {
    let replies = bodies.into_iter().map(|body| Reply::stream(kind, body));
    let server = Server::start(replies.collect()).await;
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let spec = ToolSpec::new("work", "Work.", Risk::Safe, schema);
    let registry = Registry::new();
    let work = FnTool::new(spec, async |_| Ok(vec![ContentSegment::text("worked")]));
    registry.add(vec![Arc::new(work)]).unwrap();
    let agent = Agent::new(server.provider(kind), registry, Settings::default());
    let session = agent.session(SessionState::new("s"), None);
    let outcome = within(session.say("go").unwrap().outcome()).await;
    (outcome, server)
}

#[tokio::test]
async fn an_answer_that_is_not_finished_is_never_answered() {
    let cut = |end: &EndReason| matches!(end, EndReason::Incomplete(_));
    let refused = |end: &EndReason| matches!(end, EndReason::Refused(_));
    type Fits = fn(&EndReason) -> bool;
    let reasons: [(StopReason, Fits, &str); 6] = [
        (StopReason::MaxTokens, cut, "limit of output tokens"),
        (StopReason::ContextFull, cut, "context window"),
        (StopReason::Other("abort".into()), cut, "abort"),
        (StopReason::Refusal, refused, "refused"),
        (StopReason::ContentFilter, refused, "filter"),
        (StopReason::BlockedPrompt, refused, "blocked"),
    ];
    let mut seen = 0;
    for kind in ALL {
        for (stop, fits, words) in &reasons {
            for says in [vec![Say::Text("as I was")], vec![]] {
                let Some(body) = finished_with(kind, &says, stop) else {
                    continue;
                };
                seen += 1;
                let (outcome, _) = outcome(kind, vec![body]).await;
                assert_eq!(outcome.stop.as_ref(), Some(stop), "{kind:?}");
                assert_eq!(outcome.trace.last().unwrap().stop(), Some(stop), "{kind:?}");
                assert!(fits(&outcome.end), "{kind:?} {stop}: {:?}", outcome.end);
                let json = serde_json::to_value(&outcome).unwrap();
                assert_eq!(json["stop"], stop.to_string().as_str());
                let told = json["end"]["detail"].as_str().unwrap();
                assert!(told.contains(words), "{kind:?} {stop}: {told}");
            }
        }
    }
    assert!(seen >= 20, "{seen}");
}

#[tokio::test]
async fn a_finished_answer_says_so() {
    for kind in ALL {
        let (outcome, _) = outcome(kind, vec![wire::body(kind, &[Say::Text("done")])]).await;
        assert_eq!(outcome.end, EndReason::Answered, "{kind:?}");
        assert_eq!(outcome.stop, Some(StopReason::EndTurn), "{kind:?}");
    }
}

#[tokio::test]
async fn a_refusal_in_words_is_an_error_with_the_words_kept() {
    let chat = json!({ "choices": [{ "index": 0, "delta": { "refusal": "I cannot help." }, "finish_reason": "stop" }] });
    let chat = wire::frame(ProviderKind::OpenAi, &chat);
    let responses = [
        json!({ "type": "response.refusal.delta", "output_index": 0, "delta": "I cannot help." }),
        json!({ "type": "response.completed", "response": { "status": "completed" } }),
    ];
    let responses = responses
        .map(|frame| wire::frame(ProviderKind::Responses, &frame))
        .concat();
    for (kind, body) in [
        (ProviderKind::OpenAi, chat),
        (ProviderKind::Responses, responses),
    ] {
        let (outcome, _) = outcome(kind, vec![body]).await;
        assert!(
            matches!(outcome.end, EndReason::Refused(_)),
            "{kind:?}: {:?}",
            outcome.end
        );
        assert_eq!(outcome.text(), "I cannot help.");
    }
}

#[tokio::test]
async fn a_call_that_the_limit_cut_is_answered_with_words_that_say_so_and_does_not_run() {
    for kind in ALL {
        let cuts: [Vec<&'static str>; 2] = match kind {
            // These send arguments whole.
            ProviderKind::Gemini | ProviderKind::Ollama => continue,
            _ => [vec!["{\"n\":"], vec![]],
        };
        for parts in cuts {
            let says = [Say::Call("a", "work", parts)];
            let cut = finished_with(kind, &says, &StopReason::MaxTokens).unwrap();
            let (outcome, _) =
                outcome(kind, vec![cut, wire::body(kind, &[Say::Text("sorry")])]).await;
            assert_eq!(outcome.end, EndReason::Answered, "{kind:?}");
            let result = &outcome.trace[0].results()[0];
            assert!(
                result.is_error && result.text().contains("limit of output tokens"),
                "{kind:?}: {}",
                result.text()
            );
            assert_eq!(outcome.trace[0].stop(), Some(&StopReason::MaxTokens));
        }
        // A call before it is whole, and runs.
        let says = [
            call("a", "work", "{\"n\":1}"),
            Say::Call("b", "work", vec!["{\"n\""]),
        ];
        let cut = finished_with(kind, &says, &StopReason::MaxTokens).unwrap();
        let (outcome, _) = outcome(kind, vec![cut, wire::body(kind, &[Say::Text("ok")])]).await;
        let errors: Vec<bool> = outcome.trace[0]
            .results()
            .iter()
            .map(|r| r.is_error)
            .collect();
        assert_eq!(errors, [false, true], "{kind:?}");
    }
}

#[tokio::test]
async fn a_call_without_arguments_that_anything_else_cut_does_not_run_either() {
    for (kind, stop, words) in [
        (
            ProviderKind::Anthropic,
            StopReason::ContextFull,
            "filled the context window",
        ),
        (
            ProviderKind::OpenAi,
            StopReason::Other("insufficient_system_resource".into()),
            "insufficient_system_resource",
        ),
    ] {
        let cut = finished_with(kind, &[Say::Call("a", "work", vec![])], &stop).unwrap();
        let (outcome, _) = outcome(kind, vec![cut, wire::body(kind, &[Say::Text("sorry")])]).await;
        let result = &outcome.trace[0].results()[0];
        assert!(
            result.is_error && result.text().contains(words),
            "{kind:?}: {}",
            result.text()
        );
    }
}

#[tokio::test]
async fn a_paused_turn_goes_on_by_itself() {
    let kind = ProviderKind::Anthropic;
    let paused = finished_with(kind, &[Say::Text("Searching.")], &StopReason::Pause).unwrap();
    let (outcome, server) =
        outcome(kind, vec![paused, wire::body(kind, &[Say::Text("Found.")])]).await;
    assert_eq!(
        (outcome.end, outcome.segments),
        (EndReason::Answered, vec![ContentSegment::text("Found.")])
    );
    let asked = server.asked();
    let last = asked[1].body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(last["role"], "assistant");
    assert_eq!(last["content"][0]["text"], "Searching.");
}
