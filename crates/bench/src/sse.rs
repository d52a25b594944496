//! Reads messages off a live stream: HTTP chunks first, then the lines of server-sent events.
//!
//! Works on bytes as they arrive and copies only a line that a read cut in two.

use crate::Result;

/// One `message` event.
pub struct Message<'a> {
    /// The message's number in its room.
    pub seq: u64,
    /// The event's data, as sent.
    pub data: &'a [u8],
}

/// What is to be read next of the chunked body.
enum Chunk {
    /// The line that says how long the chunk is.
    Size,
    /// So many bytes of data.
    Data(usize),
    /// The line break after the data.
    Break,
    /// Nothing: the server has ended the stream.
    End,
}

/// A reader for one response body.
pub struct Reader {
    chunk: Chunk,
    size: Vec<u8>,
    events: Events,
}

impl Reader {
    /// A reader at the beginning of a chunked body.
    pub fn new() -> Self {
        Self {
            chunk: Chunk::Size,
            size: Vec::new(),
            events: Events::default(),
        }
    }

    /// The `id:` of the last whole event, to resume after; empty before the first.
    pub fn last_id(&self) -> &[u8] {
        &self.events.last_id
    }

    /// Whether the server has ended the stream.
    pub fn ended(&self) -> bool {
        matches!(self.chunk, Chunk::End)
    }

    /// Takes the next bytes and calls `each` for every message they complete.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        each: &mut impl FnMut(Message<'_>) -> Result<()>,
    ) -> Result<()> {
        while !bytes.is_empty() {
            match self.chunk {
                Chunk::Size => {
                    let end = memchr::memchr(b'\n', bytes);
                    self.size
                        .extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
                    let Some(end) = end else { break };
                    bytes = &bytes[end + 1..];
                    let size = std::str::from_utf8(&self.size)?.trim_ascii_end();
                    self.chunk = match usize::from_str_radix(size, 16)? {
                        0 => Chunk::End,
                        size => Chunk::Data(size),
                    };
                    self.size.clear();
                }
                Chunk::Data(left) => {
                    let (data, rest) = bytes.split_at(left.min(bytes.len()));
                    self.events.feed(data, each)?;
                    bytes = rest;
                    self.chunk = match left - data.len() {
                        0 => Chunk::Break,
                        left => Chunk::Data(left),
                    };
                }
                Chunk::Break => {
                    if bytes[0] == b'\n' {
                        self.chunk = Chunk::Size;
                    }
                    bytes = &bytes[1..];
                }
                Chunk::End => break,
            }
        }
        Ok(())
    }
}

/// The events inside the chunks.
#[derive(Default)]
struct Events {
    /// The start of a line whose end has not arrived.
    cut: Vec<u8>,
    is_message: bool,
    id: Vec<u8>,
    last_id: Vec<u8>,
}

impl Events {
    fn feed(
        &mut self,
        mut bytes: &[u8],
        each: &mut impl FnMut(Message<'_>) -> Result<()>,
    ) -> Result<()> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let line = &bytes[..end];
            if self.cut.is_empty() {
                self.line(line, each)?;
            } else {
                let mut whole = std::mem::take(&mut self.cut);
                whole.extend_from_slice(line);
                self.line(&whole, each)?;
            }
            bytes = &bytes[end + 1..];
        }
        self.cut.extend_from_slice(bytes);
        Ok(())
    }

    fn line(
        &mut self,
        line: &[u8],
        each: &mut impl FnMut(Message<'_>) -> Result<()>,
    ) -> Result<()> {
        if line.is_empty() {
            self.is_message = false;
            std::mem::swap(&mut self.last_id, &mut self.id);
            self.id.clone_from(&self.last_id);
        } else if let Some(data) = line.strip_prefix(b"data: ") {
            if self.is_message {
                let seq = seq(data).ok_or("a message without a seq")?;
                each(Message { seq, data })?;
            }
        } else if let Some(name) = line.strip_prefix(b"event: ") {
            self.is_message = name == b"message";
        } else if let Some(id) = line.strip_prefix(b"id: ") {
            self.id.clear();
            self.id.extend_from_slice(id);
        }
        Ok(())
    }
}

/// The number after `"seq":`, without parsing the rest of the JSON.
pub fn seq(json: &[u8]) -> Option<u64> {
    const FIRST: &[u8] = b"{\"seq\":";
    const ANYWHERE: &[u8] = b"\"seq\":";
    let digits = match json.strip_prefix(FIRST) {
        Some(digits) => digits,
        None => &json[memchr::memmem::find(json, ANYWHERE)? + ANYWHERE.len()..],
    };
    number(digits)
}

/// The decimal number that the bytes begin with.
pub fn number(bytes: &[u8]) -> Option<u64> {
    let end = bytes
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &[u8] = b": hello\n\nid: 7\nevent: message\ndata: {\"seq\":3}\n\n\
        id: 8\nevent: reaction_added\ndata: {\"seq\":3}\n\n\
        id: 9\nevent: message\ndata: {\"via\":\"web\",\"seq\":4}\n\n";

    /// The events as chunks of so many bytes, and the end.
    fn chunked(size: usize) -> Vec<u8> {
        let mut body = Vec::new();
        for chunk in EVENTS.chunks(size) {
            body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\n\r\n");
        body
    }

    #[test]
    fn finds_every_message_wherever_chunks_and_reads_are_cut() {
        for chunk in 1..EVENTS.len() {
            let body = chunked(chunk);
            for read in [1, 2, 3, 7, 64, body.len()] {
                let mut reader = Reader::new();
                let mut seen = Vec::new();
                for bytes in body.chunks(read) {
                    reader
                        .feed(bytes, &mut |message| {
                            seen.push(message.seq);
                            Ok(())
                        })
                        .unwrap();
                }
                assert_eq!(seen, [3, 4]);
                assert_eq!(reader.last_id(), b"9");
                assert!(reader.ended());
            }
        }
    }
}
