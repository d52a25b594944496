//! What servers that speak like OpenAI do differently.

use super::*;
use crate::provider::Fold;
use crate::provider::names::{NameMap, NameRule};
use crate::segment::ProviderResponse;
use std::time::Duration;

fn read(frames: &[Value]) -> ProviderResponse {
    let tools = WireTools {
        names: NameMap::new(NameRule::Plain, ["fs.read"]),
        json: None,
        fingerprint: 0,
    };
    let mut chunks = Chunks::new("p", Arc::new(tools));
    let mut events = Vec::new();
    for frame in frames {
        chunks.frame(&frame.to_string(), &mut events).unwrap();
    }
    chunks.frame("[DONE]", &mut events).unwrap();
    chunks.end(&mut events).unwrap();
    let mut fold = Fold::new("p");
    events.into_iter().for_each(|event| fold.push(event));
    fold.finish(Duration::ZERO)
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta }] })
}

fn calls(reply: &ProviderResponse) -> Vec<(String, Value)> {
    reply
        .calls()
        .map(|call| (call.name.clone(), call.args.clone()))
        .collect()
}

#[test]
fn calls_that_all_have_the_index_nought_are_told_apart_by_id() {
    let call = |id: &str, n: u32| json!({ "index": 0, "id": id, "function": { "name": "t", "arguments": json!({ "n": n }).to_string() } });
    let reply = read(&[
        delta(json!({ "tool_calls": [call("a", 1)] })),
        delta(json!({ "tool_calls": [call("b", 2)] })),
    ]);
    assert_eq!(
        calls(&reply),
        [
            ("t".into(), json!({ "n": 1 })),
            ("t".into(), json!({ "n": 2 }))
        ]
    );
}

#[test]
fn calls_without_an_index_or_an_id_are_put_together() {
    let reply = read(&[
        delta(
            json!({ "tool_calls": [{ "id": "a", "function": { "name": "t", "arguments": "{\"n\":" } }] }),
        ),
        delta(json!({ "tool_calls": [{ "function": { "arguments": "1}" } }] })),
        delta(
            json!({ "tool_calls": [{ "id": "b", "function": { "name": "u", "arguments": {} } }] }),
        ),
    ]);
    assert_eq!(
        calls(&reply),
        [("t".into(), json!({ "n": 1 })), ("u".into(), json!({}))]
    );
}

#[test]
fn a_name_that_comes_late_or_never_loses_no_arguments() {
    let reply = read(&[
        delta(
            json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "arguments": "{\"n\"" } }] }),
        ),
        delta(
            json!({ "tool_calls": [{ "index": 0, "function": { "name": "fs_read", "arguments": ":1}" } }] }),
        ),
        delta(
            json!({ "tool_calls": [{ "index": 1, "id": "b", "function": { "arguments": "{}" } }] }),
        ),
    ]);
    assert_eq!(
        calls(&reply),
        [
            ("fs.read".into(), json!({ "n": 1 })),
            (String::new(), json!({}))
        ]
    );
}

#[test]
fn a_name_that_is_sent_again_is_one_call() {
    let piece = |args: &str| json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "t", "arguments": args } }] });
    let reply = read(&[delta(piece("{\"n\":")), delta(piece("1}"))]);
    assert_eq!(calls(&reply), [("t".into(), json!({ "n": 1 }))]);
}

#[test]
fn unknown_fields_are_kept_for_the_way_back() {
    let reply = read(&[
        delta(json!({ "reasoning_details": [{ "text": "a" }], "signature": "x" })),
        delta(json!({ "reasoning_details": [{ "text": "b" }], "signature": "y" })),
        delta(
            json!({ "tool_calls": [{ "index": 0, "id": "a", "extra_content": { "google": { "thought_signature": "s" } },
            "function": { "name": "t", "arguments": "{}" } }] }),
        ),
    ]);
    let items: Vec<_> = reply
        .segments
        .iter()
        .filter_map(|segment| match segment {
            ContentSegment::Provider { item, .. } => Some(item.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        items[0]["fields"]["extra_content"]["google"]["thought_signature"],
        "s"
    );
    assert_eq!(
        items[1]["message"]["reasoning_details"],
        json!([{ "text": "a" }, { "text": "b" }])
    );
    assert_eq!(items[1]["message"]["signature"], "xy");
}

#[test]
fn a_whole_completion_and_a_refusal_are_read_too() {
    let whole = json!({ "model": "m", "choices": [{ "index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": null, "refusal": "I cannot help with that." } }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": { "cached_tokens": 1 } } });
    let reply = read(&[whole]);
    assert_eq!(reply.text(), "I cannot help with that.");
    assert_eq!(reply.metadata.stop_reason, Some(StopReason::Refusal));
    assert_eq!(
        reply.metadata.usage.map(|usage| usage.cached_tokens),
        Some(1)
    );
}

#[test]
fn sound_comes_as_one_piece_with_its_words() {
    let reply = read(&[
        delta(json!({ "audio": { "id": "audio_1", "transcript": "hel" } })),
        delta(json!({ "audio": { "data": "AAE=", "transcript": "lo" } })),
        delta(json!({ "audio": { "data": "AgM=" } })),
    ]);
    assert_eq!(reply.text(), "hello");
    let sound = ContentSegment::Audio(Media::base64("audio/pcm", "AAECAw=="));
    assert!(reply.segments.contains(&sound), "{:?}", reply.segments);
}

#[test]
fn frames_of_any_other_shape_do_no_harm() {
    for frame in [
        "null",
        "[]",
        "7",
        "{}",
        "{\"choices\":7}",
        "{\"choices\":[{}]}",
        "{\"choices\":[{\"delta\":[]}]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[null,7,{}]}}]}",
        "{\"usage\":7}",
    ] {
        let reply = read(&[serde_json::from_str(frame).unwrap()]);
        assert!(reply.text().is_empty());
    }
}

#[test]
fn usage_within_a_choice_and_fields_nobody_knows_are_kept() {
    let reply = read(&[
        json!({ "system_fingerprint": "fp", "choices": [{ "index": 0, "delta": { "content": "x" } }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop", "logprobs": { "a": 1 },
            "usage": { "prompt_tokens": 3, "completion_tokens": 2 } }] }),
    ]);
    assert_eq!(reply.metadata.usage.unwrap().total(), 5);
    assert_eq!(reply.metadata.extra["system_fingerprint"], "fp");
    assert_eq!(reply.metadata.extra["logprobs"]["a"], 1);
}
