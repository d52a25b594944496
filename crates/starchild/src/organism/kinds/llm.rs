//! A model behind a listener: it reads what the listener is sent, with the
//! prompt and what its peers accept, and writes messages. It remembers a thread
//! for as long as the thread lives.

use super::{Model, Types, accept_all};
use agentserver::payload::{Canonical, Schema, Shape};
use agentserver::{HandlerMetadata, Listener, Reply, Result, ThreadId};
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The file's words for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlmFile {
    /// The payload type that the model's words go into when they hold no
    /// element; into its first text field.
    #[serde(default)]
    answer: Option<String>,
    /// Messages of a thread that it remembers.
    #[serde(default = "remembered")]
    remember: usize,
}

fn remembered() -> usize {
    20
}

struct Mind {
    model: Arc<dyn Model>,
    prompt: String,
    answer: Option<Wrap>,
    remember: usize,
    memory: Mutex<HashMap<ThreadId, VecDeque<String>>>,
}

/// Where words without an element go.
struct Wrap {
    name: String,
    field: String,
    types: Types,
}

impl LlmFile {
    pub fn attach(
        &self,
        prompt: &str,
        accepts: Vec<Schema>,
        listener: Listener,
        types: &Types,
        model: &Arc<dyn Model>,
    ) -> std::result::Result<Listener, String> {
        let answer = self
            .answer
            .as_ref()
            .map(|name| Wrap::new(name, types))
            .transpose()?;
        let mind = Arc::new(Mind {
            model: model.clone(),
            prompt: prompt.to_owned(),
            answer,
            remember: self.remember,
            memory: Mutex::default(),
        });
        let ended = mind.clone();
        let handler = move |payload, metadata| {
            let mind = mind.clone();
            async move { mind.think(payload, metadata).await }
        };
        let listener = accept_all(accepts, listener, handler.clone()).on_system(handler);
        Ok(listener.on_thread_end(move |thread| ended.forget(thread)))
    }
}

impl Mind {
    async fn think(&self, payload: Canonical, metadata: HandlerMetadata) -> Result<Reply> {
        let system = format!("{}\n\n{}", metadata.usage_instructions, self.prompt);
        let heard = format!("From {}:\n{}", metadata.from_id, payload.xml());
        let user = self.remember(metadata.thread_id, heard);
        let said = self.model.complete(&system, &user).await?;
        let said = without_thoughts(&said).trim().to_owned();
        self.remember(metadata.thread_id, format!("You wrote:\n{said}"));
        Ok(match &self.answer {
            Some(wrap) if !said.is_empty() && !said.contains('<') => Reply::Text(wrap.wrap(&said)?),
            _ => Reply::Text(said.into_bytes()),
        })
    }

    /// Adds to what is remembered, and gives it all as one text.
    fn remember(&self, thread: ThreadId, text: String) -> String {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = memory.entry(thread).or_default();
        texts.push_back(text);
        while texts.len() > self.remember.max(1) {
            texts.pop_front();
        }
        texts
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    fn forget(&self, thread: ThreadId) {
        self.memory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&thread);
    }
}

/// Some models think aloud before they answer.
fn without_thoughts(said: &str) -> &str {
    match (
        said.trim_start().starts_with("<think>"),
        said.find("</think>"),
    ) {
        (true, Some(end)) => &said[end + "</think>".len()..],
        _ => said,
    }
}

impl Wrap {
    fn new(name: &str, types: &Types) -> std::result::Result<Self, String> {
        let known = types
            .get(name)
            .ok_or_else(|| format!("the payload {name:?} does not exist"))?;
        let field = known
            .schema()
            .fields
            .iter()
            .find(|field| field.shape == Shape::Text);
        let field = field.ok_or_else(|| format!("the payload {name:?} has no text field"))?;
        Ok(Self {
            name: name.to_owned(),
            field: field.name.clone(),
            types: types.clone(),
        })
    }

    fn wrap(&self, said: &str) -> Result<Vec<u8>> {
        let known = self.types.get(&self.name).ok_or("the payload is gone")?;
        let fields = serde_json::json!({ self.field.as_str(): said });
        Ok(known.from_json(&fields)?.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_not_part_of_an_answer() {
        assert_eq!(without_thoughts("<think>a <b></think>\n<c/>"), "\n<c/>");
        assert_eq!(without_thoughts("<c/> </think>"), "<c/> </think>");
    }
}
