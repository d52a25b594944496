//! The words of a text. They are found here and not by the engines, so that both find the same, in
//! any script.
//!
//! A word is a run of letters and digits, in lower case and without diacritics. In scripts that put no
//! spaces between words, each character is one; what is searched for in them is a phrase.

use crate::store::{
    messages::MessageRow,
    search::{SearchableMessage, Terms},
};
use protocol::{EXTERNAL_PREFIX, MessageType, RoomId, Via};
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;

/// Longer words are cut: nobody types them.
const LONGEST: usize = 64;

/// A word, and where it stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchToken {
    pub word: String,
    pub range: Range<usize>,
}

/// The words of a text, in their order.
pub fn tokenize(text: &str) -> Vec<SearchToken> {
    let mut found: Vec<SearchToken> = Vec::new();
    let mut open: Option<SearchToken> = None;
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        match class(letter) {
            Class::Letter => {
                let token = open.get_or_insert_with(|| SearchToken {
                    word: String::new(),
                    range: at..end,
                });
                token.range.end = end;
                if token.word.chars().count() < LONGEST {
                    token.word.extend(folded(letter));
                }
            }
            Class::Mark => {
                if let Some(token) = &mut open {
                    token.range.end = end;
                }
            }
            Class::Ideograph => {
                found.extend(open.take());
                found.push(SearchToken {
                    word: folded(letter).collect(),
                    range: at..end,
                });
            }
            Class::Other => found.extend(open.take()),
        }
    }
    found.extend(open.take());
    found.retain(|token| !token.word.is_empty());
    found
}

enum Class {
    Letter,
    /// Belongs to the letter before it and is not compared.
    Mark,
    /// A word of its own.
    Ideograph,
    Other,
}

fn class(letter: char) -> Class {
    match letter {
        '\u{300}'..='\u{36f}' | '\u{64b}'..='\u{652}' | '\u{200c}' | '\u{200d}' => Class::Mark,
        // Kana, ideographs, and Thai, Lao, Khmer and Burmese.
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}'
        | '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}' => match letter.is_alphanumeric() {
            true => Class::Ideograph,
            false => Class::Other,
        },
        letter if letter.is_alphanumeric() => Class::Letter,
        letter if unicode_normalization::char::is_combining_mark(letter) => Class::Letter,
        _ => Class::Other,
    }
}

/// In lower case, without diacritics, in the form in which equal letters are equal.
fn folded(letter: char) -> impl Iterator<Item = char> {
    std::iter::once(letter)
        .nfkd()
        .flat_map(char::to_lowercase)
        .filter(|letter| matches!(class(*letter), Class::Letter | Class::Ideograph))
}

/// The mark for whatever has this name or id.
pub fn mark(kind: &str, name: &str) -> String {
    let name = name.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' => letter,
        'A'..='Z' => letter.to_ascii_lowercase(),
        letter if letter.is_ascii() => '_',
        letter => letter,
    });
    let name: String = name.take(LONGEST * 2).collect();
    format!("/{kind}_{name}")
}

/// What a message is found by, unless nobody searches for it.
pub fn searchable(room: &RoomId, row: &MessageRow) -> Option<SearchableMessage> {
    if row.deleted || row.r#type != MessageType::Chat {
        return None;
    }
    Some(SearchableMessage {
        room_id: room.clone(),
        seq: row.seq,
        created_at: row.created_at,
        terms: Terms {
            words: tokenize(&row.content)
                .into_iter()
                .map(|token| token.word)
                .collect(),
            marks: marks(room, row),
        },
    })
}

fn marks(room: &RoomId, row: &MessageRow) -> Vec<String> {
    let mut marks = vec![mark("in", room.as_str())];
    let id = row.sender_user_id.as_str();
    let bare = id.strip_prefix(EXTERNAL_PREFIX).unwrap_or(id);
    marks.extend([mark("from", id), mark("from", bare)]);
    if let Some((prefix, _)) = bare.rsplit_once('-') {
        marks.push(mark("from", prefix));
    }
    let name = row.sender_user_name.as_deref().unwrap_or_default();
    marks.extend(tokenize(name).iter().map(|token| mark("from", &token.word)));
    marks.push(match row.via {
        Via::Agent => mark("is", "agent"),
        _ => mark("is", "person"),
    });
    let text = &row.content;
    if text.contains("http://") || text.contains("https://") {
        marks.push(mark("has", "link"));
    }
    if text.matches('`').count() >= 2 {
        marks.push(mark("has", "code"));
    }
    marks.sort_unstable();
    marks.dedup();
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokenize(text).into_iter().map(|token| token.word).collect()
    }

    #[test]
    fn words_are_compared_without_case_and_diacritics() {
        assert_eq!(words("Café, CAFE\u{301}!"), ["cafe", "cafe"]);
        assert_eq!(
            words("snake_case foo-bar v1.2"),
            ["snake", "case", "foo", "bar", "v1", "2"]
        );
        assert_eq!(words("ﬁnd Ｗｉｄｅ"), ["find", "wide"]);
        assert_eq!(words("हिन्दी и Ёж"), ["हिन्दी", "и", "еж"]);
    }

    #[test]
    fn scripts_without_spaces_have_a_word_for_each_character() {
        assert_eq!(words("東京tower"), ["東", "京", "tower"]);
        assert_eq!(words("カタ"), ["カ", "タ"]);
    }

    #[test]
    fn a_word_knows_where_it_stands() {
        let text = "é: CAFE\u{301}.";
        let found = tokenize(text);
        assert_eq!(&text[found[1].range.clone()], "CAFE\u{301}");
    }

    #[test]
    fn whatever_is_written_gives_words_that_the_engines_leave_alone() {
        for text in [
            "\0\"'\\*()",
            "a\u{0}b",
            "-- ; DROP",
            "&|!<->:*",
            "🙂🏽",
            "\u{202e}x",
        ] {
            for word in words(text) {
                assert!(
                    word.chars()
                        .all(|c| !c.is_ascii() || c.is_ascii_alphanumeric()),
                    "{word}"
                );
            }
        }
        assert_eq!(words(&"x".repeat(4096))[0].chars().count(), LONGEST);
    }
}
