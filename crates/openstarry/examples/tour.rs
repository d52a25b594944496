//! What the library can do, without a network: the model here says what it is
//! told to. `cargo run -p openstarry --example tour`

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream;
use openstarry::provider::{Context, Event, EventStream, Provider, Recorder, Replay};
use openstarry::segment::{ProviderResponse, StopReason};
use openstarry::session::{Agent, Hook, Limits, SessionState, Settings};
use openstarry::tool::{Registry, SubAgent};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// A model that says these things, one after another.
struct Script(Mutex<VecDeque<Vec<Event>>>);

impl Script {
    fn new(says: impl IntoIterator<Item = Vec<Event>>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(says.into_iter().collect())))
    }
}

impl Provider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn stream<'a>(&'a self, _: &'a str, _: &'a Context) -> EventStream<'a> {
        let mut says = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let says = says.pop_front().unwrap_or_default();
        stream::iter(says.into_iter().map(Ok)).boxed()
    }
}

fn words(text: &str) -> Vec<Event> {
    vec![Event::Text(text.into()), Event::Finish(StopReason::EndTurn)]
}

fn call(name: &str, args: Value) -> Vec<Event> {
    vec![
        Event::CallStart {
            index: 0,
            id: None,
            name: name.into(),
        },
        Event::CallArguments {
            index: 0,
            json: args.to_string(),
        },
        Event::CallEnd { index: 0 },
        Event::Finish(StopReason::ToolUse),
    ]
}

openstarry::tool! {
    /// The weather at a place.
    #[risk(Safe)]
    async fn get_weather(
        /// A city.
        city: String,
    ) -> String {
        format!("25°C and sunny in {city}")
    }
}

/// Prints what the model was asked for.
struct Watch;

impl Hook for Watch {
    fn after_model<'a>(
        &'a self,
        session: &'a str,
        reply: &'a ProviderResponse,
    ) -> BoxFuture<'a, ()> {
        for call in reply.calls() {
            println!("  [{session}] wants {} {}", call.name, call.args);
        }
        Box::pin(std::future::ready(()))
    }
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Weather {
    city: String,
    degrees: i32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let recording = folder.path().join("tour.jsonl");
    let settings = || Settings {
        hooks: vec![Arc::new(Watch)],
        ..Settings::default()
    };
    let tools = Registry::new();
    tools.add(vec![get_weather()])?;

    println!("A question, recorded:");
    let model = Script::new([
        call("get_weather", json!({ "city": "Taipei" })),
        words("It is warm and sunny."),
    ]);
    let recorder = Arc::new(Recorder::new(model, &recording)?);
    let agent = Agent::new(recorder, tools.clone(), settings());
    let session = agent.session(SessionState::new("recorded"), None);
    let outcome = session.say("How is it in Taipei?")?.outcome().await;
    println!("  {} ({:?})", outcome.text(), outcome.end);

    println!("The same from the recording:");
    let agent = Agent::new(
        Arc::new(Replay::load(&recording)?),
        tools.clone(),
        settings(),
    );
    let session = agent.session(SessionState::new("replayed"), None);
    let outcome = session.say("How is it in Taipei?")?.outcome().await;
    println!("  {}", outcome.text());

    println!("A typed answer:");
    let model = Script::new([call(
        "final_answer",
        json!({ "city": "Taipei", "degrees": 25 }),
    )]);
    let session = Agent::new(model, tools, settings()).session(SessionState::new("typed"), None);
    let weather: Weather = session.extract("How is it in Taipei?").await?;
    println!("  {} degrees in {}", weather.degrees, weather.city);

    println!("A sub-agent with limits of its own:");
    let limits = Limits {
        rounds: 3,
        ..Limits::default()
    };
    let helper = Agent::new(
        Script::new([words("forty-two")]),
        Registry::new(),
        Settings {
            limits,
            ..Settings::default()
        },
    );
    let tools = Registry::new();
    tools.add(vec![Arc::new(SubAgent::new(
        "helper",
        "Knows things.",
        helper,
    ))])?;
    let model = Script::new([
        call("helper", json!({ "task": "What is it?" })),
        words("It is forty-two."),
    ]);
    let session = Agent::new(model, tools, settings()).session(SessionState::new("main"), None);
    let outcome = session.say("What is it?")?.outcome().await;
    println!("  {}", outcome.text());
    Ok(())
}
