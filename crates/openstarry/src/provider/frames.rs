//! Cuts a stream of bytes into frames: server-sent events or JSON lines. Pure,
//! and bounded: a frame that never ends is an error, not a growing buffer.

use crate::pain::AgentPain;

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
    line: Vec<u8>,
    data: String,
    has_data: bool,
    after_cr: bool,
    first_line: bool,
}

impl Frames {
    pub(crate) fn new(framing: Framing, limit: usize) -> Self {
        Self {
            framing,
            limit,
            line: Vec::new(),
            data: String::new(),
            has_data: false,
            after_cr: false,
            first_line: true,
        }
    }

    /// Takes bytes, and appends the frames they complete to `out`.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<String>,
    ) -> Result<(), AgentPain> {
        if self.framing == Framing::Whole {
            return self.keep(bytes);
        }
        // A line ends with LF, CR or CRLF; the CRLF may be split between chunks.
        if let Some((first, rest)) = bytes.split_first()
            && std::mem::take(&mut self.after_cr)
            && *first == b'\n'
        {
            bytes = rest;
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.keep(&bytes[..end])?;
            self.end_line(out)?;
            let crlf = bytes[end] == b'\r' && bytes.get(end + 1) == Some(&b'\n');
            self.after_cr = bytes[end] == b'\r' && end + 1 == bytes.len();
            bytes = &bytes[end + 1 + usize::from(crlf)..];
        }
        self.keep(bytes)
    }

    /// The stream ended. A last line without its end counts for JSON lines and
    /// for APIs that forget the last empty line.
    pub(crate) fn end(&mut self, out: &mut Vec<String>) -> Result<(), AgentPain> {
        if !self.line.is_empty() {
            self.end_line(out)?;
        }
        self.dispatch(out);
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), AgentPain> {
        if self.line.len() + self.data.len() + bytes.len() > self.limit {
            return Err(AgentPain::TooLarge(format!(
                "a frame of more than {} bytes",
                self.limit
            )));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<String>) -> Result<(), AgentPain> {
        let bytes = std::mem::take(&mut self.line);
        let line = str::from_utf8(&bytes).map_err(|error| {
            AgentPain::unreadable(
                error,
                &String::from_utf8_lossy(&bytes[..bytes.len().min(200)]),
            )
        })?;
        let line = if std::mem::take(&mut self.first_line) {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        } else {
            line
        };
        match self.framing {
            Framing::Lines | Framing::Whole => {
                if !line.trim().is_empty() {
                    out.push(line.into());
                }
            }
            Framing::Sse if line.is_empty() => self.dispatch(out),
            Framing::Sse => {
                let (field, value) = line.split_once(':').unwrap_or((line, ""));
                // Events are told apart by what their JSON says; names and ids
                // of frames, and comments, add nothing.
                if field == "data" {
                    if self.has_data {
                        self.data.push('\n');
                    }
                    self.has_data = true;
                    self.data.push_str(value.strip_prefix(' ').unwrap_or(value));
                }
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, out: &mut Vec<String>) {
        if std::mem::take(&mut self.has_data) {
            let data = std::mem::take(&mut self.data);
            if !data.is_empty() {
                out.push(data);
            }
        }
    }
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
