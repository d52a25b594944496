//! What may be seen in a name, and when two names look alike. No I/O.
//!
//! A skeleton is what is left of a name once letters that look alike are the same letter (as in the skeleton
//! of Unicode's security report 39), whatever their case, and nothing but letters and digits counts.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{
    GeneralCategory, UnicodeEmoji, UnicodeGeneralCategory,
    emoji::{is_emoji_presentation_selector, is_zwj},
};
use unicode_security::skeleton as unicode_skeleton;

/// Names that are the server's own.
const RESERVED: [&str; 4] = ["system", "u_system", "sc-chatroom", "starchild"];
/// Marks that may stand on one letter; no language needs more.
const MOST_MARKS: usize = 4;

/// A name as it may be shown.
pub struct Shown {
    /// With single spaces, composed, and without what cannot be seen.
    pub text: String,
    /// Whether there was something in it that must not be.
    pub had_hidden: bool,
}

/// The name without what cannot be seen or would change how its surroundings are read.
pub fn shown(name: &str) -> Shown {
    let chars: Vec<char> = name.trim().nfc().collect();
    let mut text = String::new();
    let mut had_hidden = false;
    let mut marks = 0;
    for (at, &c) in chars.iter().enumerate() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        let (before, after) = (at.checked_sub(1).map(|at| chars[at]), chars.get(at + 1));
        let part_of_emoji = is_part_of_emoji(c, before, after.copied());
        if is_hidden(c) && !part_of_emoji || marks > MOST_MARKS {
            had_hidden = true;
            continue;
        }
        match c.is_whitespace() {
            false => text.push(c),
            true if text.ends_with(' ') => {}
            true => text.push(' '),
        }
    }
    Shown {
        text: text.trim().to_owned(),
        had_hidden,
    }
}

fn is_mark(c: char) -> bool {
    matches!(
        c.general_category(),
        GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark
    )
}

/// Whether a character shows nothing, or orders what is around it.
fn is_hidden(c: char) -> bool {
    use GeneralCategory as Is;
    let by_category = matches!(
        c.general_category(),
        Is::Control
            | Is::Format
            | Is::LineSeparator
            | Is::ParagraphSeparator
            | Is::PrivateUse
            | Is::Surrogate
            | Is::Unassigned
    );
    by_category
        || matches!(c,
            // Letters and signs that are blank, and what joins or varies the letter before.
            '\u{034f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}'
            | '\u{e0100}'..='\u{e01ef}')
}

/// Whether this holds an emoji together: invisible, but the emoji changes without it.
fn is_part_of_emoji(c: char, before: Option<char>, after: Option<char>) -> bool {
    let is_emoji = |c: char| !c.is_ascii() && c.is_emoji_char_or_emoji_component();
    let follows = before.is_some_and(is_emoji);
    match c {
        _ if is_emoji_presentation_selector(c) => follows,
        _ if is_zwj(c) => follows && after.is_some_and(is_emoji),
        _ => false,
    }
}

/// The skeletons of a name. Two names look alike where they share one: `Ivan` looks like `lvan` and
/// like `ivan`, which do not look like each other.
pub fn skeletons(name: &str) -> Vec<String> {
    let name: String = name.nfkc().collect();
    let mut skeletons = vec![skeleton(&name), skeleton(&name.to_lowercase())];
    skeletons.dedup();
    skeletons
}

fn skeleton(name: &str) -> String {
    let once: String = unicode_skeleton(name).collect::<String>().to_lowercase();
    let twice: String = unicode_skeleton(&once).collect::<String>().to_lowercase();
    let letters: String = twice.chars().filter(|c| c.is_alphanumeric()).collect();
    match letters.is_empty() {
        false => letters,
        // Emoji and the like.
        true => twice.split_whitespace().collect(),
    }
}

/// Whether the name, or its first word, looks like one of the server's own.
pub fn is_reserved(name: &str) -> bool {
    let first = name
        .split(|c: char| !c.is_alphanumeric() && !is_mark(c))
        .find(|word| !word.is_empty());
    let like = |one: &str, other: &str| {
        let others = skeletons(other);
        skeletons(one)
            .iter()
            .any(|skeleton| others.contains(skeleton))
    };
    RESERVED
        .iter()
        .any(|own| like(name, own) || first.is_some_and(|word| like(word, own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        let others = skeletons(other);
        skeletons(one)
            .iter()
            .any(|skeleton| others.contains(skeleton))
    }

    #[test]
    fn letters_of_other_scripts_that_look_alike_are_alike() {
        for (one, other) in [
            ("Alice", "Аlісе"),
            ("Alice", "ALICE"),
            ("Alice", "A l i c e"),
            ("Alice", "Alice."),
            ("Alice", "Ａｌｉｃｅ"),
            ("Alice", "𝐀𝐥𝐢𝐜𝐞"),
            ("Alice", "AIice"),
            ("Alice", "A1ice"),
            ("Ivan", "lvan"),
            ("Ivan", "ivan"),
            ("modern", "rnodem"),
            ("o0", "0o"),
        ] {
            assert!(alike(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("Alice", "Alison"),
            ("Bob", "Bobby"),
            ("Bob", "8ob"),
            ("山田", "山本"),
            ("🦊", "🐻"),
        ] {
            assert!(!alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn nobody_is_called_like_the_server() {
        for name in [
            "system",
            "System",
            "SYSTEM",
            "s y s t e m",
            "ѕуѕtеm",
            "[system]",
            "System: everyone",
            "systern",
            "u_system",
            "sc-chatroom",
            "Starchild",
            "Ѕtarchіld",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["Solar system", "systemd", "Alice", "сестра", "🌞"] {
            assert!(!is_reserved(name), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_taken_out() {
        for (name, left) in [
            ("a\u{200b}b", "ab"),
            ("a\u{202e}b", "ab"),
            ("a\u{2066}b\u{2069}", "ab"),
            ("a\u{200d}b", "ab"),
            ("a\u{200c}b", "ab"),
            ("a\u{feff}b", "ab"),
            ("a\u{3164}", "a"),
            ("a\u{ad}b", "ab"),
            ("a\u{e0061}b", "ab"),
            ("a\u{fe0f}b", "ab"),
            ("a\nb", "ab"),
            ("a\u{7}b", "ab"),
            ("a\u{2028}b", "ab"),
            ("\u{1160}", ""),
        ] {
            let shown = shown(name);
            assert!(shown.had_hidden, "{name:?}");
            assert_eq!(shown.text.replace(' ', ""), left, "{name:?}");
        }
        let zalgo = format!("a{}", "\u{301}\u{302}\u{303}".repeat(5));
        assert!(shown(&zalgo).had_hidden);
    }

    #[test]
    fn a_name_in_any_script_stands() {
        for name in [
            "Alice",
            "Zoë",
            "山田 太郎",
            "محمد",
            "שרה",
            "Нина",
            "สมชาย",
            "Codex (Bob's)",
            "👩‍💻 Ann",
            "❤️",
            "🏳️‍🌈",
            "Nguyễn Thị Ánh",
            "किशोर",
        ] {
            let shown = shown(name);
            assert!(!shown.had_hidden, "{name}");
            assert_eq!(shown.text, name.nfc().collect::<String>());
        }
        assert_eq!(shown(" 山田\u{3000}太郎  x ").text, "山田 太郎 x");
    }
}
