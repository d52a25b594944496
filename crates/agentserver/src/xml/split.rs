//! A stream of text, cut where its elements end: what a person types or another
//! program writes, read to the balanced element and mended nowhere.

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// From the start of an element to its end. Whether it is well-formed is the
    /// door's to say.
    Element(String),
    /// Something else: a line that begins no element, or an element that the
    /// stream ended in.
    Other(String),
    /// Something that is not UTF-8.
    NotText(Vec<u8>),
    /// Something that is longer than allowed; the rest of its line was dropped.
    TooLong,
}

/// Cuts a stream into pieces.
pub struct Splitter {
    most: usize,
    state: LexerState,
    depth: usize,
    piece: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LexerState {
    /// Between elements.
    Outside,
    /// In a line that begins no element.
    Words,
    /// In the text of an element.
    Text,
    /// Just after a `<`.
    Open,
    /// Just after `<!`.
    Bang,
    Tag {
        is_end: bool,
        quote: Option<u8>,
    },
    Comment,
    CData,
    /// In a declaration or an instruction.
    Declaration,
    /// In the rest of a line that was too long.
    Skipped,
}

impl Splitter {
    /// For pieces of at most so many bytes.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            state: LexerState::Outside,
            depth: 0,
            piece: Vec::new(),
        }
    }

    /// Takes more of the stream; `found` is given each piece that is whole.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Piece)) {
        for byte in bytes {
            if let Some(piece) = self.take(*byte) {
                found(piece);
            }
        }
    }

    /// The stream has ended: what is left of it.
    pub fn finish(&mut self) -> Option<Piece> {
        self.state = LexerState::Outside;
        self.depth = 0;
        let is_left = !self.piece.trim_ascii().is_empty();
        let rest = self.cut(Piece::Other);
        is_left.then_some(rest)
    }

    /// What has come of a piece, as this where it is text.
    fn cut(&mut self, piece: fn(String) -> Piece) -> Piece {
        let text = String::from_utf8(std::mem::take(&mut self.piece));
        text.map_or_else(|wrong| Piece::NotText(wrong.into_bytes()), piece)
    }

    fn take(&mut self, byte: u8) -> Option<Piece> {
        let is_space = byte.is_ascii_whitespace();
        match self.state {
            LexerState::Outside if is_space => return None,
            LexerState::Skipped if byte == b'\n' => {
                self.state = LexerState::Outside;
                return None;
            }
            LexerState::Skipped => return None,
            LexerState::Words if byte == b'\n' => {
                self.state = LexerState::Outside;
                return Some(self.cut(Piece::Other));
            }
            _ => {}
        }
        self.piece.push(byte);
        if self.piece.len() > self.most {
            self.piece = Vec::new();
            self.depth = 0;
            self.state = LexerState::Skipped;
            return Some(Piece::TooLong);
        }
        // A declaration or a comment before the root goes with it.
        let was_in_tag = matches!(self.state, LexerState::Tag { .. });
        self.state = self.after(byte);
        let is_whole = was_in_tag && self.state == LexerState::Outside;
        is_whole.then(|| self.cut(Piece::Element))
    }

    /// Where the stream is after this byte.
    fn after(&mut self, byte: u8) -> LexerState {
        let between = match self.depth {
            0 => LexerState::Outside,
            _ => LexerState::Text,
        };
        match (self.state, byte) {
            (LexerState::Outside | LexerState::Text, b'<') => LexerState::Open,
            (LexerState::Outside | LexerState::Words, _) => LexerState::Words,
            (LexerState::Open, b'/') => LexerState::Tag {
                is_end: true,
                quote: None,
            },
            (LexerState::Open, b'!') => LexerState::Bang,
            (LexerState::Open, b'?') => LexerState::Declaration,
            (LexerState::Open, _) if byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 => {
                LexerState::Tag {
                    is_end: false,
                    quote: None,
                }
            }
            (LexerState::Open, _) if self.depth == 0 => LexerState::Words,
            (LexerState::Open, _) => LexerState::Text,
            (LexerState::Bang, _) if self.piece.ends_with(b"<!--") => LexerState::Comment,
            (LexerState::Bang, _) if self.piece.ends_with(b"<![CDATA[") => LexerState::CData,
            (LexerState::Bang, b'>') | (LexerState::Declaration, b'>') => between,
            (LexerState::Comment, b'>') if self.piece.ends_with(b"-->") => between,
            (LexerState::CData, b'>') if self.piece.ends_with(b"]]>") => LexerState::Text,
            (LexerState::Tag { is_end, quote }, _) => self.in_tag(is_end, quote, byte),
            (state, _) => state,
        }
    }

    fn in_tag(&mut self, is_end: bool, quote: Option<u8>, byte: u8) -> LexerState {
        match (quote, byte) {
            (None, b'>') => {
                let is_empty = self.piece.ends_with(b"/>");
                self.depth = match (is_end, is_empty) {
                    (true, _) => self.depth.saturating_sub(1),
                    (false, true) => self.depth,
                    (false, false) => self.depth + 1,
                };
                match self.depth {
                    0 => LexerState::Outside,
                    _ => LexerState::Text,
                }
            }
            (None, b'"' | b'\'') => LexerState::Tag {
                is_end,
                quote: Some(byte),
            },
            (Some(open), _) if open == byte => LexerState::Tag {
                is_end,
                quote: None,
            },
            _ => LexerState::Tag { is_end, quote },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<Piece> {
        let mut splitter = Splitter::new(100);
        let mut pieces = Vec::new();
        splitter.push(text.as_bytes(), |piece| pieces.push(piece));
        pieces.extend(splitter.finish());
        pieces
    }

    fn element(text: &str) -> Piece {
        Piece::Element(text.to_owned())
    }

    fn other(text: &str) -> Piece {
        Piece::Other(text.to_owned())
    }

    #[test]
    fn an_element_is_read_to_its_end_over_lines() {
        assert_eq!(
            pieces("<a>\n  <b c='>'/>x</a>\n<d/><e>1 < 2</e>\n"),
            [
                element("<a>\n  <b c='>'/>x</a>"),
                element("<d/>"),
                element("<e>1 < 2</e>")
            ]
        );
    }

    #[test]
    fn what_looks_like_tags_in_comments_and_sections_is_not() {
        let text = "<a><!-- </a> --><![CDATA[</a>]]></a>";
        assert_eq!(pieces(text), [element(text)]);
        let text = "<?xml version=\"1.0\"?>\n<a><b></b></a>";
        assert_eq!(
            pieces(text),
            [element("<?xml version=\"1.0\"?><a><b></b></a>")]
        );
    }

    #[test]
    fn words_are_a_piece_for_each_line() {
        assert_eq!(
            pieces("hello <a>\n<a/>\n< x\n</b>\n"),
            [
                other("hello <a>"),
                element("<a/>"),
                other("< x"),
                element("</b>")
            ]
        );
    }

    #[test]
    fn an_element_that_does_not_end_is_told_at_the_end_of_the_stream() {
        assert_eq!(pieces("<a><b>x</b>\n"), [other("<a><b>x</b>\n")]);
    }

    #[test]
    fn what_is_not_text_is_not_made_into_text() {
        let mut splitter = Splitter::new(100);
        let mut pieces = Vec::new();
        splitter.push(b"<a>\xff</a>\nword\xff\n<b/>\xff", |piece| {
            pieces.push(piece)
        });
        pieces.extend(splitter.finish());
        let not_text = |bytes: &[u8]| Piece::NotText(bytes.to_vec());
        let all = [
            not_text(b"<a>\xff</a>"),
            not_text(b"word\xff"),
            element("<b/>"),
            not_text(b"\xff"),
        ];
        assert_eq!(pieces, all);
    }

    #[test]
    fn what_is_too_long_is_dropped_to_the_end_of_its_line() {
        let text = format!("<a>{}</a>\n<b/>", "x".repeat(200));
        assert_eq!(pieces(&text), [Piece::TooLong, element("<b/>")]);
    }
}
