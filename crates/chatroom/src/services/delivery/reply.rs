//! An agent's answer as it can be posted, without I/O: bytes of its stream go in, text comes out.

use protocol::{
    MAX_CONTENT_BYTES, Usage,
    agent_stream::{AgentStream, Part, StreamError},
    answer::{may_be_silence, postable},
};

/// Why an answer cannot be read. What the agent says about it is left out: it would reach the room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    #[error("the agent reported an error")]
    Agent,
    #[error("{0}")]
    Unreadable(StreamError),
}

impl From<StreamError> for ReplyError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Agent(_) => Self::Agent,
            other => Self::Unreadable(other),
        }
    }
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAnswer {
    /// Nothing to say.
    Silent,
    /// This, fit to be posted.
    Text(String),
}

/// An answer as it arrives.
#[derive(Debug)]
pub struct Reply {
    stream: AgentStream,
    /// What was said, up to a little more than can be posted.
    text: String,
}

impl Reply {
    /// An answer of which at most so many bytes are read.
    pub fn new(most_bytes: usize) -> Self {
        Self {
            stream: AgentStream::new(most_bytes),
            text: String::new(),
        }
    }

    /// Takes the next bytes. Whether the answer is complete, so that nothing more need be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<bool, ReplyError> {
        self.stream.push(bytes)?;
        self.read_events()?;
        Ok(self.stream.is_done())
    }

    /// What it cost, as far as the agent has said so.
    pub fn usage(&self) -> Option<&Usage> {
        self.stream.usage()
    }

    /// What was said, once the stream has ended.
    pub fn finish(&mut self) -> Result<AgentAnswer, ReplyError> {
        self.stream.finish()?;
        self.read_events()?;
        Ok(postable(&self.text).map_or(AgentAnswer::Silent, AgentAnswer::Text))
    }

    /// What has been said so far and may be shown: not while it may still turn out to be silence.
    pub fn so_far(&self) -> Option<&str> {
        (!may_be_silence(&self.text)).then(|| self.text.trim_start())
    }

    fn read_events(&mut self) -> Result<(), ReplyError> {
        while let Some(part) = self.stream.next_part()? {
            match part {
                Part::Text(text) => self.append(&text),
                Part::Restart => self.text.clear(),
                Part::Work => {}
            }
        }
        Ok(())
    }

    fn append(&mut self, text: &str) {
        if self.text.len() <= MAX_CONTENT_BYTES {
            // PostgreSQL cannot store a NUL.
            self.text.extend(text.chars().filter(|c| *c != '\0'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1 << 20;

    fn read_all(stream: &[u8]) -> Result<AgentAnswer, ReplyError> {
        let mut reply = Reply::new(MOST);
        reply.push(stream)?;
        reply.finish()
    }

    fn said(stream: &str) -> String {
        match read_all(stream.as_bytes()).unwrap() {
            AgentAnswer::Text(text) => text,
            AgentAnswer::Silent => "(silent)".to_owned(),
        }
    }

    #[test]
    fn parts_are_put_together_and_work_is_left_out() {
        let stream = "data: {\"type\":\"thinking\",\"text\":\"hm\"}\n\n\
            data: {\"text\":\"Hel\"}\n\ndata: lo\n\n\
            data: [DONE]\n\ndata: {\"text\":\" and more\"}\n\n";
        assert_eq!(said(stream), "Hello");
    }

    #[test]
    fn an_answer_that_begins_anew_leaves_what_was_said_before_behind() {
        let stream = "data: {\"text\":\"I look.\"}\n\ndata: {\"type\":\"restart\"}\n\n\
            data: {\"text\":\"It is 7.\"}\n\n";
        assert_eq!(said(stream), "It is 7.");
    }

    #[test]
    fn an_error_fails_the_turn_whatever_was_said_before() {
        let stream = b"data: {\"text\":\"Yes\"}\n\nevent: error\ndata: out of credit\n\n";
        assert_eq!(read_all(stream), Err(ReplyError::Agent));
    }

    #[test]
    fn silence_is_said_in_two_ways() {
        for stream in [
            "",
            "data: \n\n",
            "data: [SILENT]\n\n",
            "data: {\"text\":\" \\n[SILENT] not mine\"}\n\n",
        ] {
            assert_eq!(said(stream), "(silent)", "{stream}");
        }
    }

    #[test]
    fn silence_is_never_shown_while_it_comes_in_pieces() {
        let mut reply = Reply::new(MOST);
        for piece in ["[", "SIL", "ENT", "] because"] {
            reply
                .push(format!("data: {{\"text\":\"{piece}\"}}\n\n").as_bytes())
                .unwrap();
            assert_eq!(reply.so_far(), None);
        }
        let mut reply = Reply::new(MOST);
        reply.push(b"data: [S\n\ndata: o it is]\n\n").unwrap();
        assert_eq!(reply.so_far(), Some("[So it is]"));
    }

    #[test]
    fn a_long_answer_is_cut_at_a_character() {
        let long = "é".repeat(4000);
        let text = said(&format!("data: {{\"text\":\"{long}\"}}\n\n"));
        assert!(text.len() <= MAX_CONTENT_BYTES && text.len() > MAX_CONTENT_BYTES - 4);
        assert!(text.ends_with("é…"));
        let fits = "x".repeat(MAX_CONTENT_BYTES);
        assert_eq!(said(&format!("data: {fits}\n\n")), fits);
    }

    #[test]
    fn a_stream_without_end_is_given_up_and_kept_small() {
        let mut reply = Reply::new(MOST);
        let frame = format!("data: {}\n\n", "x".repeat(1000));
        let error = loop {
            if let Err(error) = reply.push(frame.as_bytes()) {
                break error;
            }
            assert!(reply.text.len() <= MAX_CONTENT_BYTES + 1000);
        };
        assert_eq!(error, ReplyError::Unreadable(StreamError::TooLong(MOST)));
    }

    #[test]
    fn a_nul_is_left_out() {
        assert_eq!(
            said("data: a\0b\n\ndata: {\"text\":\"\\u0000c\"}\n\n"),
            "abc"
        );
    }
}
