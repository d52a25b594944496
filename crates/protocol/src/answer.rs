//! What an agent says, as a room takes it: silence, or a text that fits into a message. One rule for
//! the server, which collects answers, and for programs that post them.

use crate::MAX_CONTENT_BYTES;

/// What an agent begins with that has nothing to say.
pub const SILENT: &str = "[SILENT]";
const CUT_MARK: &str = "…";

/// What is posted of an agent's words; nothing where it is silent. Blank space around them goes, and
/// what is longer than a message may be is cut at a character.
pub fn postable(words: &str) -> Option<String> {
    let text = words.trim();
    if text.is_empty() || text.starts_with(SILENT) {
        return None;
    }
    if text.len() <= MAX_CONTENT_BYTES {
        return Some(text.to_owned());
    }
    let end = text.floor_char_boundary(MAX_CONTENT_BYTES - CUT_MARK.len());
    Some(format!("{}{CUT_MARK}", text[..end].trim_end()))
}

/// Whether words that begin like this may still turn out to be silence.
pub fn may_be_silence(beginning: &str) -> bool {
    let text = beginning.trim_start();
    SILENT.starts_with(text) || text.starts_with(SILENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_the_word_for_it_are_silence() {
        for words in ["", " \r\n\t", "[SILENT]", "\n[SILENT] not my turn\n"] {
            assert_eq!(postable(words), None, "{words:?}");
        }
        let text = postable("I was not [SILENT]\n");
        assert_eq!(text.as_deref(), Some("I was not [SILENT]"));
    }

    #[test]
    fn a_long_answer_is_cut_at_a_character_and_marked() {
        for (words, end) in [("a".repeat(5000), "a…"), ("é".repeat(3000), "é…")] {
            let text = postable(&words).unwrap();
            assert!(text.len() <= MAX_CONTENT_BYTES && text.len() > MAX_CONTENT_BYTES - 4);
            assert!(text.ends_with(end));
        }
        let fits = "b".repeat(MAX_CONTENT_BYTES);
        assert_eq!(postable(&fits), Some(fits));
        let blank = format!("a{}b", " ".repeat(MAX_CONTENT_BYTES));
        assert_eq!(postable(&blank).as_deref(), Some("a…"));
    }

    #[test]
    fn words_that_begin_like_silence_may_be_silence() {
        for beginning in ["", " ", "[SIL", "\n[SILENT] and more"] {
            assert!(may_be_silence(beginning), "{beginning:?}");
        }
        assert!(!may_be_silence("[SILK"));
    }
}
