//! What somebody searches for, as they typed it: words, phrases and filters.

use super::terms::{mark, tokenize};
use crate::{
    error::{Error, Result},
    store::search::Phrase,
};
use protocol::UserId;

/// The most characters of a query.
pub const MOST_CHARS: usize = 500;
/// The most words, phrases and filters.
const MOST_TERMS: usize = 16;
/// A shorter word is taken as it is: too much begins with it.
const SHORTEST_PREFIX: usize = 3;

/// A query that was understood.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    pub phrases: Vec<Phrase>,
    /// Marks that a message must have.
    pub marks: Vec<String>,
    /// Names or ids of rooms, folded; one of them must fit.
    pub rooms: Vec<String>,
    pub has_reaction: bool,
    /// Times in unix seconds.
    pub before: Option<i64>,
    pub after: Option<i64>,
}

/// A piece of what was typed.
struct Piece {
    filter: Option<String>,
    text: String,
    quoted: bool,
    is_last: bool,
}

impl SearchQuery {
    /// Reads what `me` typed.
    pub fn parse(typed: &str, me: Option<&UserId>) -> Result<Self> {
        if typed.chars().count() > MOST_CHARS {
            return Err(Error::bad_request(format!(
                "q has more than {MOST_CHARS} characters; search for less"
            )));
        }
        let mut query = Self::default();
        for piece in pieces(typed) {
            query.add(&piece, me)?;
        }
        let terms = query.phrases.len() + query.marks.len() + query.rooms.len();
        if terms > MOST_TERMS {
            return Err(Error::bad_request(format!(
                "q has more than {MOST_TERMS} words and filters; search for less"
            )));
        }
        let is_empty =
            terms == 0 && !query.has_reaction && query.before.is_none() && query.after.is_none();
        match is_empty {
            true => Err(Error::bad_request(
                "q holds no word to search for; send one, or a filter such as from:alice",
            )),
            false => Ok(query),
        }
    }

    fn add(&mut self, piece: &Piece, me: Option<&UserId>) -> Result<()> {
        let text = piece.text.as_str();
        match piece.filter.as_deref() {
            Some("from") => self.from(text, me),
            Some("in") => self.rooms.push(text.trim_start_matches('#').to_lowercase()),
            Some("has") => match text {
                "link" | "code" => self.marks.push(mark("has", text)),
                "reaction" => self.has_reaction = true,
                _ => return Err(Error::bad_request("has: takes link, code or reaction")),
            },
            Some("is") => match text {
                "agent" | "person" => self.marks.push(mark("is", text)),
                _ => return Err(Error::bad_request("is: takes agent or person")),
            },
            Some("before") => self.before = Some(time("before", text)?),
            Some("after") => self.after = Some(time("after", text)?),
            _ => self.words(piece),
        }
        Ok(())
    }

    fn words(&mut self, piece: &Piece) {
        let words: Vec<String> = tokenize(&piece.text)
            .into_iter()
            .map(|token| token.word)
            .collect();
        let Some(last) = words.last() else {
            return;
        };
        let may_go_on = piece.is_last && !piece.quoted && last.chars().count() >= SHORTEST_PREFIX;
        self.phrases.push(Phrase {
            is_prefix: may_go_on,
            words,
        });
    }

    fn from(&mut self, text: &str, me: Option<&UserId>) {
        let text = text.trim_start_matches('@');
        match (text, me) {
            ("me", Some(me)) => self.marks.push(mark("from", me.as_str())),
            (text, _) if text.contains(char::is_whitespace) || !text.is_ascii() => {
                let words = tokenize(text);
                self.marks
                    .extend(words.iter().map(|token| mark("from", &token.word)));
            }
            (text, _) => self.marks.push(mark("from", text)),
        }
    }
}

