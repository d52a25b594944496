//! Which of the messages that fit are best, and what of them to show. No I/O.

use super::terms::{SearchToken, tokenize};
use crate::store::search::{FoundRow, Phrase};
use protocol::SnippetPiece;
use std::ops::Range;

/// A message's length in words that is neither short nor long.
const USUAL_WORDS: f64 = 20.0;
/// How soon a word's second and third time counts for less.
const SATURATION: f64 = 1.2;
/// A message that is new counts for so much more, and half as much after a month.
const RECENCY: f64 = 0.6;
const MONTH_SECONDS: f64 = 30.0 * 86_400.0;
/// A word as it was typed is worth more than one that goes on.
const WHOLE_WORD: f64 = 1.0;
/// The characters of a snippet, and how many of them stand before what was found.
const SNIPPET: usize = 240;
const BEFORE: usize = 60;

/// A message that fits, with what was found in it.
pub struct Ranked {
    pub row: FoundRow,
    pub snippet: Vec<SnippetPiece>,
    score: f64,
}

/// The best first; of equals, the newest.
pub fn ranked(rows: Vec<FoundRow>, phrases: &[Phrase], now: i64) -> Vec<Ranked> {
    let mut all: Vec<Ranked> = rows
        .into_iter()
        .map(|row| rank(row, phrases, now))
        .collect();
    all.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(b.row.place.cmp(&a.row.place))
    });
    all
}

fn rank(row: FoundRow, phrases: &[Phrase], now: i64) -> Ranked {
    let words = tokenize(&row.content);
    let length = 0.25 + 0.75 * words.len() as f64 / USUAL_WORDS;
    let mut matches: Vec<Range<usize>> = Vec::new();
    let mut score = 0.0;
    for phrase in phrases {
        let found = occurrences(&words, phrase);
        let times = found.len() as f64;
        score += times / (times + SATURATION * length);
        if found.iter().any(|found| found.is_whole) {
            score += WHOLE_WORD;
        }
        matches.extend(found.into_iter().map(|found| found.range));
    }
    let age = (now - row.created_at).max(0) as f64;
    score += RECENCY / (1.0 + age / MONTH_SECONDS);
    Ranked {
        snippet: snippet(&row.content, merged(matches)),
        row,
        score,
    }
}

struct Occurrence {
    range: Range<usize>,
    is_whole: bool,
}

fn occurrences(words: &[SearchToken], phrase: &Phrase) -> Vec<Occurrence> {
    let Some((last, first)) = phrase.words.split_last() else {
        return Vec::new();
    };
    let fits = |window: &&[SearchToken]| {
        let Some((end, start)) = window.split_last() else {
            return false;
        };
        let begins = start
            .iter()
            .zip(first)
            .all(|(token, word)| token.word == *word);
        begins && (end.word == *last || (phrase.is_prefix && end.word.starts_with(last.as_str())))
    };
    let windows = words.windows(phrase.words.len()).filter(fits);
    windows
        .filter_map(|window| {
            let (start, end) = (window.first()?, window.last()?);
            Some(Occurrence {
                range: start.range.start..end.range.end,
                is_whole: end.word == *last,
            })
        })
        .collect()
}

/// In order, and none in another.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(before) if range.start < before.end => before.end = before.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The part of the text around the first match, in pieces.
fn snippet(text: &str, matches: Vec<Range<usize>>) -> Vec<SnippetPiece> {
    let first = matches.first().map_or(0, |range| range.start);
    let start = text[..first]
        .char_indices()
        .rev()
        .take(BEFORE)
        .last()
        .map_or(first, |(at, _)| at);
    let end = text[start..]
        .char_indices()
        .nth(SNIPPET)
        .map_or(text.len(), |(at, _)| start + at);
    let mut pieces = Vec::new();
    let mut add = |text: &str, matched: bool| {
        if !text.is_empty() {
            pieces.push(SnippetPiece {
                text: text.to_owned(),
                matched,
            });
        }
    };
    if start > 0 {
        add("…", false);
    }
    let mut at = start;
    for range in matches {
        let (from, to) = (range.start.clamp(at, end), range.end.clamp(at, end));
        add(&text[at..from], false);
        add(&text[from..to], true);
        at = to;
    }
    add(&text[at..end], false);
    if end < text.len() {
        add("…", false);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: i64, content: &str) -> FoundRow {
        FoundRow {
            place: seq,
            room_id: "rm_a".parse().unwrap(),
            room_name: "a".into(),
            seq,
            sender_user_id: "u_a".parse().unwrap(),
            sender_user_name: None,
            via: protocol::Via::Web,
            content: content.into(),
            created_at: 1000,
        }
    }

    fn phrase(words: &str, is_prefix: bool) -> Phrase {
        Phrase {
            words: words.split(' ').map(str::to_owned).collect(),
            is_prefix,
        }
    }

    fn marked(content: &str, phrases: &[Phrase]) -> String {
        let found = ranked(vec![row(1, content)], phrases, 1000).remove(0);
        let pieces = found.snippet.iter().map(|piece| match piece.matched {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        });
        pieces.collect()
    }

    #[test]
    fn what_was_found_is_marked_as_it_was_written() {
        let wanted = [
            phrase("cafe", false),
            phrase("au lait", false),
            phrase("dep", true),
        ];
        assert_eq!(
            marked("<b>Café au\nlait</b>, lait; DEPLOYED", &wanted),
            "<b>[Café] [au\nlait]</b>, lait; [DEPLOYED]"
        );
    }

    #[test]
    fn a_long_text_is_cut_around_what_was_found() {
        let text = format!("{} needle {}", "é ".repeat(500), "x ".repeat(500));
        let shown = marked(&text, &[phrase("needle", false)]);
        assert!(shown.starts_with("…") && shown.ends_with("…"), "{shown}");
        assert!(shown.contains("[needle]") && shown.chars().count() <= SNIPPET + 4);
    }

    #[test]
    fn a_word_as_it_was_typed_comes_before_one_that_goes_on_and_short_before_long() {
        let long = format!("deploy {}", "and so on ".repeat(40));
        let rows = vec![
            row(4, "deployment"),
            row(3, "deploy"),
            row(2, &long),
            row(1, "deploy"),
        ];
        let found = ranked(rows, &[phrase("deploy", true)], 1000);
        let seqs: Vec<i64> = found.iter().map(|found| found.row.seq).collect();
        assert_eq!(seqs, [3, 1, 2, 4]);
    }
}
