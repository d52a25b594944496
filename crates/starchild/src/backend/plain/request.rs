//! What somebody wants of an agent without a model. Pure.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use protocol::mentions::{Mentionable, has_part_of};

const MAX_DICE: u32 = 20;
const MAX_SIDES: u32 = 1000;
/// The longest time ahead that is remembered.
const MAX_AHEAD: SignedDuration = SignedDuration::from_hours(24 * 366);
const MAX_REMINDER_CHARS: usize = 200;
const MAX_WORDS_CHARS: usize = 200;

/// What is wanted.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Help,
    WhoIsHere,
    Today,
    Roll(Dice),
    Coin,
    Remind {
        at: Timestamp,
        of: String,
    },
    /// What to say differently.
    NotUnderstood(String),
    /// Words that mean nothing to it.
    Else(String),
}

/// Dice to roll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dice {
    pub count: u32,
    pub sides: u32,
}

/// Reads a message, without the agent's own names in it, and parts of them.
pub fn parse(content: &str, me: Mentionable<'_>, now: Timestamp) -> Request {
    let mut words = content.to_owned();
    for name in [me.name, Some(me.id)].into_iter().flatten() {
        let bare = name.strip_prefix("ext_").unwrap_or(name);
        words = without(&words, &format!("@{name}"));
        words = without(&words, &format!("@{bare}"));
    }
    let calls = |word: &&str| word.starts_with('@') && has_part_of(word, me);
    let words: Vec<&str> = words
        .split_whitespace()
        .filter(|word| !calls(word))
        .collect();
    // What is said again must call nobody.
    let line = words.join(" ").replace('@', "");
    let folded = line.to_lowercase();
    let folded = folded.trim_matches([',', ':', '.', '!', '?', ' ']);
    let begins = |start: &str| folded.starts_with(start);
    let has = |all: &[&str]| all.iter().all(|word| folded.contains(word));
    if begins("remind me") {
        return remind(&line, now);
    }
    if folded.is_empty()
        || ["help", "hi", "hello", "hey"].contains(&folded)
        || has(&["what can you"])
    {
        return Request::Help;
    }
    if has(&["who", "here"]) || folded == "who" || folded == "members" {
        return Request::WhoIsHere;
    }
    if has(&["today"]) || has(&["what happened"]) || has(&["what's new"]) {
        return Request::Today;
    }
    if has(&["coin"]) {
        return Request::Coin;
    }
    if begins("roll") || begins("dice") || has(&["roll", "dice"]) || has(&["roll a die"]) {
        return roll(folded);
    }
    let shown: String = line.chars().take(MAX_WORDS_CHARS).collect();
    Request::Else(shown)
}

/// A text without a name, however its letters are written.
fn without(text: &str, name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let mut rest = text.to_ascii_lowercase();
    let mut text = text.to_owned();
    while let Some(at) = rest.find(&name) {
        text.replace_range(at..at + name.len(), " ");
        rest.replace_range(at..at + name.len(), " ");
    }
    text
}

fn roll(folded: &str) -> Request {
    let dice = folded.split_whitespace().find_map(dice);
    let dice = dice.unwrap_or(Dice { count: 1, sides: 6 });
    match (1..=MAX_DICE).contains(&dice.count) && (1..=MAX_SIDES).contains(&dice.sides) {
        true => Request::Roll(dice),
        false => Request::NotUnderstood(format!(
            "I roll 1 to {MAX_DICE} dice of at most {MAX_SIDES} sides, e.g. roll 2d6."
        )),
    }
}

/// `2d6`, `d20`.
fn dice(word: &str) -> Option<Dice> {
    let (count, sides) = word.split_once('d')?;
    let count = if count.is_empty() { "1" } else { count };
    // What is too large for a number is too large for dice.
    let number = |text: &str| match text.chars().all(|c| c.is_ascii_digit()) && !text.is_empty() {
        true => Some(text.parse().unwrap_or(u32::MAX)),
        false => None,
    };
    Some(Dice {
        count: number(count)?,
        sides: number(sides)?,
    })
}

