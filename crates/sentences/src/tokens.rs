//! Text to tokens, as the model knows them: whole words, or their pieces. What it does not know
//! is left out.

use std::collections::HashMap;

/// A word that is longer says nothing.
const MAX_WORD: usize = 40;
/// The most of a text that is looked at, however few tokens it gives.
const MAX_TEXT: usize = 2048;
/// No piece is longer.
const MAX_PIECE: usize = 20;
/// A piece that goes on a word.
const GOES_ON: &str = "##";

/// The tokens of a model.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// Pieces that begin a word, and those that go on.
    begin: HashMap<&'static str, usize>,
    go_on: HashMap<&'static str, usize>,
}

impl Tokens {
    /// A token a line.
    pub(crate) fn new(lines: &'static str) -> Self {
        let mut tokens = Self::default();
        for (at, line) in lines.lines().enumerate() {
            match line.strip_prefix(GOES_ON) {
                Some(piece) if !piece.is_empty() => tokens.go_on.insert(piece, at),
                _ => tokens.begin.insert(line, at),
            };
        }
        tokens
    }

    /// The token that is this whole word or mark.
    pub(crate) fn whole(&self, text: &str) -> Option<usize> {
        self.begin.get(text).copied()
    }

    /// The first `most` tokens of a text.
    pub(crate) fn of(&self, text: &str, most: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut word = String::new();
        for c in text.chars().take(MAX_TEXT).chain([' ']) {
            if c.is_alphanumeric() {
                word.extend(plain(c).to_lowercase());
                continue;
            }
            self.add(&word, &mut found);
            word.clear();
            let mark = match c {
                '\u{2018}' | '\u{2019}' => '\'',
                '\u{201c}' | '\u{201d}' => '"',
                c => c,
            };
            if mark.is_ascii_punctuation() {
                self.add(mark.encode_utf8(&mut [0; 4]), &mut found);
            }
            if found.len() >= most {
                break;
            }
        }
        found.truncate(most);
        found
    }

    /// The longest pieces from the left, or nothing.
    fn add(&self, word: &str, found: &mut Vec<usize>) {
        let known = found.len();
        let mut rest = word;
        if rest.len() > MAX_WORD {
            return;
        }
        while !rest.is_empty() {
            let pieces = if rest.len() == word.len() {
                &self.begin
            } else {
                &self.go_on
            };
            let ends = rest
                .char_indices()
                .take(MAX_PIECE)
                .map(|(at, c)| at + c.len_utf8());
            let ends: Vec<usize> = ends.collect();
            let longest = ends
                .iter()
                .rev()
                .map(|end| rest.split_at(*end))
                .find_map(|(piece, rest)| pieces.get(piece).map(|token| (*token, rest)));
            let Some((token, after)) = longest else {
                found.truncate(known);
                return;
            };
            found.push(token);
            rest = after;
        }
    }
}

/// Letters without their accents, for what English writes with them now and then.
fn plain(c: char) -> char {
    match c {
        'à'..='å' | 'À'..='Å' | 'ā' | 'Ā' | 'ă' | 'ą' => 'a',
        'ç' | 'Ç' | 'ć' | 'č' | 'Č' => 'c',
        'è'..='ë' | 'È'..='Ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ì'..='ï' | 'Ì'..='Ï' | 'ī' => 'i',
        'ñ' | 'Ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'Ò'..='Ö' | 'ō' => 'o',
        'ù'..='ü' | 'Ù'..='Ü' | 'ū' | 'ů' => 'u',
        'ý' | 'ÿ' | 'Ý' => 'y',
        'ś' | 'š' | 'Š' | 'ş' => 's',
        'ź' | 'ż' | 'ž' | 'Ž' => 'z',
        c => c,
    }
}
