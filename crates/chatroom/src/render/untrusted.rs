//! Markdown out of words that nobody vouches for.

use protocol::MAX_CONTENT_BYTES;
use serde_json::Value;

/// So many characters of a title or a name are shown.
const LINE_CHARS: usize = 200;
const QUOTE_CHARS: usize = 600;
const QUOTE_LINES: usize = 8;

/// Words as one line that looks like what it says: no markup, no mention.
pub fn plain(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    escape(&shortened(&line.join(" "), LINE_CHARS))
}

/// A word in a code span, such as a branch.
pub fn code(text: &str) -> String {
    let word: String = text
        .chars()
        .filter(|c| !c.is_control() && *c != '`')
        .collect();
    format!("`{}`", shortened(&word, LINE_CHARS))
}

/// A link, where the address is one of the web and cannot break out of it; else its words.
pub fn link(words: &str, address: &str) -> String {
    let web = address.starts_with("https://") || address.starts_with("http://");
    let breaks_out = |c: char| c.is_whitespace() || c.is_control() || "()<>[]\"\\`".contains(c);
    match web && address.len() <= 500 && !address.contains(breaks_out) {
        true => format!("[{words}]({address})"),
        false => words.to_owned(),
    }
}

/// The beginning of a text of several lines, quoted.
pub fn quote(text: &str) -> String {
    let text = shortened(text.trim(), QUOTE_CHARS);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<String> = lines
        .take(QUOTE_LINES)
        .map(|line| format!("> {}", escape(line.trim())))
        .collect();
    lines.join("\n")
}

/// A document as a block of code, cut where it is too long.
pub fn code_block(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let room = MAX_CONTENT_BYTES.saturating_sub(2 * fence.len() + 8);
    format!("{fence}json\n{}\n{fence}", cut(&text, room))
}

/// A text of at most so many bytes.
pub fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes.saturating_sub("…".len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!'
            | '&' => escaped.extend(['\\', c]),
            // It would mention somebody; within a word it does not.
            '@' if !before.is_alphanumeric() => escaped.push('＠'),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
        before = c;
    }
    // An address of its own would become a link.
    escaped.replace("://", ":\\//")
}
