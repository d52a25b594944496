//! Records what a provider says, and says it again: for tests that need no
//! network and no key.

use super::{Context, Event, EventStream, Provider};
use crate::pain::AgentPain;
use futures_util::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Exchanges of a recording, and bytes of one, that are read.
const MOST: usize = 10_000;
const MAX_LINE: usize = 64 << 20;

/// One question and what came of it. A recording has one in each line.
#[derive(Debug, Serialize, Deserialize)]
struct Exchange {
    provider: String,
    prompt: String,
    /// How much had been said before.
    messages: usize,
    tools: Vec<String>,
    events: Vec<Event>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

/// A provider whose answers are written to a file as they come. The file holds
/// what was said; no key is in it.
pub struct Recorder {
    provider: Arc<dyn Provider>,
    path: PathBuf,
}

impl Recorder {
    /// Records `provider` into a new file.
    pub fn new(provider: Arc<dyn Provider>, path: &Path) -> std::io::Result<Self> {
        File::create(path)?;
        Ok(Self {
            provider,
            path: path.into(),
        })
    }
}

fn write(path: &Path, exchange: &Exchange) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(exchange)?;
    line.push(b'\n');
    OpenOptions::new().append(true).open(path)?.write_all(&line)
}

impl Provider for Recorder {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn model(&self) -> Option<&str> {
        self.provider.model()
    }

    fn structured_output(&self) -> bool {
        self.provider.structured_output()
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        let exchange = Exchange {
            provider: self.name().into(),
            prompt: prompt.into(),
            messages: context.messages.len(),
            tools: context.tools.names().map(String::from).collect(),
            events: Vec::new(),
            failure: None,
        };
        let heard = self.provider.stream(prompt, context);
        let state = Some((heard, exchange));
        stream::unfold(state, move |state| async move {
            let (mut heard, mut exchange) = state?;
            let event = heard.next().await;
            match &event {
                Some(Ok(Event::Activity | Event::Waiting { .. })) => {}
                Some(Ok(event)) => exchange.events.push(event.clone()),
                Some(Err(failure)) => exchange.failure = Some(failure.to_string()),
                None => {}
            }
            match event {
                Some(Ok(event)) => Some((Ok(event), Some((heard, exchange)))),
                ended => {
                    if let Err(error) = write(&self.path, &exchange) {
                        tracing::error!(%error, "an exchange was not recorded");
                    }
                    ended.map(|failure| (failure, None))
                }
            }
        })
        .boxed()
    }
}

/// A provider that says what was recorded, one exchange after another. A question
/// that is not the recorded one is an error that says so.
pub struct Replay {
    name: String,
    exchanges: Mutex<VecDeque<Exchange>>,
}

impl Replay {
    /// Reads a recording.
    pub fn load(path: &Path) -> Result<Self, AgentPain> {
        let wrong = |why: String| AgentPain::Config(format!("{}: {why}", path.display()));
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let mut exchanges = VecDeque::new();
        for line in BufReader::new(file).lines().take(MOST) {
            let line = line.map_err(|error| wrong(error.to_string()))?;
            if line.len() > MAX_LINE {
                return Err(wrong("a line is too long".into()));
            }
            let read = serde_json::from_str(&line);
            exchanges.push_back(read.map_err(|error| wrong(error.to_string()))?);
        }
        let first: Option<&Exchange> = exchanges.front();
        Ok(Self {
            name: first.map_or_else(|| "replay".into(), |first| first.provider.clone()),
            exchanges: Mutex::new(exchanges),
        })
    }

    fn next(&self, prompt: &str, context: &Context) -> Result<Exchange, String> {
        let mut exchanges = self
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let next = exchanges.front().ok_or("the recording is over")?;
        if next.prompt != prompt || next.messages != context.messages.len() {
            return Err(format!(
                "the recording has another question here: {:?} after {} messages, and not {prompt:?} after {}",
                next.prompt,
                next.messages,
                context.messages.len()
            ));
        }
        exchanges
            .pop_front()
            .ok_or_else(|| "the recording is over".into())
    }
}

impl Provider for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        match self.next(prompt, context) {
            Err(why) => stream::iter([Err(AgentPain::Config(why))]).boxed(),
            Ok(exchange) => {
                let failure = exchange.failure.map(|why| Err(AgentPain::unavailable(why)));
                let events = exchange.events.into_iter().map(Ok);
                stream::iter(events.chain(failure)).boxed()
            }
        }
    }
}
