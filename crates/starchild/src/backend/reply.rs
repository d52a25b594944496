//! Turns what a backend printed into what is posted.

use super::Reply;
use protocol::MAX_CONTENT_BYTES;

/// What a backend prints to say nothing.
pub const SILENT: &str = "[SILENT]";
const CUT_MARK: &str = "…";

impl Reply {
    /// Reads a backend's output. Blank space around it goes; nothing, or what starts with
    /// `[SILENT]`, is silence; what is longer than a message may be is cut at a character.
    pub fn from_output(output: &str) -> Self {
        let text = output.trim();
        match text.is_empty() || text.starts_with(SILENT) {
            true => Self::Silent,
            false => Self::Text(cut(text)),
        }
    }
}

fn cut(text: &str) -> String {
    if text.len() <= MAX_CONTENT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_CONTENT_BYTES - CUT_MARK.len());
    format!("{}{CUT_MARK}", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_the_word_for_it_are_silence() {
        for output in ["", " \r\n\t", "[SILENT]", "\n[SILENT] not my turn\n"] {
            assert_eq!(Reply::from_output(output), Reply::Silent, "{output:?}");
        }
        let text = Reply::from_output("I was not [SILENT]\n");
        assert_eq!(text, Reply::Text("I was not [SILENT]".into()));
    }

    #[test]
    fn a_long_answer_is_cut_at_a_character_and_marked() {
        for (output, end) in [("a".repeat(5000), "a…"), ("é".repeat(3000), "é…")] {
            let Reply::Text(text) = Reply::from_output(&output) else {
                panic!("silence")
            };
            assert!(text.len() <= MAX_CONTENT_BYTES && text.len() > MAX_CONTENT_BYTES - 4);
            assert!(text.ends_with(end));
        }
        let fits = "b".repeat(MAX_CONTENT_BYTES);
        assert_eq!(Reply::from_output(&fits), Reply::Text(fits));
    }
}
