//! Reading an agent's answer from its stream, without I/O: frames go in, text comes out.

use protocol::{
    MAX_CONTENT_BYTES,
    sse::{Frame, Parser, SseError},
};
use serde_json::Value;

const SILENT: &str = "[SILENT]";
const CUT: &str = "…";
/// Types of frames and events that hold what the agent says; those of any other type do not.
const TEXT_TYPES: [&str; 14] = [
    "message",
    "text",
    "delta",
    "content",
    "token",
    "chunk",
    "assistant",
    "answer",
    "text_delta",
    "text-delta",
    "content_delta",
    "output_text",
    "agent_message",
    "response.output_text.delta",
];

/// Why an answer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    #[error("the agent reported an error")]
    Agent,
    #[error("the answer has more than {0} bytes")]
    TooLong(usize),
    #[error("the answer is no event stream: {0}")]
    Stream(#[from] SseError),
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing to say.
    Silent,
    /// This, fit to be posted.
    Text(String),
}

/// An answer as it arrives.
#[derive(Debug)]
pub struct Reply {
    parser: Parser,
    /// What was said, up to a little more than can be posted.
    text: String,
    bytes_left: usize,
    most_bytes: usize,
    /// Whether the agent has begun to do anything.
    begun: bool,
    done: bool,
}

impl Reply {
    /// An answer of which at most so many bytes are read.
    pub fn new(most_bytes: usize) -> Self {
        Self {
            parser: Parser::new(),
            text: String::new(),
            bytes_left: most_bytes,
            most_bytes,
            begun: false,
            done: false,
        }
    }

    /// Takes the next bytes. Whether the answer is complete, so that nothing more need be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<bool, ReplyError> {
        self.bytes_left = self
            .bytes_left
            .checked_sub(bytes.len())
            .ok_or(ReplyError::TooLong(self.most_bytes))?;
        self.parser.push(bytes)?;
        while let Some(frame) = self.parser.next_frame() {
            if self.done {
                break;
            }
            self.take(frame)?;
        }
        Ok(self.done)
    }

    /// What was said, once the stream has ended. A last frame may lack its blank line.
    pub fn finish(mut self) -> Result<Answer, ReplyError> {
        self.parser.push(b"\n\n")?;
        while let Some(frame) = self.parser.next_frame() {
            if !self.done {
                self.take(frame)?;
            }
        }
        Ok(answer(&self.text))
    }

    /// What has been said so far and may be shown: not while it may still turn out to be silence.
    pub fn so_far(&self) -> Option<&str> {
        let text = self.text.trim_start();
        let may_be_silence = SILENT.starts_with(text) || text.starts_with(SILENT);
        (!may_be_silence).then_some(text)
    }

    /// Whether the agent works on an answer, as far as one can tell.
    pub fn is_begun(&self) -> bool {
        self.begun || self.so_far().is_some()
    }

    fn take(&mut self, frame: Frame) -> Result<(), ReplyError> {
        let Some(data) = frame.data else {
            return Ok(());
        };
        match read(frame.event.as_deref(), &data) {
            Part::Text(text) => self.append(&text),
            Part::Other => self.begun = true,
            Part::Nothing => {}
            Part::Done => self.done = true,
            Part::Error => return Err(ReplyError::Agent),
        }
        Ok(())
    }

    fn append(&mut self, text: &str) {
        if self.text.len() <= MAX_CONTENT_BYTES {
            // PostgreSQL cannot store a NUL.
            self.text.extend(text.chars().filter(|c| *c != '\0'));
        }
    }
}

/// What one frame is.
enum Part {
    Text(String),
    /// Work that is no text: a tool call, a thought.
    Other,
    Nothing,
    Done,
    Error,
}

fn read(event: Option<&str>, data: &str) -> Part {
    if event.is_some_and(is_error) {
        return Part::Error;
    }
    if data.trim() == "[DONE]" {
        return Part::Done;
    }
    if event.is_some_and(|event| !is_text(event)) {
        return Part::Other;
    }
    match serde_json::from_str::<Value>(data) {
        Ok(Value::Object(fields)) => {
            let kind = fields.get("type").and_then(Value::as_str);
            if kind.is_some_and(is_error) {
                return Part::Error;
            }
            if kind.is_some_and(|kind| !is_text(kind)) {
                return Part::Other;
            }
            let plain = ["text", "delta", "content"]
                .iter()
                .find_map(|name| fields.get(*name).and_then(Value::as_str));
            let chunk = || {
                let choice = fields.get("choices")?.get(0)?;
                choice.get("delta")?.get("content")?.as_str()
            };
            match plain.or_else(chunk) {
                Some(text) => Part::Text(text.to_owned()),
                None if fields.get("error").is_some_and(|error| !error.is_null()) => Part::Error,
                None => Part::Nothing,
            }
        }
        Ok(Value::String(text)) => Part::Text(text),
        Ok(Value::Null) => Part::Nothing,
        // A number or a word that happens to be JSON was meant as text.
        Ok(_) | Err(_) => Part::Text(data.to_owned()),
    }
}

