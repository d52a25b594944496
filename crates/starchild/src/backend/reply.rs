//! Turns what a backend printed into what is posted.

use super::Reply;
use protocol::answer::postable;

impl Reply {
    /// Reads a backend's output, by the one rule for what agents say.
    pub fn from_output(output: &str) -> Self {
        postable(output).map_or(Self::Silent, Self::Text)
    }
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
}
