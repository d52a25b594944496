//! An answer that grows, as frames for a reader who puts texts together. A rule without I/O.

use protocol::{MAX_CONTENT_BYTES, answer::may_be_silence};

/// What a reader is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// More words.
    Text(String),
    /// What was said so far is not part of the answer. Readers who do not know it keep it.
    Restart,
    /// A tool is used.
    Tool(String),
    /// The agent thinks again.
    Thinking,
}

/// What a reader has been told of one answer.
#[derive(Debug, Default)]
pub struct AnswerDiff {
    sent: String,
    activity: Option<String>,
    /// Whether the reader keeps whatever it was told.
    keeps_all: bool,
}

impl AnswerDiff {
    /// For a reader who prints what comes and takes nothing back.
    pub fn for_printer() -> Self {
        Self {
            keeps_all: true,
            ..Self::default()
        }
    }

    /// What to tell of a state of the answer.
    pub fn update(&mut self, activity: Option<&str>, text: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.activity.as_deref() != activity {
            self.activity = activity.map(str::to_owned);
            frames.push(activity.map_or(Frame::Thinking, |tool| Frame::Tool(tool.to_owned())));
        }
        let text = text.trim_start();
        // Only the end tells whether it is silence, and how a long text is cut.
        if !may_be_silence(text) && text.len() < MAX_CONTENT_BYTES {
            frames.extend(self.move_to(text));
        }
        frames
    }

    /// What to tell once the answer is this.
    pub fn finish(mut self, text: &str) -> Vec<Frame> {
        match self.sent.trim_end() == text {
            true => Vec::new(),
            false => self.move_to(text),
        }
    }

    /// What to tell once it turns out that there is no answer.
    pub fn take_back(self) -> Option<Frame> {
        (!self.sent.is_empty() && !self.keeps_all).then_some(Frame::Restart)
    }

    fn move_to(&mut self, text: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        let more = match text.strip_prefix(self.sent.as_str()) {
            Some(more) => more.to_owned(),
            None if self.keeps_all => format!("\n\n{text}"),
            None => {
                frames.push(Frame::Restart);
                text.to_owned()
            }
        };
        self.sent = text.to_owned();
        if !more.is_empty() {
            frames.push(Frame::Text(more));
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Frame {
        Frame::Text(text.into())
    }

    #[test]
    fn what_is_new_is_told_and_silence_never() {
        let mut diff = AnswerDiff::default();
        assert_eq!(diff.update(None, " [SIL"), []);
        assert_eq!(diff.update(None, " [SILver"), [text("[SILver")]);
        assert_eq!(diff.update(None, "[SILver] li"), [text("] li")]);
        assert_eq!(diff.finish("[SILver] lining"), [text("ning")]);
        let mut diff = AnswerDiff::default();
        assert_eq!(diff.update(None, "Done.\n"), [text("Done.\n")]);
        assert_eq!(diff.finish("Done."), []);
    }

    #[test]
    fn an_answer_that_begins_anew_says_so() {
        let mut diff = AnswerDiff::default();
        assert_eq!(diff.update(None, "I look."), [text("I look.")]);
        assert_eq!(
            diff.update(Some("read"), "I look."),
            [Frame::Tool("read".into())]
        );
        assert_eq!(diff.update(None, ""), [Frame::Thinking]);
        assert_eq!(diff.finish("It is 7."), [Frame::Restart, text("It is 7.")]);
        let mut diff = AnswerDiff::for_printer();
        diff.update(None, "I look.");
        assert_eq!(diff.finish("It is 7."), [text("\n\nIt is 7.")]);
    }

    #[test]
    fn a_long_answer_is_told_as_it_is_cut() {
        let long = "x".repeat(MAX_CONTENT_BYTES);
        let mut diff = AnswerDiff::default();
        assert_eq!(diff.update(None, "xx"), [text("xx")]);
        assert_eq!(diff.update(None, &long), []);
        let cut = format!("{}…", "x".repeat(MAX_CONTENT_BYTES - 3));
        assert_eq!(diff.finish(&cut), [text(&cut[2..])]);
    }

    #[test]
    fn an_answer_that_came_to_nothing_is_taken_back() {
        let mut diff = AnswerDiff::default();
        assert_eq!(AnswerDiff::default().take_back(), None);
        diff.update(None, "Well");
        assert_eq!(diff.take_back(), Some(Frame::Restart));
    }
}