fn is_error(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("error")
}

fn is_text(kind: &str) -> bool {
    TEXT_TYPES
        .iter()
        .any(|text| kind.eq_ignore_ascii_case(text))
}

/// The text as it can be posted, cut where it is too long.
fn answer(text: &str) -> Answer {
    let text = text.trim();
    if text.is_empty() || text.starts_with(SILENT) {
        return Answer::Silent;
    }
    if text.len() <= MAX_CONTENT_BYTES {
        return Answer::Text(text.to_owned());
    }
    let end = text.floor_char_boundary(MAX_CONTENT_BYTES - CUT.len());
    Answer::Text(format!("{}{CUT}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1 << 20;

    fn read_all(stream: &[u8]) -> Result<Answer, ReplyError> {
        let mut reply = Reply::new(MOST);
        reply.push(stream)?;
        reply.finish()
    }

    fn said(stream: &str) -> String {
        match read_all(stream.as_bytes()).unwrap() {
            Answer::Text(text) => text,
            Answer::Silent => "(silent)".to_owned(),
        }
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
            "data: Hel\n\ndata:lo\n\n",
            "event: message\ndata: Hel\n\nevent: delta\ndata: {\"text\":\"lo\"}\n\n",
            "data: Hello",
        ] {
            assert_eq!(said(stream), "Hello", "{stream}");
        }
        assert_eq!(said("data: 42\n\n"), "42");
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
    fn an_error_fails_the_turn_whatever_was_said_before() {
        for stream in [
            "data: {\"text\":\"Yes\"}\n\nevent: error\ndata: {\"text\":\"out of credit\"}\n\n",
            "data: {\"text\":\"Yes\"}\n\ndata: {\"type\":\"error\",\"message\":\"x\"}\n\n",
            "data: {\"error\":{\"message\":\"x\"}}\n\n",
        ] {
            assert_eq!(
                read_all(stream.as_bytes()),
                Err(ReplyError::Agent),
                "{stream}"
            );
        }
    }

    #[test]
    fn silence_is_said_in_two_ways() {
        for stream in [
            "",
            "data: \n\n",
            "data: [SILENT]\n\n",
            "data: {\"text\":\" \\n[SILENT] not mine\"}\n\n",
        ] {
            assert_eq!(said(stream), "(silent)", "{stream}");
        }
    }

    #[test]
    fn silence_is_never_shown_while_it_comes_in_pieces() {
        let mut reply = Reply::new(MOST);
        for piece in ["[", "SIL", "ENT", "] because"] {
            reply
                .push(format!("data: {{\"text\":\"{piece}\"}}\n\n").as_bytes())
                .unwrap();
            assert_eq!(reply.so_far(), None);
        }
        assert!(!reply.is_begun());
        let mut reply = Reply::new(MOST);
        reply.push(b"data: [S\n\ndata: o it is]\n\n").unwrap();
        assert_eq!(reply.so_far(), Some("[So it is]"));
    }

    #[test]
    fn a_long_answer_is_cut_at_a_character() {
        let long = "é".repeat(4000);
        let text = said(&format!("data: {{\"text\":\"{long}\"}}\n\n"));
        assert!(text.len() <= MAX_CONTENT_BYTES && text.len() > MAX_CONTENT_BYTES - 4);
        assert!(text.ends_with("é…"));
        let fits = "x".repeat(MAX_CONTENT_BYTES);
        assert_eq!(said(&format!("data: {fits}\n\n")), fits);
    }

    #[test]
    fn a_stream_without_end_is_given_up_and_kept_small() {
        let mut reply = Reply::new(MOST);
        let frame = format!("data: {}\n\n", "x".repeat(1000));
        let error = loop {
            if let Err(error) = reply.push(frame.as_bytes()) {
                break error;
            }
            assert!(reply.text.len() <= MAX_CONTENT_BYTES + 1000);
        };
        assert_eq!(error, ReplyError::TooLong(MOST));
    }

    /// What no agent should send, cut at every byte: never a panic, and never a NUL.
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
        for stream in streams {
            for cut in 0..=stream.len() {
                let mut reply = Reply::new(MOST);
                let pushed = reply
                    .push(&stream[..cut])
                    .and_then(|_| reply.push(&stream[cut..]));
                if pushed.is_ok()
                    && let Ok(Answer::Text(text)) = reply.finish()
                {
                    assert!(!text.contains('\0'));
                }
            }
        }
        let deep = format!("data: {}\n\n", "[".repeat(500_000));
        let _ = read_all(deep.as_bytes());
    }
}
