//! What an agent's stream says: bytes go in, parts of its answer come out, in whatever shape they
//! come. No I/O, and nothing is trusted: the stream is bounded, and what cannot be read is no text.

use crate::{
    Usage,
    sse::{Frame, Parser, SseError},
};
use serde_json::{Map, Value};

/// The most bytes of an agent's words about an error.
const MAX_REASON_BYTES: usize = 1000;
/// A frame of this type takes back what was said so far: a model that talks before it uses a tool
/// begins its answer anew afterwards.
const RESTART: &str = "restart";
/// A frame or event whose type has one of these words holds what the agent says …
const TEXT_WORDS: [&str; 8] = [
    "text",
    "delta",
    "content",
    "message",
    "assistant",
    "token",
    "chunk",
    "answer",
];
/// … unless it has a word that is neither one of them nor one of these: `output_text.delta` does,
/// `thinking_delta` and `tool_message` do not.
const OTHER_WORDS: [&str; 6] = ["response", "output", "agent", "block", "part", "stream"];

/// Why there is no answer to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The agent itself reports an error, in its words.
    #[error("the agent reported an error: {0}")]
    Agent(String),
    /// A stream without an end in sight.
    #[error("the answer has more than {0} bytes")]
    TooLong(usize),
    /// The bytes are no event stream.
    #[error("the answer is no event stream: {0}")]
    Sse(#[from] SseError),
}

/// A part of what an agent's stream says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Words of the answer.
    Text(String),
    /// What was said so far is not part of the answer.
    Restart,
    /// Work that is no text: a tool call, a thought, a count.
    Work,
}

/// An agent's stream as it arrives.
#[derive(Debug)]
pub struct AgentStream {
    parser: Parser,
    most_bytes: usize,
    bytes_left: usize,
    is_done: bool,
    /// Boxed, since most streams say nothing of it.
    usage: Box<Usage>,
}

impl AgentStream {
    /// A stream of which at most so many bytes are read.
    pub fn new(most_bytes: usize) -> Self {
        Self {
            parser: Parser::new(),
            most_bytes,
            bytes_left: most_bytes,
            is_done: false,
            usage: Box::default(),
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        let left = self.bytes_left.checked_sub(bytes.len());
        self.bytes_left = left.ok_or(StreamError::TooLong(self.most_bytes))?;
        Ok(self.parser.push(bytes)?)
    }

    /// No more bytes come. The last frame may lack its blank line.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        Ok(self.parser.push(b"\n\n")?)
    }

    /// The next part of what has come, if there is one.
    pub fn next_part(&mut self) -> Result<Option<Part>, StreamError> {
        while !self.is_done
            && let Some(Frame { event, data, .. }) = self.parser.next_frame()
        {
            let Some(data) = data else {
                continue;
            };
            match read(event.as_deref(), data, &mut self.usage)? {
                Read::Part(part) => return Ok(Some(part)),
                Read::Nothing => {}
                Read::Done => self.is_done = true,
            }
        }
        Ok(None)
    }

    /// What the answer cost, as far as the agent has said so.
    pub fn usage(&self) -> Option<&Usage> {
        (!self.usage.is_empty()).then_some(&*self.usage)
    }

    /// Whether the agent has said that the answer is whole, so that nothing more need be read.
    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

/// Reads the answer of an agent that does not stream: one document, as one frame would hold it.
pub fn read_document(document: String) -> Result<Option<Part>, StreamError> {
    Ok(match read(None, document, &mut Usage::default())? {
        Read::Part(part) => Some(part),
        Read::Nothing | Read::Done => None,
    })
}

enum Read {
    Part(Part),
    Nothing,
    Done,
}

impl Read {
    fn text(text: String) -> Self {
        match text.is_empty() {
            true => Self::Nothing,
            false => Self::Part(Part::Text(text)),
        }
    }
}

fn read(event: Option<&str>, data: String, usage: &mut Usage) -> Result<Read, StreamError> {
    let json = serde_json::from_str(&data);
    if event.is_some_and(is_error) {
        return Err(StreamError::Agent(match &json {
            Ok(Value::Object(fields)) => reason(fields),
            _ => cut(data.trim()),
        }));
    }
    if data.trim() == "[DONE]" {
        return Ok(Read::Done);
    }
    if let Ok(Value::Object(fields)) = &json {
        read_usage(event, fields, usage);
    }
    if event.is_some_and(|event| !names_text(event)) {
        return Ok(Read::Part(Part::Work));
    }
    match json {
        Ok(Value::Object(fields)) => read_fields(&fields),
        Ok(Value::String(text)) => Ok(Read::text(text)),
        Ok(Value::Null) => Ok(Read::Nothing),
        // A number or a word that happens to be JSON was meant as text.
        Ok(_) | Err(_) => Ok(Read::text(data)),
    }
}

/// What a frame says of what the answer cost: as a whole, or beside its text.
fn read_usage(event: Option<&str>, fields: &Map<String, Value>, usage: &mut Usage) {
    let kind = fields.get("type").and_then(Value::as_str).or(event);
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("usage")) {
        usage.absorb(fields);
    }
    if let Some(Value::Object(inner)) = fields.get("usage") {
        let model = fields.get("model").filter(|_| !inner.contains_key("model"));
        let mut inner = inner.clone();
        inner.extend(model.map(|model| ("model".to_owned(), model.clone())));
        usage.absorb(&inner);
    }
}

fn read_fields(fields: &Map<String, Value>) -> Result<Read, StreamError> {
    let kind = fields.get("type").and_then(Value::as_str);
    let error = fields.get("error").is_some_and(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(words) => !words.is_empty(),
        _ => true,
    });
    if error || kind.is_some_and(is_error) {
        return Err(StreamError::Agent(reason(fields)));
    }
    if kind == Some(RESTART) {
        return Ok(Read::Part(Part::Restart));
    }
    if kind.is_some_and(|kind| !names_text(kind)) {
        return Ok(Read::Part(Part::Work));
    }
    let words = words(fields).unwrap_or_default();
    Ok(Read::text(words.to_owned()))
}

fn words(fields: &Map<String, Value>) -> Option<&str> {
    let named = ["text", "delta", "content"];
    let named = named.iter().find_map(|name| fields.get(*name)?.as_str());
    named.or_else(|| {
        let choice = fields.get("choices")?.get(0)?;
        let shapes = ["delta", "message"];
        shapes
            .iter()
            .find_map(|shape| choice.get(shape)?.get("content")?.as_str())
    })
}

fn is_error(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("error")
}

fn names_text(kind: &str) -> bool {
    let one_of = |words: &[&str], word: &str| words.iter().any(|w| w.eq_ignore_ascii_case(word));
    let mut has_text = false;
    for word in kind.split(|c: char| !c.is_alphanumeric()) {
        let is_text = one_of(&TEXT_WORDS, word);
        if !is_text && !one_of(&OTHER_WORDS, word) {
            return false;
        }
        has_text |= is_text;
    }
    has_text
}

fn reason(fields: &Map<String, Value>) -> String {
    let inner = || fields.get("error")?.get("message")?.as_str();
    let named = |name: &&str| fields.get(*name)?.as_str();
    let found = fields
        .get("message")
        .and_then(Value::as_str)
        .or_else(inner)
        .or_else(|| {
            ["error", "text", "content", "detail"]
                .iter()
                .find_map(named)
        });
    cut(found.unwrap_or("no reason given"))
}

fn cut(words: &str) -> String {
    words[..words.floor_char_boundary(MAX_REASON_BYTES)].to_owned()
}

#[cfg(test)]
mod tests;
