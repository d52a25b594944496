//! What a model remembers: the messages of each thread, with the roles they had,
//! for as long as the thread lives and as far as the tokens reach.

use agentserver::ThreadId;
use openstarry::segment::{ContentSegment, Message, Role};
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a history is kept for. All end with their thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
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
    by: By,
    /// Tokens of one history; the oldest exchanges go first.
    tokens: usize,
}

impl Default for MemoryFile {
    fn default() -> Self {
        Self {
            by: By::Thread,
            tokens: 16_000,
        }
    }
}

/// The memory of one listener. Clones share it.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<ThreadId, HashMap<String, History>>>>);

/// One history: exchanges, each begun by what was heard.
#[derive(Default)]
struct History {
    exchanges: VecDeque<Vec<Message>>,
}

/// Where something is remembered.
pub struct MemoryKey<'a> {
    pub thread: ThreadId,
    pub sender: &'a str,
    pub payload: &'a str,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, HashMap<String, History>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is remembered there.
    pub fn recall(&self, key: &MemoryKey<'_>, file: MemoryFile) -> Vec<Message> {
        let memory = self.lock();
        let history = memory
            .get(&key.thread)
            .and_then(|histories| histories.get(history_name(key, file.by)));
        let exchanges = history.into_iter().flat_map(|history| &history.exchanges);
        exchanges.flatten().cloned().collect()
    }

    /// Adds an exchange, and forgets the oldest that no longer fit.
    pub fn remember(&self, key: &MemoryKey<'_>, file: MemoryFile, exchange: Vec<Message>) {
        let mut memory = self.lock();
        let histories = memory.entry(key.thread).or_default();
        let history = histories
            .entry(history_name(key, file.by).to_owned())
            .or_default();
        history.exchanges.push_back(exchange);
        let mut tokens: usize = history.exchanges.iter().map(|e| exchange_tokens(e)).sum();
        while tokens > file.tokens && history.exchanges.len() > 1 {
            let oldest = history.exchanges.pop_front();
            tokens -= oldest.map_or(0, |oldest| exchange_tokens(&oldest));
        }
    }

    /// The thread has ended.
    pub fn forget(&self, thread: ThreadId) {
        self.lock().remove(&thread);
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

fn history_name<'a>(key: &MemoryKey<'a>, by: By) -> &'a str {
    match by {
        By::Thread => "",
        By::Sender => key.sender,
        By::Type => key.payload,
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

/// The memories of an organism's listeners, by their names. A reload gives a
/// listener the memory that it had.
#[derive(Clone, Default)]
pub struct Memories(Arc<Mutex<HashMap<String, Memory>>>);

impl Memories {
    /// The memory of one listener.
    pub fn of(&self, listener: &str) -> Memory {
        let mut memories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memories.entry(listener.to_lowercase()).or_default().clone()
    }
}

/// What was heard, as a message in the user's role.
pub fn heard(text: String) -> Message {
    Message::text(Role::User, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(sender: &'static str) -> MemoryKey<'static> {
        MemoryKey {
            thread: ThreadId::parse("8e2f1b7e-6a7c-4c5e-9c5e-6a7c8e2f1b7e").unwrap(),
            sender,
            payload: "Ask",
        }
    }

    fn texts(messages: &[Message]) -> Vec<String> {
        let texts = messages
            .iter()
            .map(|message| openstarry::segment::joined_text(&message.segments));
        texts.collect()
    }

    #[test]
    fn the_oldest_exchanges_are_forgotten_whole_when_tokens_run_out() {
        let (memory, file) = (
            Memory::default(),
            MemoryFile {
                tokens: 30,
                ..MemoryFile::default()
            },
        );
        for text in ["one", "two", "three"] {
            let said = Message::text(Role::Assistant, text.repeat(8));
            let exchange = vec![heard(text.to_owned()), said];
            memory.remember(&key("a"), file, exchange);
        }
        let recalled = texts(&memory.recall(&key("a"), file));
        assert_eq!(recalled, ["three".to_owned(), "three".repeat(8)]);
        memory.forget(key("a").thread);
        assert!(memory.is_empty());
    }

    #[test]
    fn histories_can_be_kept_apart_by_sender_and_by_type() {
        for (by, seen) in [(By::Thread, 2), (By::Sender, 1), (By::Type, 2)] {
            let (memory, file) = (
                Memory::default(),
                MemoryFile {
                    by,
                    ..MemoryFile::default()
                },
            );
            for sender in ["a", "b"] {
                memory.remember(&key(sender), file, vec![heard(sender.to_owned())]);
            }
            assert_eq!(memory.recall(&key("b"), file).len(), seen, "{by:?}");
        }
    }
}
