//! An event-stream parser that trusts nobody.
//!
//! It does no I/O: bytes go in as they arrive, cut anywhere, and whole frames come out. Lines end
//! with LF, CR or CRLF; what is no UTF-8 is replaced, or refused; a line or a frame beyond the bound
//! is an error, so that memory stays bounded whatever the other side sends.
//!
//! ```
//! let mut parser = sse::Parser::new();
//! parser.push(b"id: 1\ndata: hel")?;
//! assert!(parser.next_frame().is_none());
//! parser.push(b"lo\n\n")?;
//! assert_eq!(parser.next_frame().unwrap().data.as_deref(), Some("hello"));
//! # Ok::<(), sse::SseError>(())
//! ```

use std::{borrow::Cow, collections::VecDeque, mem, time::Duration};

/// The most bytes of one line, and of one frame's data, unless told otherwise.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The longest pause that a `retry:` can ask for.
const MAX_RETRY: Duration = Duration::from_secs(300);
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Why a stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line without an end in sight.
    #[error("a line of more than {0} bytes")]
    LineTooLong(usize),
    /// A frame without an end in sight.
    #[error("a frame of more than {0} bytes")]
    FrameTooLong(usize),
    /// Bytes that are no UTF-8, where they are refused.
    #[error("bytes that are no text")]
    NoText,
}

/// One frame: an event, or an id alone that only moves the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// The `id:` of this frame, where it has one.
    pub id: Option<String>,
    /// The `event:`, where it has one; `message` is meant otherwise.
    pub event: Option<String>,
    /// The `data:`; nothing in a frame that is no event.
    pub data: Option<String>,
}

/// Turns bytes into frames.
#[derive(Debug)]
pub struct Parser {
    /// The most bytes of a line, and of a frame's data.
    limit: usize,
    /// Whether what is no UTF-8 is an error.
    is_strict: bool,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// The frame whose end has not come yet.
    frame: Frame,
    ready: VecDeque<Frame>,
    retry: Option<Duration>,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The first line has been read, so that no byte order mark is due.
    begun: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            limit: MAX_BYTES,
            is_strict: false,
            partial: Vec::new(),
            frame: Frame::default(),
            ready: VecDeque::new(),
            retry: None,
            after_cr: false,
            begun: false,
        }
    }
}

impl Parser {
    /// A parser at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that refuses what is no text, and lines and frames of more than `limit` bytes.
    pub fn strict(limit: usize) -> Self {
        Self {
            limit,
            is_strict: true,
            ..Self::default()
        }
    }

    /// Takes the next bytes. After an error the stream is over.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), SseError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if mem::take(&mut self.after_cr) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
            self.check_line(line)?;
            if self.partial.is_empty() {
                self.line(line)?;
            } else {
                let mut whole = mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.line(&whole)?;
            }
        }
        self.check_line(bytes)?;
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// The stream is over: a last frame counts though its end has not come. For servers that forget
    /// the last empty line; where frames can be read again later, an unfinished one is none.
    pub fn finish(&mut self) -> Result<(), SseError> {
        let last = mem::take(&mut self.partial);
        if !last.is_empty() {
            self.line(&last)?;
        }
        self.finish_frame();
        Ok(())
    }

    fn check_line(&self, more: &[u8]) -> Result<(), SseError> {
        match self.partial.len() + more.len() > self.limit {
            true => Err(SseError::LineTooLong(self.limit)),
            false => Ok(()),
        }
    }

    /// The next whole frame, if one has come.
    pub fn next_frame(&mut self) -> Option<Frame> {
        self.ready.pop_front()
    }

    /// How long the server wants clients to wait before they reconnect.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn line(&mut self, mut line: &[u8]) -> Result<(), SseError> {
        if !mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.finish_frame();
            return Ok(());
        }
        let text = String::from_utf8_lossy(line);
        if self.is_strict && matches!(text, Cow::Owned(_)) {
            return Err(SseError::NoText);
        }
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.data(value)?,
            "event" => self.frame.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.frame.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                let asked = value.parse().map_or(MAX_RETRY, Duration::from_millis);
                self.retry = Some(asked.min(MAX_RETRY));
            }
            // A comment (the field is empty then), or a field of a later version.
            _ => {}
        }
        Ok(())
    }

    fn data(&mut self, value: &str) -> Result<(), SseError> {
        let Some(data) = &mut self.frame.data else {
            self.frame.data = Some(value.to_owned());
            return Ok(());
        };
        if data.len() + value.len() >= self.limit {
            return Err(SseError::FrameTooLong(self.limit));
        }
        data.push('\n');
        data.push_str(value);
        Ok(())
    }

    fn finish_frame(&mut self) {
        let frame = mem::take(&mut self.frame);
        if frame.data.is_some() || frame.id.is_some() {
            self.ready.push_back(frame);
        }
    }
}

#[cfg(test)]
mod tests;
