//! Markdown as it grows, drawn for a terminal. What has come of a line is drawn
//! at once where that cannot turn out wrong; the marks themselves go.

mod code;
mod table;

use code::Code;
use table::Table;

const BOLD: &str = "\x1b[1m";
const ITALIC: &str = "\x1b[3m";
const CODE: &str = "\x1b[36m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// The columns of a terminal that does not tell.
const COLUMNS: usize = 80;

/// Draws a text that comes in pieces.
#[derive(Default)]
pub struct Markdown {
    /// How wide the terminal is, where it tells.
    columns: Option<usize>,
    /// What has come of the line, as long as it is not clear what it is.
    held: String,
    line: Line,
    inline: Inline,
    /// The block of code that is open.
    fence: Option<Code>,
    /// The table that is open.
    table: Option<Table>,
    /// The last character that was drawn of the line.
    before: Option<char>,
}

/// What the line in hand is.
#[derive(Clone, Copy, Default, PartialEq)]
enum Line {
    /// Its first characters have not told yet.
    #[default]
    Unknown,
    /// Words that are drawn as they come.
    Words,
    /// A heading: bold to its end.
    Heading,
    /// Within a block of code, drawn as it comes.
    Code,
    /// Of a table, which is drawn when it ends.
    Table,
}

#[derive(Clone, Copy, Default)]
struct Inline {
    bold: bool,
    italic: bool,
    code: bool,
}

impl Markdown {
    /// Tables are drawn no wider than this.
    pub fn set_columns(&mut self, columns: Option<usize>) {
        self.columns = columns;
    }

