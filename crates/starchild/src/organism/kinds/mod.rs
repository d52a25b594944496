//! What can stand behind a listener: code compiled in, a process, a model.

mod compiled;
pub mod guard;
mod llm;
mod mcp;
mod memory;
mod process;
mod tools;

use super::config::File;
use super::model::{ModelsFile, Pool};
use agentserver::config::ConfigError;
use agentserver::payload::{PayloadType, Schema};
use agentserver::{Listener, Organism};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// A listener's `kind`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One of the listeners compiled into this program.
    Rust(compiled::Name),
    /// A command that reads the payload and answers on its standard output.
    Process(process::ProcessFile),
    /// A model with the listener's prompt and the peers' schemas.
    Llm(llm::LlmFile),
    /// A tool of an MCP server.
    Mcp(mcp::McpFile),
}

impl Default for Kind {
    fn default() -> Self {
        Self::Rust(compiled::Name::Print)
    }
}

/// What a listener is known to send by its kind.
pub enum Sends {
    /// It ends the chain.
    Nothing,
    /// The same types that it accepts.
    WhatItAccepts,
    /// Whatever it likes.
    Anything,
}

impl Kind {
    /// What a listener of this kind sends.
    pub fn sends(&self) -> Sends {
        match self {
            Self::Rust(compiled::Name::Print) => Sends::Nothing,
            Self::Rust(compiled::Name::Echo) => Sends::WhatItAccepts,
            Self::Process(_) | Self::Llm(_) | Self::Mcp(_) => Sends::Anything,
        }
    }

    /// The program that has to be on this machine.
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Process(process) => process.program(),
            Self::Mcp(mcp) => mcp.program(),
            Self::Rust(_) | Self::Llm(_) => None,
        }
    }
}

/// The payload types of the file, by name, for those who write JSON or wrap text.
pub type Types = Arc<HashMap<String, PayloadType>>;

/// Builds the organism of a file. Commands run in the file's folder.
pub fn build(file: &File, folder: &Path) -> Result<Organism, ConfigError> {
    build_with(file, folder, |models| {
        Ok(Arc::new(Pool::new(models, folder)?))
    })
}

/// The same, with the models that `connect` gives.
pub fn build_with(
    file: &File,
    folder: &Path,
    connect: impl FnOnce(&ModelsFile) -> Result<Arc<Pool>, String>,
) -> Result<Organism, ConfigError> {
    let types: Types = Arc::new(file.payload_types());
    let secrets = file
        .models
        .as_ref()
        .map(ModelsFile::key_variables)
        .unwrap_or_default();
    let models = file.models.as_ref().map(connect);
    let has_commands = file
        .listeners
        .iter()
        .any(|listener| matches!(listener.kind, Kind::Process(_)));
    if has_commands && !guard::can_confine() {
        tracing::warn!("this system has no Landlock: commands can write wherever this program can");
    }
    file.build(|listener_file, accepts, listener| {
        if accepts.is_empty() {
            return Err("accepts nothing; name payloads under `accepts`".to_owned());
        }
        match &listener_file.kind {
            Kind::Rust(name) => Ok(name.attach(accepts, listener)),
            Kind::Process(process) => process.attach(accepts, listener, &types, folder, &secrets),
            Kind::Mcp(mcp) => mcp.attach(accepts, listener, &types),
            Kind::Llm(llm) => {
                let listener = match listener_file.timeout_seconds {
                    Some(_) => listener,
                    None => listener.timeout(llm::TIMEOUT),
                };
                match &models {
                    Some(Ok(models)) => {
                        let prompt = &listener_file.prompt;
                        llm.attach(prompt, accepts, listener, &types, models)
                    }
                    Some(Err(message)) => Err(message.clone()),
                    None => Err("is a model, and the file has no `models`".to_owned()),
                }
            }
        }
    })
}

/// Adds one handler for all that a listener accepts.
fn accept_all<H, F>(accepts: Vec<Schema>, listener: Listener, handler: H) -> Listener
where
    H: Fn(agentserver::payload::Canonical, agentserver::HandlerMetadata) -> F
        + Clone
        + Send
        + Sync
        + 'static,
    F: Future<Output = agentserver::Result<agentserver::Reply>> + Send + 'static,
{
    accepts.into_iter().fold(listener, |listener, schema| {
        listener.on_schema(schema, handler.clone())
    })
}
