//! A model behind a listener: it reads what the listener is sent, with the
//! prompt and what its peers accept, and writes messages. It remembers a thread
//! for as long as the thread lives.

use super::{Types, accept_all};
use crate::organism::model::Pool;
use agentserver::payload::{Canonical, Schema, Shape};
use agentserver::xml::is_prose;
use agentserver::{HandlerMetadata, Listener, Reply, Result, ThreadId};
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// How long a model may take unless the file says: time for a backend's own
/// time-out and another try.
pub const TIMEOUT: Duration = Duration::from_secs(300);

fn remembered() -> usize {
    20
}

struct Mind {
    models: Arc<Pool>,
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
        models: &Arc<Pool>,
    ) -> std::result::Result<Listener, String> {
        let answer = self
            .answer
            .as_ref()
            .map(|name| Wrap::new(name, types))
            .transpose()?;
        let listener = match self.answer.as_ref().and_then(|name| types.get(name)) {
            Some(known) => listener.answers(known.schema().clone()),
            None => listener,
        };
        let mind = Arc::new(Mind {
            models: models.clone(),
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
        metadata.admit_model_call()?;
        let said = self.models.complete(&system, &user).await?;
        let said = without_thoughts(&said).trim().to_owned();
        self.remember(metadata.thread_id, format!("You wrote:\n{said}"));
        Ok(match &self.answer {
            Some(wrap) if !said.is_empty() && is_prose(&said) => Reply::Text(wrap.wrap(&said)?),
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
        Ok(known.json_to_xml(&fields)?.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::build_with;
    use super::*;
    use crate::organism::config::File;
    use crate::organism::model::Script;
    use agentserver::{Conversation, Pump, Settings};
    use std::path::Path;

    const FILE: &str = "\
payloads:
  - {name: Ask, fields: [{name: text}]}
  - {name: Told, fields: [{name: text}]}
listeners:
  - name: thinker
    agent: true
    peers: [helper]
    prompt: You are a poet.
    accepts: [Ask]
    kind: {llm: {answer: Told}}
  - name: helper
    description: Helps.
    accepts: [Ask]
    kind: {rust: echo}
gateways:
  - {name: console, peers: [thinker]}
models:
  backends: [{base_url: 'http://127.0.0.1:9/v1', model: m}]
";

    fn start(texts: &[&'static str]) -> (Arc<Script>, Pump, Conversation) {
        start_with(FILE, texts)
    }

    fn start_with(file: &str, texts: &[&'static str]) -> (Arc<Script>, Pump, Conversation) {
        let script = Script::new(texts.iter().copied().map(Ok));
        let models = Arc::new(Pool::only(script.clone()));
        let file = File::parse(file).unwrap();
        let organism = build_with(&file, Path::new("."), |_| Ok(models)).unwrap();
        let pump = Pump::start(organism, Settings::default());
        let conversation = pump.open("console").unwrap();
        (script, pump, conversation)
    }

    async fn ask(conversation: &mut Conversation) -> String {
        conversation
            .send_xml(Some("thinker"), "<Ask><text>A poem</text></Ask>")
            .await
            .unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(20), conversation.next())
            .await
            .unwrap();
        answer.unwrap().payload.xml().to_owned()
    }

    #[tokio::test]
    async fn plain_words_become_the_answer() {
        for (said, text) in [
            ("Roses & violets", "Roses &amp; violets"),
            ("Roses & <3", "Roses &amp; &lt;3"),
            ("<3 & roses", "&lt;3 &amp; roses"),
            ("Write `<Ask>` & wait", "Write `&lt;Ask&gt;` &amp; wait"),
        ] {
            let (_script, _pump, mut conversation) = start(&[said]);
            let answer = format!("<Told><text>{text}</text></Told>");
            assert_eq!(ask(&mut conversation).await, answer);
        }
    }

    #[tokio::test]
    async fn a_model_sees_its_prompt_its_peers_and_what_was_said() {
        let (script, _pump, mut conversation) =
            start(&["<think>hm</think><Ask><text>help</text></Ask>", "Thanks"]);
        assert_eq!(
            ask(&mut conversation).await,
            "<Told><text>Thanks</text></Told>"
        );
        let asked = script.asked();
        let (system, user) = &asked[1];
        assert!(
            system.contains("You are a poet.") && system.contains("## helper\nHelps."),
            "{system}"
        );
        for heard in [
            "From console:\n<Ask>",
            "You wrote:\n<Ask>",
            "From helper:\n<Ask>",
        ] {
            assert!(user.contains(heard), "{user}");
        }
    }

    #[tokio::test]
    async fn a_model_is_told_what_went_wrong_and_can_try_again() {
        let (script, _pump, mut conversation) = start(&[
            "<message><meta><to>nobody</to></meta><Ask><text>x</text></Ask></message>",
            "<Nonsense/>",
            "Sorry",
        ]);
        assert_eq!(
            ask(&mut conversation).await,
            "<Told><text>Sorry</text></Told>"
        );
        let asked = script.asked();
        assert!(
            asked[1]
                .1
                .contains("From system:\n<SystemError><code>routing</code>")
        );
        assert!(asked[2].1.contains("From system:\n<huh "));
    }

    #[tokio::test]
    async fn an_answer_goes_to_the_caller_whoever_else_accepts_it() {
        let file = FILE.replace(
            "accepts: [Ask]\n    kind: {rust",
            "accepts: [Ask, Told]\n    kind: {rust",
        );
        let (script, _pump, mut conversation) = start_with(&file, &["Roses", "Roses"]);
        for _ in 0..2 {
            assert_eq!(
                ask(&mut conversation).await,
                "<Told><text>Roses</text></Told>"
            );
        }
        assert_eq!(script.asked().len(), 2);
        let bare = "<message><meta><to>caller</to></meta><Ask><text>x</text></Ask></message>";
        let (script, _pump, mut conversation) = start(&[bare]);
        assert_eq!(ask(&mut conversation).await, "<Ask><text>x</text></Ask>");
        assert!(script.asked()[0].0.contains("# Your answer"));
    }

    #[tokio::test]
    async fn a_model_that_is_not_to_be_had_is_a_failed_handler() {
        let (_script, _pump, mut conversation) = start(&[]);
        assert!(
            ask(&mut conversation)
                .await
                .contains("<code>handler</code>")
        );
    }

    #[test]
    fn a_thread_that_ended_is_forgotten() {
        let mind = Mind {
            models: Arc::new(Pool::only(Script::new([]))),
            prompt: String::new(),
            answer: None,
            remember: 2,
            memory: Mutex::default(),
        };
        let thread = ThreadId::parse("8e2f1b7e-6a7c-4c5e-9c5e-6a7c8e2f1b7e").unwrap();
        mind.remember(thread, "one".into());
        mind.remember(thread, "two".into());
        assert_eq!(mind.remember(thread, "three".into()), "two\n\nthree");
        mind.forget(thread);
        assert!(mind.memory.lock().unwrap().is_empty());
    }

    #[test]
    fn thoughts_are_not_part_of_an_answer() {
        assert_eq!(without_thoughts("<think>a <b></think>\n<c/>"), "\n<c/>");
        assert_eq!(without_thoughts("<c/> </think>"), "<c/> </think>");
    }
}