    /// What to print for the next piece, which is printable.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            match c {
                '\n' => self.end_line(&mut out),
                c => self.character(c, &mut out),
            }
        }
        // A mark at the end may be the first half of one.
        if self.line == Line::Words && !self.held.ends_with(['*', '_', '`', '\\']) {
            self.draw_inline(&mut out);
        }
        out
    }

    /// What is left to print at the end.
    pub fn end(&mut self) -> String {
        let mut out = String::new();
        let within_table = self.line == Line::Table;
        if within_table {
            self.end_line(&mut out);
        }
        self.end_table(&mut out);
        if within_table && out.ends_with('\n') {
            out.pop();
        }
        if !self.held.is_empty() || self.line != Line::Unknown {
            self.finish_line(&mut out);
        }
        if self.fence.is_some() || self.inline.bold || self.inline.italic || self.inline.code {
            out.push_str(RESET);
        }
        *self = Self {
            columns: self.columns,
            ..Self::default()
        };
        out
    }

    fn character(&mut self, c: char, out: &mut String) {
        self.held.push(c);
        if self.line != Line::Unknown {
            if self.line == Line::Code {
                out.push(c);
                self.held.clear();
            }
            return;
        }
        if let Some(code) = &self.fence {
            // A line that is highlighted is drawn when it is whole; of others only
            // what could still be the end of the block is held.
            let begun = self.held.trim_start();
            let may_end = "```".starts_with(begun) || begun.starts_with("```");
            if !may_end && !code.waits_for_lines() {
                out.push_str(CODE);
                out.push_str(&std::mem::take(&mut self.held));
                self.line = Line::Code;
            }
            return;
        }
        let indent = self.held.len() - self.held.trim_start().len();
        let begun = self.held.trim_start();
        if begun.starts_with('|') {
            self.line = Line::Table;
            return;
        }
        if begun.is_empty() {
            return;
        }
        if self.table.is_some() {
            self.end_table(out);
        }
        let begun = self.held.trim_start();
        if is_open_mark(begun) {
            return;
        }
        let (pad, rest) = self.held.split_at(indent);
        if let Some(words) = heading(rest) {
            out.push_str(BOLD);
            self.held = words.to_owned();
            self.line = Line::Heading;
        } else if let Some(words) = rest.strip_prefix("> ") {
            out.push_str(&format!("{pad}{DIM}│{RESET} "));
            self.held = words.to_owned();
            self.line = Line::Words;
        } else if let Some(words) = bullet(rest) {
            out.push_str(&format!("{pad}• "));
            self.held = words.to_owned();
            self.line = Line::Words;
        } else if !rest.starts_with("```") {
            self.line = Line::Words;
        }
    }

    fn end_line(&mut self, out: &mut String) {
        if self.line == Line::Table {
            self.line = Line::Unknown;
            let line = std::mem::take(&mut self.held);
            if self.table.get_or_insert_default().push(line) {
                self.end_table(out);
            }
            return;
        }
        self.end_table(out);
        self.finish_line(out);
        out.push('\n');
        self.line = Line::Unknown;
        self.before = None;
    }

    /// Draws the table that is open, or the lines that only began like one.
    fn end_table(&mut self, out: &mut String) {
        let Some(table) = self.table.take() else {
            return;
        };
        let inline = |cell: &str| {
            let mut words = Self {
                held: cell.to_owned(),
                line: Line::Words,
                ..Self::default()
            };
            let mut drawn = String::new();
            words.finish_line(&mut drawn);
            drawn
        };
        match table.draw(self.columns.unwrap_or(COLUMNS), inline) {
            Some(drawn) => out.push_str(&drawn),
            None => {
                for line in table.into_lines() {
                    out.push_str(&inline(&line));
                    out.push('\n');
                }
            }
        }
    }

    /// Draws what is left of the line.
    fn finish_line(&mut self, out: &mut String) {
        let fence = self.held.trim_start().strip_prefix("```");
        if let (Line::Unknown, None, Some(code)) = (self.line, fence, &mut self.fence) {
            code.line(&std::mem::take(&mut self.held), out);
            return;
        }
        match (self.line, fence) {
            (Line::Unknown, Some(language)) => {
                // Editors put more after the language: `rust,ignore`, `js {1}`.
                let language = language.trim().split([',', ' ', '{']).next();
                let language = language.unwrap_or_default();
                let (label, fence) = match (&self.fence, language) {
                    (Some(_), _) => ("───", None),
                    (None, "") => ("───", Some(Code::new(""))),
                    (None, language) => (language, Some(Code::new(language))),
                };
                out.push_str(&format!("{DIM}{label}{RESET}"));
                self.fence = fence;
                self.held.clear();
            }
            (Line::Unknown, None) if is_rule(self.held.trim()) => {
                out.push_str(&format!("{DIM}────────{RESET}"));
                self.held.clear();
            }
            (Line::Code, _) => {
                out.push_str(&std::mem::take(&mut self.held));
                out.push_str(RESET);
            }
            (line, _) => {
                self.draw_inline(out);
                let open = self.inline.bold || self.inline.italic || self.inline.code;
                if line == Line::Heading || open {
                    out.push_str(RESET);
                }
                // A mark that is not closed ends with its line.
                self.inline = Inline::default();
            }
        }
    }

    /// Draws what is held, and turns styles on and off at their marks.
    fn draw_inline(&mut self, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        while let Some(c) = rest.chars().next() {
            let (taken, drawn) = self.mark(rest);
            if drawn {
                out.push_str(RESET);
                self.styles(out);
            } else if taken == 2 {
                out.extend(rest.chars().nth(1));
            } else {
                out.push(c);
            }
            let len: usize = rest.chars().take(taken).map(char::len_utf8).sum();
            self.before = rest[..len].chars().last();
            rest = &rest[len..];
        }
    }

    /// How many characters the mark at the beginning has, and whether it changed
    /// a style. Without a style it is an escape or an ordinary character.
    fn mark(&mut self, rest: &str) -> (usize, bool) {
        let next = |at: usize| rest.chars().nth(at).unwrap_or(' ');
        if rest.starts_with('`') {
            self.inline.code = !self.inline.code;
            return (1, true);
        }
        if self.inline.code {
            return (1, false);
        }
        if rest.starts_with('\\') && next(1).is_ascii_punctuation() {
            return (2, false);
        }
        if rest.starts_with("**") && (self.inline.bold || !next(2).is_whitespace()) {
            self.inline.bold = !self.inline.bold;
            return (2, true);
        }
        let star = rest.starts_with('*') && !rest.starts_with("**");
        let closes = self.inline.italic && !self.before.is_none_or(char::is_whitespace);
        if star && (closes || (!self.inline.italic && !next(1).is_whitespace())) {
            self.inline.italic = !self.inline.italic;
            return (1, true);
        }
        (1, false)
    }

    fn styles(&self, out: &mut String) {
        let inline = self.inline;
        for (on, style) in [
            (self.line == Line::Heading || inline.bold, BOLD),
            (inline.italic, ITALIC),
            (inline.code, CODE),
        ] {
            if on {
                out.push_str(style);
            }
        }
    }
}

/// Whether a line that begins like this could still become something else.
fn is_open_mark(begun: &str) -> bool {
    let hashes = begun.chars().all(|c| c == '#') && begun.len() <= 6;
    let marks = matches!(begun, "-" | "*" | "+" | ">" | "`" | "``");
    hashes || marks || begun.starts_with("```") || is_rule_so_far(begun)
}

fn is_rule_so_far(begun: &str) -> bool {
    matches!(begun, "--" | "**" | "___" | "__" | "_") || is_rule(begun)
}

fn is_rule(line: &str) -> bool {
    let mut chars = line.chars();
    chars.next().is_some_and(|first| {
        matches!(first, '-' | '*' | '_') && line.len() >= 3 && chars.all(|c| c == first)
    })
}

fn heading(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#');
    let hashes = line.len() - words.len();
    (1..=6)
        .contains(&hashes)
        .then_some(words)?
        .strip_prefix(' ')
}