fn remind(line: &str, now: Timestamp) -> Request {
    let how = || {
        Request::NotUnderstood(
            "Say when and of what, e.g. “remind me in 20 minutes to stretch” or “remind me at 17:30 \
             to call home” (UTC)."
                .into(),
        )
    };
    let words: Vec<&str> = line.split(' ').skip(2).collect();
    let (at, rest) = match words.as_slice() {
        [word, count, unit, rest @ ..] if word.eq_ignore_ascii_case("in") => {
            (ahead(count, unit, now), rest)
        }
        [word, clock, rest @ ..] if word.eq_ignore_ascii_case("at") => (next(clock, now), rest),
        _ => return how(),
    };
    let rest = match rest {
        [word, rest @ ..]
            if ["to", "of", "that"]
                .iter()
                .any(|w| word.eq_ignore_ascii_case(w)) =>
        {
            rest
        }
        rest => rest,
    };
    let of: String = rest.join(" ").chars().take(MAX_REMINDER_CHARS).collect();
    match at {
        Some(at) if !of.is_empty() => Request::Remind { at, of },
        _ => how(),
    }
}

fn ahead(count: &str, unit: &str, now: Timestamp) -> Option<Timestamp> {
    let count: i64 = match count.to_ascii_lowercase().as_str() {
        "a" | "an" | "one" => 1,
        count => count.parse().ok()?,
    };
    let seconds = match unit.to_ascii_lowercase().trim_end_matches('s') {
        "second" | "sec" | "" => 1,
        "minute" | "min" | "m" => 60,
        "hour" | "h" => 3600,
        "day" | "d" => 24 * 3600,
        "week" | "w" => 7 * 24 * 3600,
        _ => return None,
    };
    let wait = SignedDuration::from_secs(count.checked_mul(seconds)?);
    let fits = wait >= SignedDuration::ZERO && wait <= MAX_AHEAD;
    now.checked_add(wait).ok().filter(|_| fits)
}

/// The next time that a clock in UTC shows this.
fn next(clock: &str, now: Timestamp) -> Option<Timestamp> {
    let (hour, minute) = clock.trim_end_matches([',', '.']).split_once(':')?;
    let today = now.to_zoned(TimeZone::UTC).date();
    let time = jiff::civil::Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
    let at = today.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
    match at.timestamp() > now {
        true => Some(at.timestamp()),
        false => Some(at.tomorrow().ok()?.timestamp()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(content: &str) -> Request {
        let now = "2026-11-17T12:00:00Z".parse().unwrap();
        let me = Mentionable {
            id: "ext_my_bot-3a9f1c20",
            name: Some("MyBot"),
        };
        parse(content, me, now)
    }

    fn remind(at: &str, of: &str) -> Request {
        Request::Remind {
            at: at.parse().unwrap(),
            of: of.into(),
        }
    }

    #[test]
    fn requests_are_told_apart() {
        let dice = |count, sides| Request::Roll(Dice { count, sides });
        for (content, request) in [
            ("@MyBot", Request::Help),
            ("@MyBot hello!", Request::Help),
            ("help, @mybot", Request::Help),
            ("@my_bot-3a9f1c20 Who is here?", Request::WhoIsHere),
            ("@bot, who is here?", Request::WhoIsHere),
            ("@my_bot", Request::Help),
            ("@MyBot, what happened today?", Request::Today),
            ("@MyBot roll", dice(1, 6)),
            ("@MyBot roll d20", dice(1, 20)),
            ("@MyBot roll 2d6 please", dice(2, 6)),
            ("@MyBot flip a coin", Request::Coin),
            ("@MyBot sing @Eve", Request::Else("sing Eve".into())),
        ] {
            assert_eq!(parsed(content), request, "{content}");
        }
    }

    #[test]
    fn reminders_have_a_time_and_words() {
        for (content, request) in [
            (
                "@MyBot remind me in 20 minutes to stretch",
                remind("2026-11-17T12:20:00Z", "stretch"),
            ),
            (
                "@MyBot Remind me in an hour of @Bob",
                remind("2026-11-17T13:00:00Z", "Bob"),
            ),
            (
                "@MyBot remind me at 17:30 to call home",
                remind("2026-11-17T17:30:00Z", "call home"),
            ),
            (
                "@MyBot remind me at 9:05 to wake",
                remind("2026-11-18T09:05:00Z", "wake"),
            ),
        ] {
            assert_eq!(parsed(content), request, "{content}");
        }
    }

    #[test]
    fn what_makes_no_sense_gets_a_hint() {
        for content in [
            "remind me",
            "remind me to stretch",
            "remind me in 20 minutes",
            "remind me in 99999999999999999999 days to x",
            "remind me in 9223372036854775807 weeks to x",
            "remind me in -5 minutes to x",
            "remind me at 25:00 to x",
            "roll 99d6",
            "roll 1d99999999999",
            "roll 0d0",
        ] {
            assert!(
                matches!(parsed(content), Request::NotUnderstood(_)),
                "{content}"
            );
        }
    }
}
