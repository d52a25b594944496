//! What is done with a program's output while it runs.

/// How much is kept of what a program prints; an answer is shorter than this.
pub(super) const KEPT_BYTES: usize = 64 << 10;
/// How much more is let go by while the program goes on to its exit. One that says more than that
/// has no end in sight and is ended; what was kept counts.
pub(super) const IGNORED_BYTES: usize = 1 << 20;
/// The longest line that is read; a longer one is passed over.
const MAX_LINE_BYTES: usize = 1 << 20;
/// The most bytes of lines.
const MAX_LINES_BYTES: usize = 64 << 20;

/// Takes a program's output as it comes.
pub trait OutputReader {
    /// The next bytes.
    fn read(&mut self, bytes: &[u8]);

    /// Whether the program has said more than anybody wants to hear.
    fn is_full(&self) -> bool;
}

/// Keeps the beginning.
#[derive(Debug, Default)]
pub struct HeadReader {
    pub(super) bytes: Vec<u8>,
    gone_by: usize,
}

impl OutputReader for HeadReader {
    fn read(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(KEPT_BYTES - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.gone_by += bytes.len() - fits;
    }

    fn is_full(&self) -> bool {
        self.gone_by > IGNORED_BYTES
    }
}

impl HeadReader {
    /// As text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Reads line by line.
pub struct LineReader<F> {
    on_line: F,
    line: Vec<u8>,
    is_too_long: bool,
    read: usize,
}

impl<F: FnMut(&str)> LineReader<F> {
    /// Gives each line to `on_line`.
    pub fn new(on_line: F) -> Self {
        Self {
            on_line,
            line: Vec::new(),
            is_too_long: false,
            read: 0,
        }
    }

    /// The last line may have no end.
    pub fn finish(mut self) {
        self.end_line();
    }

    fn push(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.line.len() + bytes.len() > MAX_LINE_BYTES;
        if !self.is_too_long {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        if !self.is_too_long && !self.line.is_empty() {
            (self.on_line)(&String::from_utf8_lossy(&self.line));
        }
        self.is_too_long = false;
        self.line.clear();
    }
}

impl<F: FnMut(&str)> OutputReader for LineReader<F> {
    fn read(&mut self, bytes: &[u8]) {
        self.read += bytes.len();
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            self.push(part);
            if lines.peek().is_some() {
                self.end_line();
            }
        }
    }

    fn is_full(&self) -> bool {
        self.read > MAX_LINES_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let mut lines = Vec::new();
        let mut reader = LineReader::new(|line: &str| lines.push(line.to_owned()));
        for part in ["on", "e\ntwo\n", "\n", "thr", "ee"] {
            reader.read(part.as_bytes());
        }
        reader.read(b"\n");
        reader.read(&vec![b'x'; MAX_LINE_BYTES]);
        reader.read(b"xx\nlast");
        reader.finish();
        assert_eq!(lines, ["one", "two", "three", "last"]);
    }

    #[test]
    fn lines_without_end_are_ended() {
        let mut reader = LineReader::new(|_: &str| {});
        let megabyte = vec![b'x'; 1 << 20];
        (0..64).for_each(|_| reader.read(&megabyte));
        assert!(!reader.is_full());
        reader.read(b"x");
        assert!(reader.is_full());
    }
}
