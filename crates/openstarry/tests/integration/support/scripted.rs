//! A provider that says what it is told to, without a network.

use futures_util::StreamExt;
use futures_util::stream;
use openstarry::pain::AgentPain;
use openstarry::provider::{Context, Event, EventStream, Provider};
use openstarry::segment::{Message, StopReason};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Mutex;

/// One answer.
pub enum Answer {
    Events(Vec<Event>),
    Pain(AgentPain),
    /// These events, and then nothing for ever.
    Hang(Vec<Event>),
    Panic,
}

impl Answer {
    pub fn text(text: &str) -> Self {
        Self::Events(vec![
            Event::Text(text.into()),
            Event::Finish(StopReason::EndTurn),
        ])
    }

    pub fn calls(calls: &[(&str, Value)]) -> Self {
        let mut events = Vec::new();
        for (index, (name, args)) in calls.iter().enumerate() {
            events.push(Event::CallStart {
                index,
                id: None,
                name: (*name).into(),
            });
            events.push(Event::CallArguments {
                index,
                json: args.to_string(),
            });
            events.push(Event::CallEnd { index });
        }
        events.push(Event::Finish(StopReason::ToolUse));
        Self::Events(events)
    }
}

/// What a provider was shown.
pub struct Shown {
    pub messages: Vec<Message>,
    pub tools: Vec<String>,
    pub prompt: String,
}

#[derive(Default)]
pub struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    shown: Mutex<Vec<Shown>>,
    structured: bool,
}

impl Scripted {
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    /// One that sees to the shape of its answers.
    pub fn structured(answers: impl IntoIterator<Item = Answer>) -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            structured: true,
            ..Self::default()
        })
    }

    pub fn shown(&self) -> std::sync::MutexGuard<'_, Vec<Shown>> {
        self.shown.lock().unwrap()
    }
}

impl Provider for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn structured_output(&self) -> bool {
        self.structured
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        self.shown.lock().unwrap().push(Shown {
            messages: context.with_prompt(prompt),
            tools: context.tools.names().map(String::from).collect(),
            prompt: prompt.into(),
        });
        let answer = self.answers.lock().unwrap().pop_front();
        match answer.unwrap_or_else(|| Answer::text("nothing more")) {
            Answer::Events(events) => stream::iter(events.into_iter().map(Ok)).boxed(),
            Answer::Pain(pain) => stream::iter([Err(pain)]).boxed(),
            Answer::Hang(events) => stream::iter(events.into_iter().map(Ok))
                .chain(stream::pending())
                .boxed(),
            Answer::Panic => panic!("the provider panics"),
        }
    }
}
