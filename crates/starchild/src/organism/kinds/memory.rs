//! What a model remembers: the messages of each thread, with the roles they had,
//! for as long as the thread lives and as far as the tokens reach. They are notes of
//! the thread, so they survive a reload and, with a journal, a crash.

use agentserver::HandlerMetadata;
use openstarry::segment::{ContentSegment, Message, Role};
use serde::Deserialize;

/// What a history is kept for. All end with their thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryScope {
    /// One for the whole thread.
    #[default]
    Thread,
    /// One for each sender.
    Sender,
    /// One for each payload type.
    Type,
}

/// How much is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryFile {
    by: HistoryScope,
    /// Tokens of one history; the oldest exchanges go first.
    tokens: usize,
}

impl Default for MemoryFile {
    fn default() -> Self {
        Self {
            by: HistoryScope::Thread,
            tokens: 16_000,
        }
    }
}

impl MemoryFile {
    /// What is remembered for a message of this type: exchanges, each begun by what
    /// was heard. The pump keeps them with the thread.
    pub fn recall(self, metadata: &HandlerMetadata, payload: &str) -> Vec<Vec<Message>> {
        let notes = metadata.notes(self.list(&metadata.from_id, payload));
        // What cannot be read is of another program, and is not missed.
        let exchanges = notes.iter().map(|note| serde_json::from_str(note));
        exchanges.map(Result::unwrap_or_default).collect()
    }

    /// Adds an exchange to what was recalled, in place of the oldest that no longer
    /// fit.
    pub fn remember(
        self,
        metadata: &HandlerMetadata,
        payload: &str,
        recalled: &[Vec<Message>],
        exchange: &[Message],
    ) {
        match serde_json::to_string(exchange) {
            Ok(text) => {
                let list = self.list(&metadata.from_id, payload);
                metadata.note(list, text, self.too_many(recalled, exchange));
            }
            Err(error) => tracing::warn!(%error, "an exchange cannot be remembered"),
        }
    }

    /// How many of the oldest exchanges no longer fit beside a new one.
    fn too_many(self, recalled: &[Vec<Message>], exchange: &[Message]) -> usize {
        let mut left = self.tokens.saturating_sub(exchange_tokens(exchange));
        let fits = |old: &&Vec<Message>| {
            let tokens = exchange_tokens(old);
            let is_room = tokens <= left;
            left = left.saturating_sub(tokens);
            is_room
        };
        recalled.len() - recalled.iter().rev().take_while(fits).count()
    }

    /// The list that a message's exchange belongs to.
    fn list<'a>(self, sender: &'a str, payload: &'a str) -> &'a str {
        match self.by {
            HistoryScope::Thread => "",
            HistoryScope::Sender => sender,
            HistoryScope::Type => payload,
        }
    }
}

/// About four bytes are a token; good enough to keep a window.
fn exchange_tokens(exchange: &[Message]) -> usize {
    let segments = exchange.iter().flat_map(|message| &message.segments);
    let bytes = segments.map(|segment| match segment {
        ContentSegment::Text { text } | ContentSegment::Reasoning { text } => text.len(),
        other => serde_json::to_string(other).map_or(0, |json| json.len()),
    });
    bytes.map(|bytes| bytes / 4 + 4).sum()
}

/// What was heard, as a message in the user's role.
pub fn heard(text: String) -> Message {
    Message::text(Role::User, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(text: &str) -> Vec<Message> {
        let said = Message::text(Role::Assistant, text.repeat(8));
        vec![heard(text.to_owned()), said]
    }

    #[test]
    fn the_oldest_exchanges_are_forgotten_whole_when_tokens_run_out() {
        let recalled = ["one", "two", "three"].map(exchange);
        let forgotten = |tokens| {
            let file = MemoryFile {
                tokens,
                ..MemoryFile::default()
            };
            file.too_many(&recalled, &exchange("four"))
        };
        assert_eq!([16_000, 60, 40, 0].map(forgotten), [0, 1, 2, 3]);
    }

    #[test]
    fn histories_can_be_kept_apart_by_sender_and_by_type() {
        for (by, list) in [
            (HistoryScope::Thread, ""),
            (HistoryScope::Sender, "a"),
            (HistoryScope::Type, "Ask"),
        ] {
            let file = MemoryFile {
                by,
                ..MemoryFile::default()
            };
            assert_eq!(file.list("a", "Ask"), list, "{by:?}");
        }
    }
}
