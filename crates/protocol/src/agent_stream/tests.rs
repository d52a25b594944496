use super::*;

const MOST: usize = 1 << 20;

fn read_all(bytes: &[u8]) -> Result<Vec<Part>, StreamError> {
    let mut stream = AgentStream::new(MOST);
    stream.push(bytes)?;
    stream.finish()?;
    let mut parts = Vec::new();
    while let Some(part) = stream.next_part()? {
        parts.push(part);
    }
    Ok(parts)
}

/// What is said, all parts together.
fn said(stream: &str) -> String {
    let parts = read_all(stream.as_bytes()).unwrap();
    let text = parts.into_iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::Work | Part::Restart => None,
    });
    text.collect()
}

#[test]
fn text_comes_in_every_shape() {
    for stream in [
        "data: {\"text\":\"Hel\"}\n\ndata: {\"text\":\"lo\"}\n\n",
        "data: {\"delta\":\"Hel\"}\n\ndata: {\"delta\":\"lo\"}\n\n",
        "data: {\"content\":\"Hel\"}\n\ndata: {\"content\":\"lo\"}\n\n",
        "data: {\"type\":\"text\",\"text\":\"Hel\"}\n\ndata: {\"type\":\"delta\",\"delta\":\"lo\"}\n\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"}}]}\n\n",
        "data: Hel\n\ndata:lo\n\n",
        "data: \"Hel\"\n\ndata: \"lo\"\n\n",
        "event: message\ndata: Hel\n\nevent: delta\ndata: {\"text\":\"lo\"}\n\n",
        "data: Hello",
    ] {
        assert_eq!(said(stream), "Hello", "{stream}");
    }
    assert_eq!(said("data: 42\n\n"), "42");
    assert_eq!(said("event: delta\ndata:  two words\n\n"), " two words");
}

#[test]
fn a_type_says_whether_its_frame_holds_text() {
    for kind in [
        "message",
        "text",
        "token",
        "chunk",
        "assistant",
        "answer",
        "text_delta",
        "text-delta",
        "content_delta",
        "output_text",
        "agent_message",
        "agent_message_chunk",
        "Message",
        "response.output_text.delta",
    ] {
        let frame = format!("data: {{\"type\":\"{kind}\",\"content\":\"hi\"}}\n\n");
        assert_eq!(said(&frame), "hi", "{kind}");
        assert_eq!(
            said(&format!("event: {kind}\ndata: hi\n\n")),
            "hi",
            "{kind}"
        );
    }
    for kind in [
        "tool_call",
        "tool_result",
        "tool_message",
        "thinking",
        "thinking_delta",
        "reasoning_text",
        "usage",
        "token_count",
        "context",
        "user_message",
        "status",
        "ping",
        "done",
        "output_text.done",
        "response",
        "",
    ] {
        let frame = format!("data: {{\"type\":\"{kind}\",\"content\":\"hi\"}}\n\n");
        assert_eq!(read_all(frame.as_bytes()), Ok(vec![Part::Work]), "{kind}");
    }
    for event in ["tool_call", "thinking", "usage", "ping"] {
        for data in [r#"{"text":"x"}"#, "x"] {
            assert_eq!(said(&format!("event: {event}\ndata: {data}\n\n")), "");
        }
    }
}

#[test]
fn tool_calls_thoughts_usage_and_comments_are_no_text() {
    let stream = ": hello\n\n\
        data: {\"type\":\"thinking\",\"text\":\"hm\"}\n\n\
        data: {\"type\":\"tool_call\",\"content\":\"ls\"}\n\n\
        event: usage\ndata: {\"text\":\"12 tokens\"}\n\n\
        data: {\"text\":\"Yes\"}\n\n\
        data: {\"type\":\"done\",\"text\":\"Yes\"}\n\n\
        data: [DONE]\n\ndata: {\"text\":\" and more\"}\n\n";
    assert_eq!(said(stream), "Yes");
}

#[test]
fn a_frame_without_words_says_nothing() {
    for data in [
        r#"{"text":7}"#,
        r#"{"text":""}"#,
        r#"{"choices":[]}"#,
        r#"{"choices":[{"delta":{"role":"assistant"}}]}"#,
        "{}",
        "null",
        "\"\"",
        "",
    ] {
        let frame = format!("data: {data}\n\n");
        assert_eq!(read_all(frame.as_bytes()), Ok(vec![]), "{data}");
    }
}

