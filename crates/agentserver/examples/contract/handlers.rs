//! The handler contract's three examples, and what stands around them.

use agentserver::config::{ConfigError, OrganismFile};
use agentserver::{HandlerMetadata, HandlerResponse, Organism, Payload, Result};
use std::sync::{Arc, Mutex};

#[derive(Payload, Debug, PartialEq)]
pub struct AddPayload {
    pub a: i64,
    pub b: i64,
}

#[derive(Payload, Debug, PartialEq)]
pub struct ResultPayload {
    pub value: i64,
}

#[derive(Payload, Debug, PartialEq)]
pub struct ResearchPayload {
    /// What to look up.
    pub query: String,
}

#[derive(Payload, Debug, PartialEq)]
pub struct ResearchResult {
    pub answer: String,
}

#[derive(Payload, Debug, PartialEq)]
pub struct ConsoleOutput {
    pub source: String,
    pub text: String,
}

#[derive(Payload, Debug, PartialEq)]
pub struct Greeting {
    /// Whom to greet.
    pub name: String,
}

#[derive(Payload, Debug, PartialEq)]
pub struct GreetingResponse {
    pub message: String,
}

/// A pure tool: returns to whoever called.
async fn add_handler(payload: AddPayload, metadata: HandlerMetadata) -> Result {
    let result = payload
        .a
        .checked_add(payload.b)
        .ok_or("the sum is too large")?;
    Ok(Some(HandlerResponse::to(
        metadata.from_id,
        ResultPayload { value: result },
    )))
}

/// Stands in for a model: the pump knows of none.
async fn complete(system: &str, user: &str, agent: Option<&str>) -> Result<String> {
    let peers = system.matches("\n## ").count();
    Ok(format!(
        "{} looked up {user:?} and may tell {peers} peer",
        agent.unwrap_or("nobody")
    ))
}

/// An agent: asks a model and forwards what it says.
async fn research_handler(payload: ResearchPayload, metadata: HandlerMetadata) -> Result {
    let system_prompt = format!(
        "{}\n\nYou are a research agent.",
        metadata.usage_instructions
    );
    let answer = complete(&system_prompt, &payload.query, metadata.own_name.as_deref()).await?;
    Ok(Some(HandlerResponse::to(
        "summarizer",
        ResearchResult { answer },
    )))
}

/// Where displayed lines go.
pub type Screen = Arc<Mutex<Vec<String>>>;

/// The end of a chain: display only.
async fn console_display(payload: ConsoleOutput, screen: Screen) -> Result {
    let line = format!("[{}] {}", payload.source, payload.text);
    screen
        .lock()
        .map_err(|_| "the screen is broken")?
        .push(line);
    Ok(None)
}

async fn greet(payload: Greeting, _: HandlerMetadata) -> Result {
    let message = format!("Hello, {}!", payload.name);
    Ok(Some(HandlerResponse::to(
        "shouter",
        GreetingResponse { message },
    )))
}

/// Puts the handlers behind the names in `organism.yaml`.
pub fn organism(screen: &Screen) -> Result<Organism, ConfigError> {
    OrganismFile::<agentserver::config::Compiled>::parse(include_str!("organism.yaml"))?.build(
        |file, _, listener| {
            let screen = screen.clone();
            Ok(match &*file.name.value {
                "adder" => listener.on(add_handler),
                "researcher" => listener.on(research_handler),
                "display" => {
                    listener.on(move |payload, _| console_display(payload, screen.clone()))
                }
                "greeter" => listener
                    .on(greet)
                    .on(|shouted: GreetingResponse, _| async move {
                        Ok(HandlerResponse::respond(shouted))
                    }),
                "shouter" => listener.on(|payload: GreetingResponse, _| async move {
                    let message = payload.message.to_uppercase();
                    Ok(HandlerResponse::respond(GreetingResponse { message }))
                }),
                "logger" => listener.on(|_: GreetingResponse, _| async { Ok(()) }),
                "summarizer" => listener.on(
                    |found: ResearchResult, metadata: HandlerMetadata| async move {
                        let output = ConsoleOutput {
                            source: metadata.from_id,
                            text: found.answer,
                        };
                        Ok(HandlerResponse::to("display", output))
                    },
                ),
                other => return Err(format!("{other} has no handler")),
            })
        },
    )
}