fn bullet(line: &str) -> Option<&str> {
    ["- ", "* ", "+ "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> String {
        let mut markdown = Markdown::default();
        let drawn = markdown.push(text);
        drawn + &markdown.end()
    }

    /// What a reader sees when styles are left out.
    fn bare(drawn: &str) -> String {
        let mut out = String::new();
        let mut rest = drawn;
        while let Some((before, after)) = rest.split_once('\x1b') {
            out.push_str(before);
            rest = after.split_once('m').map_or("", |(_, rest)| rest);
        }
        out + rest
    }

    const TEXT: &str = "# Title\n\nSome **bold** and *thin* and `co*de` words.\n\n- one\n* two\n  - three\n\n> said\n\n```rust\nfn main() { a * b; }\n# no heading\n```\n3 * 4 * 5 and a_b_c \\*here\\*\n---\nlast";
    const SEEN: &str = "Title\n\nSome bold and thin and co*de words.\n\n• one\n• two\n  • three\n\n│ said\n\nrust\nfn main() { a * b; }\n# no heading\n───\n3 * 4 * 5 and a_b_c *here*\n────────\nlast";

    #[test]
    fn marks_become_styles() {
        assert_eq!(bare(&whole(TEXT)), SEEN);
        let drawn = whole("a **b** `c`");
        assert!(drawn.contains(&format!("{BOLD}b")) && drawn.contains(&format!("{CODE}c")));
    }

    #[test]
    fn it_is_the_same_however_it_comes() {
        for size in 1..7 {
            let chars: Vec<char> = TEXT.chars().collect();
            let mut markdown = Markdown::default();
            let mut drawn = String::new();
            for piece in chars.chunks(size) {
                drawn.push_str(&markdown.push(&piece.iter().collect::<String>()));
            }
            drawn.push_str(&markdown.end());
            assert_eq!(bare(&drawn), SEEN, "in pieces of {size}");
        }
    }

    #[test]
    fn words_are_drawn_before_their_line_ends() {
        let mut markdown = Markdown::default();
        assert_eq!(bare(&markdown.push("Hel")), "Hel");
        assert_eq!(bare(&markdown.push("lo **wor")), "lo wor");
    }

    #[test]
    fn code_in_a_known_language_is_highlighted_line_by_line() {
        let mut markdown = Markdown::default();
        markdown.push("```rust,ignore\n");
        assert_eq!(markdown.push("let a = "), "");
        let drawn = markdown.push("\"b\";\n");
        assert_eq!(bare(&drawn), "let a = \"b\";\n");
        let colours = drawn.matches('\x1b').count();
        assert!(colours >= 4, "keyword and string stand out: {drawn:?}");
        assert!(markdown.push("```\nlet").ends_with("let"), "words again");
    }

    const TABLE: &str =
        "So:\n\n| Name | **Cost** |\n|:---|---:|\n| a `b` | 1 |\n| 天氣 \\| c | 12,000 |\n\nDone";
    const DRAWN: &str =
        "So:\n\nName     │   Cost\n─────────┼───────\na b      │      1\n天氣 | c │ 12,000\n\nDone";

    #[test]
    fn a_table_is_drawn_in_columns_however_it_comes() {
        assert_eq!(bare(&whole(TABLE)), DRAWN);
        for size in 1..9 {
            let chars: Vec<char> = TABLE.chars().collect();
            let mut markdown = Markdown::default();
            let mut drawn = String::new();
            for piece in chars.chunks(size) {
                drawn.push_str(&markdown.push(&piece.iter().collect::<String>()));
            }
            drawn.push_str(&markdown.end());
            assert_eq!(bare(&drawn), DRAWN, "in pieces of {size}");
        }
        let drawn = whole("| **a** |\n|---|\n| `b` |");
        assert!(drawn.contains(BOLD) && drawn.contains(&format!("{CODE}b")));
    }

    #[test]
    fn a_wide_table_is_wrapped_and_lines_that_are_no_table_stay() {
        let mut markdown = Markdown::default();
        markdown.set_columns(Some(30));
        let text = "| a | b |\n|---|---|\n| one | a long text of many words in a cell |\n| averyveryverylongwordwithoutanend | x |\n";
        let drawn = bare(&(markdown.push(text) + &markdown.end()));
        assert!(
            drawn.lines().all(|line| line.chars().count() <= 30),
            "{drawn}"
        );
        let first = drawn.lines().filter_map(|line| line.split('│').next());
        let first: String = first.map(str::trim).collect();
        assert!(
            first.ends_with("averyveryverylongwordwithoutanend"),
            "{drawn}"
        );
        for text in [
            "| not a table",
            "|x|\n|y|\nz",
            "| a | b |\n|---|\n| c |",
            "||\n",
            "|",
        ] {
            assert_eq!(bare(&whole(text)).trim_end(), text.trim_end(), "{text}");
        }
    }

    #[test]
    fn a_table_without_end_is_drawn_as_far_as_it_came() {
        let mut markdown = Markdown::default();
        let mut drawn = markdown.push("| a |\n|---|\n");
        for _ in 0..10_000 {
            drawn.push_str(&markdown.push("| some words |\n"));
        }
        assert!(drawn.len() > 60_000, "{}", drawn.len());
    }

    #[test]
    fn styles_end_with_the_text() {
        for text in [
            "**open",
            "`open",
            "```\ncode",
            "```c\n/* x",
            "# title",
            "*a\nb",
            "```",
        ] {
            let drawn = whole(text);
            let last = drawn.rfind('\x1b').map(|at| &drawn[at..]);
            assert!(
                last.is_none_or(|style| style.starts_with(RESET)),
                "{text}: {drawn:?}"
            );
        }
    }
}
