use super::*;
use serde_json::json;

#[test]
fn the_documents_json_reads_and_writes_unchanged() {
    let document = json!({
        "segments": [
            { "type": "text", "text": "Sure, let me check." },
            { "type": "tool_call", "toolCall": { "name": "get_weather", "args": { "location": "Taipei" } } },
            { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
            { "type": "audio", "data": "https://example.com/a.mp3", "mimeType": "audio/mp3" },
            { "type": "video", "data": "https://example.com/v.mp4", "mimeType": "video/mp4" },
            { "type": "ui", "ui": { "button": "OK" } }
        ]
    });
    let response: ProviderResponse = serde_json::from_value(document.clone()).unwrap();
    let back = serde_json::to_value(&response).unwrap();
    assert_eq!(back["segments"], document["segments"]);
    assert!(matches!(
        &response.segments[3],
        ContentSegment::Audio(Media { data: MediaData::Url(url), .. }) if url.ends_with("a.mp3")
    ));
}

#[test]
fn a_segment_of_an_unknown_type_is_refused() {
    let read = serde_json::from_value::<ContentSegment>(json!({ "type": "smell", "data": "x" }));
    assert!(read.is_err());
}

#[test]
fn the_segments_of_the_loop_survive_a_round_trip() {
    let segments = vec![
        ContentSegment::Reasoning { text: "hm".into() },
        ContentSegment::Provider {
            provider: "anthropic".into(),
            item: json!({ "signature": "abc" }),
        },
        ContentSegment::ToolResult {
            tool_result: ToolResult {
                id: "1".into(),
                name: "t".into(),
                content: vec![ContentSegment::text("no")],
                is_error: true,
            },
        },
        ContentSegment::ToolCall {
            tool_call: ToolCall {
                id: None,
                name: "t".into(),
                args: Value::Null,
                broken: Some(BrokenArgs {
                    raw: "{\"a".into(),
                    error: "EOF".into(),
                }),
            },
        },
    ];
    let text = serde_json::to_string(&segments).unwrap();
    assert_eq!(
        serde_json::from_str::<Vec<ContentSegment>>(&text).unwrap(),
        segments
    );
}

#[test]
fn a_data_url_becomes_base64_with_its_type() {
    let media = Media::url("data:image/webp;base64,UklGRg==", None);
    assert_eq!(media, Media::base64("image/webp", "UklGRg=="));
    assert_eq!(
        Media::url("https://example.com/cat.JPG?x=1", None).kind(),
        Some(MediaKind::Image)
    );
}

#[test]
fn an_unknown_stop_reason_keeps_its_word() {
    let reason: StopReason = serde_json::from_value(json!("tired")).unwrap();
    assert_eq!(reason, StopReason::Other("tired".into()));
    assert_eq!(
        serde_json::to_value(StopReason::ToolUse).unwrap(),
        "tool_use"
    );
}

#[test]
fn metadata_of_any_shape_is_kept_and_written_back() {
    for metadata in [
        json!({ "model": "m", "stopReason": "refusal", "seed": 7, "nested": { "a": [1] } }),
        json!({ "usage": "eleven", "latencyMs": "soon", "warnings": { "n": 1 } }),
        json!({ "usage": { "inputTokens": 1, "outputTokens": 2, "cachedTokens": 0, "estimated": false } }),
    ] {
        let document = json!({ "segments": [], "metadata": metadata });
        let response: ProviderResponse = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(serde_json::to_value(&response).unwrap(), document);
    }
    let odd: ProviderResponse =
        serde_json::from_value(json!({ "segments": [], "metadata": "any" })).unwrap();
    assert_eq!(odd.metadata.extra["value"], "any");
}

#[test]
fn a_stop_reason_is_shown_as_it_is_written() {
    for reason in [
        StopReason::EndTurn,
        StopReason::ContextFull,
        StopReason::BlockedPrompt,
        StopReason::Other("tired".into()),
    ] {
        assert_eq!(
            serde_json::to_value(&reason).unwrap(),
            reason.to_string().as_str()
        );
    }
}
