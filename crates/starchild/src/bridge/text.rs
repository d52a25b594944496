//! Finds the assistant's words in a frame of an agent's stream, in all the shapes they come in.
//! Pure: no I/O.

use client::sse::Frame;
use serde_json::Value;

/// What a frame holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words of the answer.
    Text(String),
    /// Something else: a tool call, a thought, a count.
    Other,
    /// The answer is whole.
    Done,
}

/// Reads a frame; the error is what the agent says went wrong.
pub fn read(frame: &Frame) -> Result<Piece, String> {
    let Some(data) = &frame.data else {
        return Ok(Piece::Other);
    };
    let event = frame.event.as_deref().unwrap_or("message");
    if data.trim() == "[DONE]" {
        return Ok(Piece::Done);
    }
    let Ok(json) = serde_json::from_str::<Value>(data) else {
        return match event {
            "error" => Err(data.trim().to_owned()),
            event if names_text(event) => Ok(Piece::Text(data.clone())),
            _ => Ok(Piece::Other),
        };
    };
    // A number or a quoted text is no frame of ours: it is what the agent says.
    if !json.is_object() {
        return Ok(match names_text(event) {
            true => Piece::Text(data.clone()),
            false => Piece::Other,
        });
    }
    let kind = json.get("type").and_then(Value::as_str);
    let error = json.get("error").filter(|error| !error.is_null());
    if event == "error" || kind == Some("error") || error.is_some() {
        return Err(reason(&json));
    }
    if !names_text(event) || !kind.is_none_or(names_text) {
        return Ok(Piece::Other);
    }
    let text = words(&json).filter(|text| !text.is_empty());
    Ok(text.map_or(Piece::Other, |text| Piece::Text(text.to_owned())))
}

fn words(json: &Value) -> Option<&str> {
    let named = ["text", "delta", "content"];
    let named = named.iter().find_map(|name| json.get(name)?.as_str());
    let chunk = ["/choices/0/delta/content", "/choices/0/message/content"];
    let chunk = || chunk.iter().find_map(|at| json.pointer(at)?.as_str());
    named.or_else(chunk)
}

/// Whether a frame or an event of this type holds words of the answer: `text`, `delta`,
/// `content`, `message`, `response.output_text.delta`, but not `thinking_delta`.
fn names_text(kind: &str) -> bool {
    const TEXT: [&str; 7] = [
        "text",
        "delta",
        "content",
        "message",
        "assistant",
        "token",
        "chunk",
    ];
    const OTHER: [&str; 9] = [
        "tool", "think", "thought", "reason", "usage", "json", "function", "user", "done",
    ];
    let kind = kind.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    has(&TEXT) && !has(&OTHER)
}

fn reason(json: &Value) -> String {
    let places = [
        "/message",
        "/error/message",
        "/error",
        "/text",
        "/content",
        "/detail",
    ];
    let found = places.iter().find_map(|at| json.pointer(at)?.as_str());
    found.unwrap_or("no reason given").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(event: Option<&str>, data: &str) -> Frame {
        Frame {
            id: None,
            event: event.map(str::to_owned),
            data: Some(data.to_owned()),
        }
    }

    fn of(data: &str) -> Result<Piece, String> {
        read(&frame(None, data))
    }

    #[test]
    fn words_come_in_several_shapes() {
        for data in [
            r#"{"text":"hi"}"#,
            r#"{"delta":"hi"}"#,
            r#"{"content":"hi"}"#,
            r#"{"type":"text","text":"hi"}"#,
            r#"{"type":"text_delta","delta":"hi"}"#,
            r#"{"type":"assistant","content":"hi"}"#,
            r#"{"type":"response.output_text.delta","delta":"hi"}"#,
            r#"{"choices":[{"delta":{"content":"hi"}}]}"#,
            r#"{"choices":[{"message":{"role":"assistant","content":"hi"}}]}"#,
            "hi",
        ] {
            assert_eq!(of(data), Ok(Piece::Text("hi".into())), "{data}");
        }
        let blank = frame(Some("delta"), " two words");
        assert_eq!(read(&blank), Ok(Piece::Text(" two words".into())));
    }

    #[test]
    fn what_is_no_text_is_left_out() {
        for data in [
            r#"{"type":"tool_call","text":"rm"}"#,
            r#"{"type":"tool_result","content":"secret"}"#,
            r#"{"type":"thinking","text":"hmm"}"#,
            r#"{"type":"thinking_delta","delta":"hmm"}"#,
            r#"{"type":"usage","content":"12"}"#,
            r#"{"type":"done","text":"all of it again"}"#,
            r#"{"text":7}"#,
            r#"{"text":""}"#,
            r#"{"choices":[]}"#,
            r#"{"choices":[{"delta":{"role":"assistant"}}]}"#,
            "{}",
        ] {
            assert_eq!(of(data), Ok(Piece::Other), "{data}");
        }
        for event in ["tool_call", "thinking", "usage", "ping"] {
            assert_eq!(
                read(&frame(Some(event), r#"{"text":"x"}"#)),
                Ok(Piece::Other)
            );
            assert_eq!(read(&frame(Some(event), "x")), Ok(Piece::Other));
        }
        assert_eq!(of(" [DONE] "), Ok(Piece::Done));
    }

    #[test]
    fn an_error_fails_the_turn_and_says_why() {
        for (event, data) in [
            (None, r#"{"type":"error","message":"no money"}"#),
            (None, r#"{"error":{"message":"no money"}}"#),
            (None, r#"{"error":"no money"}"#),
            (Some("error"), r#"{"message":"no money"}"#),
            (Some("error"), "no money"),
        ] {
            assert_eq!(read(&frame(event, data)), Err("no money".into()), "{data}");
        }
        assert_eq!(of(r#"{"type":"error"}"#), Err("no reason given".into()));
    }

    #[test]
    fn deep_json_is_text_like_any_other_and_harms_nobody() {
        let deep = "[".repeat(100_000);
        assert_eq!(of(&deep), Ok(Piece::Text(deep.clone())));
    }
}