/// Splits what was typed at spaces; quotes hold together, also after a filter.
fn pieces(typed: &str) -> Vec<Piece> {
    const FILTERS: [&str; 6] = ["from", "in", "has", "is", "before", "after"];
    let mut found = Vec::new();
    let mut rest = typed.trim_start();
    while !rest.is_empty() {
        let mut filter = None;
        if let Some((name, value)) = rest.split_once(':') {
            let name = name.to_ascii_lowercase();
            if FILTERS.contains(&name.as_str()) && !value.starts_with(char::is_whitespace) {
                filter = Some(name);
                rest = value;
            }
        }
        let (text, quoted, after) = match rest.strip_prefix('"') {
            Some(inner) => {
                let (text, after) = inner.split_once('"').unwrap_or((inner, ""));
                (text, true, after)
            }
            None => {
                let end = rest
                    .find(|letter: char| letter.is_whitespace() || letter == '"')
                    .unwrap_or(rest.len());
                (&rest[..end], false, &rest[end..])
            }
        };
        if !text.trim().is_empty() {
            found.push(Piece {
                filter,
                text: text.to_owned(),
                quoted,
                is_last: after.is_empty(),
            });
        }
        rest = after.trim_start();
    }
    found
}

/// A date, at whose beginning (in UTC) it stands, or unix seconds.
fn time(filter: &str, text: &str) -> Result<i64> {
    let bad = || {
        Error::bad_request(format!(
            "{filter}: takes a date such as 2026-01-31, or unix seconds"
        ))
    };
    if let Ok(seconds) = text.parse::<i64>()
        && text.len() > 4
    {
        return match (0..=i64::from(u32::MAX)).contains(&seconds) {
            true => Ok(seconds),
            false => Err(bad()),
        };
    }
    let mut parts = text.split('-').map(str::parse::<i64>);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(day)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(bad());
    };
    let fits =
        (1970..=2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    fits.then(|| days_since_1970(year, month, day) * 86_400)
        .ok_or_else(bad)
}

/// Counts years from March, so that the leap day is the last one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(typed: &str) -> SearchQuery {
        SearchQuery::parse(typed, Some(&"u_me".parse().unwrap())).unwrap()
    }

    fn phrases(typed: &str) -> Vec<String> {
        let phrases = parsed(typed).phrases.into_iter();
        let text = |p: Phrase| {
            format!(
                "{}{}",
                p.words.join(" "),
                if p.is_prefix { "*" } else { "" }
            )
        };
        phrases.map(text).collect()
    }

    #[test]
    fn the_last_word_may_go_on_and_a_quoted_one_may_not() {
        assert_eq!(phrases("Deploy fail"), ["deploy", "fail*"]);
        assert_eq!(phrases("deploy fail "), ["deploy", "fail"]);
        assert_eq!(phrases("\"deploy failed\" at"), ["deploy failed", "at"]);
        assert_eq!(phrases("\"deploy failed"), ["deploy failed"]);
        assert_eq!(phrases("snake_case 東京"), ["snake case", "東 京"]);
        assert_eq!(
            phrases("http://a.example 12:30"),
            ["http a example", "12 30"]
        );
    }

    #[test]
    fn filters_are_no_words() {
        let query =
            parsed("from:@Alice from:\"Tidy Falcon\" from:me in:#General has:link is:agent x");
        assert_eq!(
            query.marks,
            [
                "/from_alice",
                "/from_tidy",
                "/from_falcon",
                "/from_u_me",
                "/has_link",
                "/is_agent"
            ]
        );
        assert_eq!(query.rooms, ["general"]);
        assert!(parsed("has:reaction").has_reaction);
        assert_eq!(parsed("before:2026-03-01").before, Some(1_772_323_200));
        assert_eq!(parsed("after:1970-01-02").after, Some(86_400));
        assert_eq!(parsed("after:1700000000").after, Some(1_700_000_000));
    }

    #[test]
    fn what_cannot_be_searched_for_is_refused_in_words() {
        let refused = |typed: &str| SearchQuery::parse(typed, None).unwrap_err();
        for typed in [
            "",
            "  ",
            "\"\"",
            "***",
            "has:x",
            "is:x",
            "before:yesterday",
            "before:2026-13-01",
            "from:",
        ] {
            refused(typed);
        }
        refused(&"x".repeat(MOST_CHARS + 1));
        refused(&"x ".repeat(MOST_TERMS + 1));
    }

    #[test]
    fn nothing_that_is_typed_panics() {
        for typed in [
            "\"",
            "from:\"",
            ":::",
            "a\"b\"c",
            "in:\" \"",
            "\u{0}",
            "é\"ü",
            "before:-",
            "NEAR(a b)",
            "a* OR b",
        ] {
            let _ = SearchQuery::parse(typed, None);
        }
    }
}
