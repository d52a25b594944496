//! Text from elsewhere on its way to a terminal: a server, a model or a program may say anything,
//! and a terminal obeys what it is told.

use std::borrow::Cow;

/// The text without what steers a terminal or reorders what it shows: control characters, with the
/// escape that begins every sequence, and direction marks. Line breaks and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    match text.contains(steers) {
        true => text.chars().filter(|c| !steers(*c)).collect(),
        false => text.into(),
    }
}

/// The same as one line.
pub fn one_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

fn steers(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t') || is_direction_mark(c)
}

fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(
            printable("a\x1b]0;owned\x07b\r\x1b[2Jc\n\td\u{9b}31m\u{7f}"),
            "a]0;ownedb[2Jc\n\td31m"
        );
        assert_eq!(printable("safe\u{202e}gpj.exe\u{2066}"), "safegpj.exe");
        assert_eq!(one_line("a\nb\tc\x1b[1A"), "a b c[1A");
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["", "plain\n\ttext", "Zoë 天 👩‍👩‍👧", "שלום"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
    }
}
