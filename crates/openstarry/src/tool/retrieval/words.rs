//! Text to words, and how near two words are. Pure.

use sentences::Model;
use std::collections::HashSet;

/// Words that say nothing about a tool.
const STOP: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can",
    "could", "did", "do", "does", "for", "from", "give", "given", "had", "has", "have", "hey",
    "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "like", "me", "my", "need",
    "new", "of", "on", "one", "or", "our", "out", "please", "s", "so", "some", "than", "that",
    "the", "their", "them", "then", "there", "these", "this", "those", "to", "up", "us", "use",
    "used", "want", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with",
    "would", "you", "your",
];

/// A word of rank `r` is about `1 / (r * RANKS)` of all words of a text.
const RANKS: f32 = 12.0;
/// Words that are more common than this say less and less.
const COMMON: f32 = 1e-4;
/// Words that share less of their letters are not the same word misspelt.
const SPELLING: f32 = 0.5;

/// A word of a tool or of a query.
#[derive(Debug)]
pub(super) struct Word {
    text: String,
    pub(super) stem: String,
    /// Whether it is a word that people spell so.
    is_known: bool,
    /// How much it tells, from 0 to 1, however often tools have it: common words tell little.
    pub(super) weight: f32,
}

impl Word {
    pub(super) fn new(text: &str) -> Self {
        let rank = Model::built_in().and_then(|model| model.rank(text));
        let share = |rank| 1.0 / ((rank + 3) as f32 * RANKS);
        Self {
            text: text.into(),
            stem: stem(text).into(),
            is_known: rank.is_some(),
            weight: rank.map_or(1.0, |rank| COMMON / (COMMON + share(rank))),
        }
    }

    /// From 0, nothing in common, to 1, the same.
    pub(super) fn similarity(&self, other: &Self) -> f32 {
        if self.stem == other.stem {
            return 1.0;
        }
        match self.is_known && other.is_known {
            true => 0.0,
            false => spelling(&self.text, &other.text),
        }
    }
}

/// How much of their letters two words share, for words that are not known.
fn spelling(a: &str, b: &str) -> f32 {
    let pairs = |word: &str| {
        let letters: Vec<char> = word.chars().collect();
        letters
            .windows(2)
            .map(|pair| (pair[0], pair[1]))
            .collect::<Vec<_>>()
    };
    // Few misspell the first letter, and looking at it first is quick.
    let alike = a.chars().next() == b.chars().next() && a.len().abs_diff(b.len()) <= 3;
    if !alike || a.len().min(b.len()) < 5 {
        return 0.0;
    }
    let (a, mut b) = (pairs(a), pairs(b));
    let all = a.len() + b.len();
    let shared = a.iter().filter(|pair| {
        let at = b.iter().position(|other| other == *pair);
        at.map(|at| b.swap_remove(at)).is_some()
    });
    let alike = 2.0 * shared.count() as f32 / all as f32;
    if alike > SPELLING { alike } else { 0.0 }
}

/// The words of a text that say something, each once.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let says = |word: &String| !STOP.contains(&word.as_str()) && seen.insert(word.clone());
    all_words(text).into_iter().filter(says).collect()
}

/// Lower-case words, `camelCase` and `snake_case` taken apart. Scripts without
/// blanks give pairs of characters.
pub(super) fn all_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut last: Option<char> = None;
    for c in text.chars() {
        let dense = matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}');
        let hump = c.is_uppercase() && last.is_some_and(char::is_lowercase);
        if (!c.is_alphanumeric() || hump || dense) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if dense {
            words.push(
                last.into_iter()
                    .filter(|l| !l.is_ascii())
                    .chain([c])
                    .collect(),
            );
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        last = c.is_alphanumeric().then_some(c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// A light English stemmer: the ends that change with grammar go.
fn stem(word: &str) -> &str {
    let mut stem = word;
    for end in [
        "'s", "ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "e",
        "y",
    ] {
        if let Some(rest) = stem.strip_suffix(end)
            && rest.chars().count() >= 3
            && !(end == "s" && rest.ends_with('s'))
        {
            stem = rest;
            break;
        }
    }
    // "running" and "run" meet.
    let bytes = stem.as_bytes();
    if let [.., a, b] = bytes
        && a == b
        && stem.len() > 3
        && !matches!(b, b'l' | b's')
        && stem.is_ascii()
    {
        return &stem[..stem.len() - 1];
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(split("fs.readFile_now"), ["fs", "read", "file", "now"]);
        assert_eq!(split("查天氣 now"), ["查", "查天", "天氣", "now"]);
        assert_eq!(split("send it to the sender, and send"), ["send", "sender"]);
    }

    #[test]
    fn forms_of_a_word_meet() {
        for (one, other) in [
            ("running", "run"),
            ("files", "file"),
            ("deleted", "delete"),
            ("calling", "call"),
        ] {
            assert_eq!(stem(one), stem(other));
        }
    }

    #[test]
    fn misspelt_words_meet() {
        let near = |a: &str, b: &str| Word::new(a).similarity(&Word::new(b));
        assert!(near("calendarr", "calendar") > 0.8);
        assert!(near("kubernetez", "kubernetes") > 0.8);
        assert_eq!(near("zzyzx", "calendar"), 0.0);
    }
}
