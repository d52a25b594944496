//! A provider for tests, which says what it is told to.

use futures_util::stream::{self, StreamExt};
use openstarry::pain::AgentPain;
use openstarry::provider::{Context, Event, EventStream, Provider};
use openstarry::segment::{StopReason, joined_text};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Gives each answer in turn, and keeps what it was asked. An answer that begins
/// with `MAX ` was cut off there.
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

    /// The system text of each question, and all that was said with the prompt.
    pub fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Provider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        let said = context.with_prompt(prompt);
        let said: Vec<_> = said
            .iter()
            .map(|said| joined_text(&said.segments))
            .collect();
        let asked = (context.system.clone(), said.join("\n\n"));
        self.asked.lock().unwrap().push(asked);
        let answer = self.answers.lock().unwrap().pop_front();
        match answer.unwrap_or_else(|| Err(AgentPain::Config("it has no more to say".into()))) {
            Ok(text) => {
                let cut = text.strip_prefix("MAX ");
                let stop = match cut {
                    Some(_) => StopReason::MaxTokens,
                    None => StopReason::EndTurn,
                };
                let text = cut.unwrap_or(text).to_owned();
                stream::iter([Ok(Event::Text(text)), Ok(Event::Finish(stop))]).boxed()
            }
            Err(pain) => stream::iter([Err(pain)]).boxed(),
        }
    }
}
