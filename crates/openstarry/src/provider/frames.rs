//! Cuts a stream of bytes into frames: server-sent events or JSON lines. Pure,
//! and bounded: a frame that never ends is an error, not a growing buffer.

use crate::pain::AgentPain;
use sse::SseError;

/// How an API frames its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `data:` lines, ended by an empty line.
    Sse,
    /// One JSON value a line.
    Lines,
    /// The whole body is one frame.
    Whole,
}

/// Takes bytes as they come and gives whole frames.
#[derive(Debug)]
pub(crate) struct Frames {
    framing: Framing,
    limit: usize,
    /// What has come of a frame that is no event.
    rest: Vec<u8>,
    events: sse::Parser,
}

impl Frames {
    pub(crate) fn new(framing: Framing, limit: usize) -> Self {
        Self {
            framing,
            limit,
            rest: Vec::new(),
            events: sse::Parser::strict(limit),
        }
    }

    /// Takes bytes, and appends the frames they complete to `out`.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<String>,
    ) -> Result<(), AgentPain> {
        match self.framing {
            Framing::Sse => {
                self.events.push(bytes).map_err(refused)?;
                self.take_events(out);
                return Ok(());
            }
            Framing::Lines => {
                while let Some(end) = memchr::memchr(b'\n', bytes) {
                    self.keep(&bytes[..end])?;
                    self.end_frame(out)?;
                    bytes = &bytes[end + 1..];
                }
            }
            Framing::Whole => {}
        }
        self.keep(bytes)
    }

    /// The stream ended. A last frame without its end counts: some APIs forget
    /// the last empty line.
    pub(crate) fn end(&mut self, out: &mut Vec<String>) -> Result<(), AgentPain> {
        self.events.finish().map_err(refused)?;
        self.take_events(out);
        self.end_frame(out)
    }

    /// Events are told apart by what their JSON says; names and ids of frames
    /// add nothing.
    fn take_events(&mut self, out: &mut Vec<String>) {
        let frames = std::iter::from_fn(|| self.events.next_frame());
        let data = frames.filter_map(|frame| frame.data);
        out.extend(data.filter(|data| !data.is_empty()));
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), AgentPain> {
        if self.rest.len() + bytes.len() > self.limit {
            let limit = self.limit;
            return Err(too_large(&format!("a frame of more than {limit} bytes")));
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    fn end_frame(&mut self, out: &mut Vec<String>) -> Result<(), AgentPain> {
        let bytes = std::mem::take(&mut self.rest);
        let text = str::from_utf8(&bytes).map_err(|error| {
            let begin = &bytes[..bytes.len().min(200)];
            AgentPain::unreadable(error, &String::from_utf8_lossy(begin))
        })?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if !text.is_empty() {
            out.push(text.into());
        }
        Ok(())
    }
}

fn refused(error: SseError) -> AgentPain {
    match error {
        SseError::NoText => AgentPain::unreadable(error, ""),
        SseError::LineTooLong(_) | SseError::FrameTooLong(_) => too_large(&error.to_string()),
    }
}

fn too_large(why: &str) -> AgentPain {
    AgentPain::TooLarge(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(framing: Framing, chunks: &[&[u8]]) -> Result<Vec<String>, AgentPain> {
        let mut reader = Frames::new(framing, 1000);
        let mut out = Vec::new();
        for chunk in chunks {
            reader.push(chunk, &mut out)?;
        }
        reader.end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn every_way_to_split_the_bytes_gives_the_same_frames() {
        let text = "\u{feff}: hello\r\nevent: x\rdata: {\"t\":\"天\"}\r\n\r\ndata:a\ndata: b\n\nid: 1\n\ndata: last";
        let whole = frames(Framing::Sse, &[text.as_bytes()]).unwrap();
        assert_eq!(whole, ["{\"t\":\"天\"}", "a\nb", "last"]);
        for at in 0..text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            assert_eq!(frames(Framing::Sse, &[left, right]).unwrap(), whole, "{at}");
        }
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(frames(Framing::Sse, &single).unwrap(), whole);
    }

    #[test]
    fn lines_are_frames_and_empty_ones_are_not() {
        let read = frames(Framing::Lines, &[b"{\"a\":1}\r", b"\n\n{\"b\"", b":2}"]).unwrap();
        assert_eq!(read, ["{\"a\":1}", "{\"b\":2}"]);
    }

    #[test]
    fn a_frame_that_never_ends_is_refused() {
        let chunk = [b'x'; 400];
        for framing in [Framing::Sse, Framing::Lines] {
            let read = frames(framing, &[&chunk, &chunk, &chunk]);
            assert!(matches!(read, Err(AgentPain::TooLarge(_))));
        }
        let many = "data: 123456789\n".repeat(200);
        assert!(frames(Framing::Sse, &[many.as_bytes()]).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let read = frames(Framing::Sse, &[b"data: \xff\xfe\n\n"]);
        assert!(matches!(read, Err(AgentPain::Unreadable { .. })));
    }
}
