//! Text of others that is shown in one line: names above all. No I/O.

pub mod skeleton;

use crate::error::{Error, Result};
use protocol::MAX_NAME_CHARS;
use skeleton::shown;

/// A line that somebody wrote to be shown: not too long, and without what cannot be seen.
pub fn line(field: &str, text: &str, max_chars: usize) -> Result<String> {
    let shown = shown(text);
    if shown.had_hidden {
        return Err(Error::bad_request(format!(
            "{field} must be one line without control, invisible or direction characters"
        )));
    }
    let chars = shown.text.chars().count();
    if chars == 0 || chars > max_chars {
        return Err(Error::bad_request(format!(
            "{field} must have 1 to {max_chars} characters"
        )));
    }
    Ok(shown.text)
}

/// A name out of a token, as rooms may show it. A person cannot change it there, so what must not
/// be in it is left out.
pub fn name_of_token(name: &str) -> Option<String> {
    let name: String = shown(name).text.chars().take(MAX_NAME_CHARS).collect();
    let name = name.trim_end();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokens_name_is_made_fit() {
        assert_eq!(
            name_of_token("  Ann\u{202e}\nLee ").as_deref(),
            Some("AnnLee")
        );
        assert_eq!(name_of_token("\u{200b}"), None);
        assert_eq!(
            name_of_token(&"x".repeat(200)).unwrap().len(),
            MAX_NAME_CHARS
        );
    }
}
