//! From `handler.yaml` to the backend that it names.

use super::{
    Backend, BackendError,
    a2a::A2a,
    acp::Acp,
    agent::Agent,
    command_line::CommandLine,
    config::{BackendConfig, BackendKind},
    handler::Handler,
    openai::Openai,
    organism::Organism,
    plain::Plain,
    starchild::Starchild,
};
use crate::home::Home;
use std::path::Path;

/// Makes the backend and checks that what it needs is there. Relative paths count from `folder`,
/// the agent's own.
pub fn build(config: &BackendConfig, folder: &Path) -> Result<Box<dyn Backend>, BackendError> {
    Ok(match config.backend {
        BackendKind::Codex => Box::new(CommandLine::codex(config, folder)?),
        BackendKind::Claude => Box::new(CommandLine::claude(config, folder)?),
        BackendKind::Custom => Box::new(CommandLine::custom(config, folder)?),
        BackendKind::Openai => Box::new(Openai::new(config, &|name| std::env::var(name).ok())?),
        BackendKind::Plain => Box::new(Plain::new(config, folder)),
        BackendKind::Starchild => Box::new(Starchild::new(config, home()?)?),
        BackendKind::Acp => Box::new(Acp::new(config, folder)?),
        BackendKind::A2a => Box::new(A2a::new(config, folder, &|name| std::env::var(name).ok())?),
        BackendKind::Agent => Box::new(Agent::new(config, folder)?),
        BackendKind::Organism => Box::new(Organism::new(config, folder)?),
        BackendKind::Handler => Box::new(Handler::new(config, folder)?),
    })
}

fn home() -> Result<Home, BackendError> {
    Home::find().map_err(|error| BackendError::Missing {
        what: "there is no login".into(),
        hint: error.to_string(),
    })
}
