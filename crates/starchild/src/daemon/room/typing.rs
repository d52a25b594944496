//! What the room sees of an answer in the making: posted as it comes along, and never in its way.

use super::super::retry::{ErrorAction, action_for};
use crate::backend::Progress;
use client::Client;
use protocol::{
    MAX_ACTIVITY_CHARS, PostTyping, RoomId, TypingState,
    answer::{may_be_silence, postable},
};
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// An answer that is there at once needs no typing.
const FIRST_AFTER: Duration = Duration::from_millis(100);
/// Changes within this time are told together.
const EVERY: Duration = Duration::from_millis(300);
/// The server forgets after 15 seconds.
const REPEAT_EVERY: Duration = Duration::from_secs(5);
/// How long to leave a server alone that did not take it.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);
/// How long the last word may take.
const IDLE_WITHIN: Duration = Duration::from_secs(5);

/// The typing of one answer.
pub struct Typing {
    client: Client,
    room: RoomId,
    seq: i64,
    /// Whether the room may think that the agent is at work.
    was_told: bool,
}

impl Typing {
    /// About the answer to a message.
    pub fn new(client: Client, room: RoomId, seq: i64) -> Self {
        Self {
            client,
            room,
            seq,
            was_told: false,
        }
    }

    /// Tells the room how the answer comes along, until this is dropped. Ends only when the server says
    /// that somebody stopped it; gives who.
    pub async fn run(&mut self, mut progress: watch::Receiver<Progress>) -> Option<String> {
        sleep(FIRST_AFTER).await;
        loop {
            let now = self.post(&progress.borrow_and_update());
            self.was_told = true;
            match self.client.typing(&self.room, &now).await {
                Ok(told) if told.stop => return told.stopped_by,
                Ok(_) => sleep(EVERY).await,
                Err(error) => match (action_for(&error), error.status()) {
                    (ErrorAction::Retry(wait), status) if status != Some(404) => {
                        sleep(wait.unwrap_or(AFTER_TROUBLE)).await;
                    }
                    // The answer matters, not what is seen of it before.
                    _ => {
                        tracing::debug!(%error, "the room takes no typing");
                        return std::future::pending().await;
                    }
                },
            }
            // A call that is over drops this.
            let _ = timeout(REPEAT_EVERY, progress.changed()).await;
        }
    }

    /// There will be no answer. Nobody waits for this to arrive.
    pub fn end(self) {
        if !self.was_told {
            return;
        }
        let idle = PostTyping {
            state: TypingState::Idle,
            reply_to_seq: Some(self.seq),
            activity: None,
            text: None,
        };
        tokio::spawn(async move {
            let _ = timeout(IDLE_WITHIN, self.client.typing(&self.room, &idle)).await;
        });
    }

    fn post(&self, now: &Progress) -> PostTyping {
        let text = Some(now.text.as_str()).filter(|text| !may_be_silence(text));
        let text = text.and_then(postable);
        let is_writing = text.is_some() && now.activity.is_none();
        let activity = now.activity.as_deref().map(|activity| {
            let line: String = activity.chars().filter(|c| !c.is_control()).collect();
            line.trim().chars().take(MAX_ACTIVITY_CHARS).collect()
        });
        PostTyping {
            state: match is_writing {
                true => TypingState::Writing,
                false => TypingState::Thinking,
            },
            reply_to_seq: Some(self.seq),
            activity: activity.filter(|activity: &String| !activity.is_empty()),
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(activity: Option<&str>, text: &str) -> PostTyping {
        let client = Client::new("http://127.0.0.1:9").unwrap();
        let typing = Typing::new(client, "rm_8f3kz2".parse().unwrap(), 7);
        typing.post(&Progress {
            activity: activity.map(str::to_owned),
            text: text.to_owned(),
            ..Progress::default()
        })
    }

    #[test]
    fn what_may_be_silence_is_not_shown() {
        for text in ["", "[SIL", "[SILENT] not my turn"] {
            let post = posted(None, text);
            assert_eq!((post.state, post.text), (TypingState::Thinking, None));
        }
        let post = posted(None, "Hello");
        assert_eq!(post.state, TypingState::Writing);
        assert_eq!(post.text.as_deref(), Some("Hello"));
    }

    #[test]
    fn what_is_told_fits_whatever_a_tool_is_called() {
        let long = format!("a\u{1b}[31m\n{}", "x".repeat(1000));
        let post = posted(Some(&long), &"é".repeat(9000));
        assert_eq!(post.state, TypingState::Thinking);
        let activity = post.activity.unwrap();
        assert!(activity.chars().count() == MAX_ACTIVITY_CHARS && !activity.contains('\u{1b}'));
        assert!(post.text.unwrap().len() <= protocol::MAX_CONTENT_BYTES);
    }
}