#[test]
fn the_end_is_heard_and_nothing_after_it() {
    let mut stream = AgentStream::new(MOST);
    stream.push(b"data: a\n\n").unwrap();
    assert_eq!(stream.next_part(), Ok(Some(Part::Text("a".into()))));
    assert!(!stream.is_done());
    stream.push(b"data:  [DONE] \n\ndata: b\n\n").unwrap();
    assert_eq!(stream.next_part(), Ok(None));
    assert!(stream.is_done());
}

#[test]
fn an_error_fails_the_turn_and_says_why() {
    for stream in [
        "data: {\"type\":\"error\",\"message\":\"no money\"}\n\n",
        "data: {\"error\":{\"message\":\"no money\"}}\n\n",
        "data: {\"error\":\"no money\"}\n\n",
        "data: {\"text\":\"Yes\"}\n\ndata: {\"text\":\"no\",\"error\":\"no money\"}\n\n",
        "event: error\ndata: {\"message\":\"no money\"}\n\n",
        "event: error\ndata: {\"text\":\"no money\"}\n\n",
        "event: error\ndata: no money\n\n",
        "event: ERROR\ndata: no money\n\n",
        "data: {\"text\":\"Yes\"}\n\nevent: error\ndata: no money\n\n",
    ] {
        let error = read_all(stream.as_bytes());
        assert_eq!(
            error,
            Err(StreamError::Agent("no money".into())),
            "{stream}"
        );
    }
    let unsaid = read_all(b"data: {\"type\":\"error\"}\n\n");
    assert_eq!(unsaid, Err(StreamError::Agent("no reason given".into())));
    for none in ["null", "false", "\"\""] {
        let frame = format!("data: {{\"text\":\"fine\",\"error\":{none}}}\n\n");
        assert_eq!(said(&frame), "fine", "{none}");
    }
}

#[test]
fn a_reason_without_end_is_cut() {
    let frame = format!("event: error\ndata: {}\n\n", "é".repeat(10_000));
    let Err(StreamError::Agent(why)) = read_all(frame.as_bytes()) else {
        panic!("no error");
    };
    assert_eq!(why.len(), MAX_REASON_BYTES);
}

#[test]
fn a_stream_without_end_is_given_up() {
    let mut stream = AgentStream::new(MOST);
    let frame = format!("data: {}\n\n", "x".repeat(1000));
    let error = loop {
        if let Err(error) = stream.push(frame.as_bytes()) {
            break error;
        }
        while stream.next_part().unwrap().is_some() {}
    };
    assert_eq!(error, StreamError::TooLong(MOST));
}

#[test]
fn a_document_is_read_like_a_frame() {
    let document = r#"{"choices":[{"message":{"content":"Hello"}}]}"#;
    let hello = Part::Text("Hello".into());
    assert_eq!(read_document(document.into()), Ok(Some(hello)));
    assert_eq!(read_document("{}".into()), Ok(None));
    assert!(read_document(r#"{"error":"no money"}"#.into()).is_err());
}

#[test]
fn deep_json_is_text_like_any_other_and_harms_nobody() {
    let deep = "[".repeat(100_000);
    assert_eq!(said(&format!("data: {deep}\n\n")), deep);
}

/// What no agent should send, cut at every byte: never a panic.
#[test]
fn hostile_streams_are_read_or_refused() {
    let streams: [&[u8]; 8] = [
        b"data: \xff\xfe\xc3\x28\n\n",
        b"data: {\"text\":\"a\\u0000b\"}\n\n",
        b"data: a\0b\n\n",
        b"\xef\xbb\xbfdata: {\"text\": 7, \"delta\": {\"content\": []}}\r\n\r\n",
        b"data: {\"choices\": [[]]}\n\ndata: {\"choices\": {\"0\": 1}}\n\n",
        b"data: [[[[[[[[[[[[[[[[\n\n",
        b"event: \xf0\x9f\ndata\ndata:\n\n\n\n\rid: \0\n",
        b"data: {\"text\":\"\\ud800\"}\n\n",
    ];
    for bytes in streams {
        for cut in 0..=bytes.len() {
            let mut stream = AgentStream::new(MOST);
            let pushed = stream
                .push(&bytes[..cut])
                .and_then(|()| stream.push(&bytes[cut..]))
                .and_then(|()| stream.finish());
            while pushed.is_ok() && matches!(stream.next_part(), Ok(Some(_))) {}
        }
    }
}
