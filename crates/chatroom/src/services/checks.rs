//! Checks of what callers write. After these, the text is fit to be stored and shown.

use crate::{
    error::{Error, Result},
    shown_text::line,
};
use protocol::{
    ErrorCode, MAX_ACTIVITY_CHARS, MAX_CONTENT_BYTES, MAX_NAME_CHARS, MAX_ROOM_NAME_CHARS,
    MAX_RULES_BYTES, Usage,
};

/// The most characters of an emoji or a short word.
pub const MAX_EMOJI_CHARS: usize = 16;
/// The most bytes of an address.
pub const MAX_ADDRESS_BYTES: usize = 2048;
/// The most characters of a secret or an id that is passed on.
pub const MAX_OPAQUE_BYTES: usize = 4096;
/// The most rows of a list that may be skipped.
pub const MAX_OFFSET: i64 = u32::MAX as i64;
/// The most characters of what a consent is asked for.
pub const MAX_SUMMARY_CHARS: usize = 500;
/// The most characters of a topic.
pub const MAX_TOPIC_CHARS: usize = 250;

/// The text of a message that may be posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(String);

impl Content {
    pub fn new(text: String) -> Result<Self> {
        at_most("content", &text, MAX_CONTENT_BYTES)?;
        if text.trim().is_empty() {
            return Err(Error::bad_request("content must not be empty"));
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A room's name.
pub fn room_name(name: &str) -> Result<String> {
    line("name", name, MAX_ROOM_NAME_CHARS)
}

/// What a room is about: a line, or nothing.
pub fn topic(text: &str) -> Result<String> {
    match text.trim() {
        "" => Ok(String::new()),
        text => line("topic", text, MAX_TOPIC_CHARS),
    }
}

/// A member's name.
pub fn member_name(field: &str, name: &str) -> Result<String> {
    line(field, name, MAX_NAME_CHARS)
}

/// Why somebody did something, in a line.
pub fn reason(field: &str, text: &str) -> Result<String> {
    line(field, text, MAX_ROOM_NAME_CHARS)
}

/// What an agent says that it does.
pub fn activity(text: &str) -> Result<String> {
    line("activity", text, MAX_ACTIVITY_CHARS)
}

/// What a call that needs consent would do.
pub fn summary(text: &str) -> Result<String> {
    line("summary", text, MAX_SUMMARY_CHARS)
}

/// The name of a tool.
pub fn tool_name(field: &str, text: &str) -> Result<String> {
    line(field, text, MAX_NAME_CHARS)
}

/// What an agent says that an answer cost.
pub fn usage(usage: Usage) -> Result<Usage> {
    match usage.fault() {
        None => Ok(usage),
        Some(fault) => Err(Error::bad_request(format!("usage: {fault}"))),
    }
}

/// What an agent has written so far of a message.
pub fn draft(text: String) -> Result<String> {
    at_most("text", &text, MAX_CONTENT_BYTES)?;
    Ok(text)
}

/// A text that is not too long.
pub fn at_most(field: &str, text: &str, bytes: usize) -> Result<()> {
    match text.len() <= bytes {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::TooLarge,
            format!(
                "{field} has {} bytes of UTF-8; at most {bytes} fit",
                text.len()
            ),
        )),
    }
}

/// The rules or the data of a room.
pub fn room_text(text: &str) -> Result<()> {
    at_most("content", text, MAX_RULES_BYTES)
}

/// One emoji: short, with something to see, and no space or control character.
pub fn emoji(text: &str) -> Result<&str> {
    let fits = !text.is_empty()
        && text.len() <= 64
        && text.chars().count() <= MAX_EMOJI_CHARS
        && !text.chars().any(|c| c.is_control() || c.is_whitespace());
    fits.then_some(text).ok_or_else(|| {
        Error::bad_request(format!(
            "emoji must be one emoji or short word, at most {MAX_EMOJI_CHARS} characters"
        ))
    })
}

/// An address that starts with http or https.
pub fn web_address(field: &str, text: &str) -> Result<String> {
    let bad = || {
        Error::bad_request(format!(
            "{field} must be an http or https address of at most {MAX_ADDRESS_BYTES} bytes"
        ))
    };
    if text.len() > MAX_ADDRESS_BYTES {
        return Err(bad());
    }
    let url = reqwest::Url::parse(text).map_err(|_| bad())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad());
    }
    Ok(text.to_owned())
}

/// Where an agent is called: an address without a name and password in it.
pub fn endpoint(field: &str, text: &str) -> Result<String> {
    let address = web_address(field, text)?;
    let plain = reqwest::Url::parse(&address)
        .is_ok_and(|url| url.username().is_empty() && url.password().is_none());
    plain.then_some(address).ok_or_else(|| {
        Error::bad_request(format!(
            "{field} must hold no name or password; send the bearer as akm_key"
        ))
    })
}

/// A secret or an id that is passed on: printable, one word, not too long.
pub fn opaque(field: &str, text: &str) -> Result<String> {
    let fits =
        (1..=MAX_OPAQUE_BYTES).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned()).ok_or_else(|| {
        Error::bad_request(format!(
            "{field} must be 1 to {MAX_OPAQUE_BYTES} printable ASCII characters without spaces"
        ))
    })
}

/// A number that must lie in a range.
pub fn in_range(field: &str, number: i64, range: std::ops::RangeInclusive<i64>) -> Result<i64> {
    if range.contains(&number) {
        return Ok(number);
    }
    Err(Error::bad_request(format!(
        "{field} must be from {} to {}",
        range.start(),
        range.end()
    )))
}

/// How many rows of a list to skip.
pub fn offset(wanted: Option<i64>) -> Result<i64> {
    in_range("offset", wanted.unwrap_or(0), 0..=MAX_OFFSET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_counted_in_bytes_of_utf8() {
        assert!(Content::new("é".repeat(2048)).is_ok());
        let error = Content::new("é".repeat(2049)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::TooLarge);
    }

    #[test]
    fn blank_content_is_refused() {
        for blank in ["", " ", "\n\t", "\u{2003}"] {
            assert_eq!(
                Content::new(blank.into()).unwrap_err().code(),
                ErrorCode::BadRequest
            );
        }
    }

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(room_name("  strategy ").unwrap(), "strategy");
        assert!(room_name("a\nb").is_err());
        assert!(room_name(&"x".repeat(201)).is_err());
        assert!(room_name("").is_err());
    }

    #[test]
    fn an_emoji_may_be_made_of_many_characters() {
        assert!(emoji("👍").is_ok());
        assert!(emoji("👩‍👩‍👧‍👦").is_ok());
        assert!(emoji("").is_err());
        assert!(emoji("a b").is_err());
        assert!(emoji(&"👍".repeat(17)).is_err());
    }

    #[test]
    fn only_web_addresses_are_addresses() {
        assert!(web_address("u", "https://a.example/x").is_ok());
        for bad in [
            "ftp://a",
            "javascript:alert(1)",
            "//a",
            "http://",
            "x",
            "file:///etc/passwd",
        ] {
            assert!(web_address("u", bad).is_err(), "{bad}");
        }
    }
}
