//! A provider for tests, which says what it is told to.

use futures_util::stream::{self, StreamExt};
use openstarry::pain::AgentPain;
use openstarry::provider::{Context, Event, EventStream, Provider};
use openstarry::segment::StopReason;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Gives each answer in turn, and keeps what it was asked.
pub struct Script {
    answers: Mutex<VecDeque<Result<&'static str, AgentPain>>>,
    asked: Mutex<Vec<(String, String)>>,
}

impl Script {
    pub fn new(answers: impl IntoIterator<Item = Result<&'static str, AgentPain>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
        })
    }

    /// The system text and the prompt of each question.
    pub fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Provider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        let asked = (context.system.clone(), prompt.to_owned());
        self.asked.lock().unwrap().push(asked);
        let answer = self.answers.lock().unwrap().pop_front();
        match answer.unwrap_or_else(|| Err(AgentPain::Config("it has no more to say".into()))) {
            Ok(text) => stream::iter([
                Ok(Event::Text(text.to_owned())),
                Ok(Event::Finish(StopReason::EndTurn)),
            ])
            .boxed(),
            Err(pain) => stream::iter([Err(pain)]).boxed(),
        }
    }
}
