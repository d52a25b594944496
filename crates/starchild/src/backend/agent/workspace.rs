//! Strangers write the prompts of an agent in a room, so its tools must not reach the keys with
//! which it, or another agent of this machine, enters rooms.

use crate::backend::BackendError;
use openstarry::config::{AgentConfig, FsAccess};
use std::path::Path;

/// Refuses a workspace that overlaps the folder in which keys, sign-ins and sessions are kept, two
/// above the agent's own `folder`.
pub fn check(config: &AgentConfig, folder: &Path) -> Result<(), BackendError> {
    if config.tools.fs == FsAccess::Off && config.tools.shell.is_none() {
        return Ok(());
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let workspace = real(&config.workspace);
    let home = real(folder.ancestors().nth(2).unwrap_or(folder));
    if !workspace.starts_with(&home) && !home.starts_with(&workspace) {
        return Ok(());
    }
    Err(BackendError::Missing {
        what: format!(
            "the workspace {} holds the keys of this machine's agents",
            workspace.display()
        ),
        hint: "set workspace: in agent.yaml to a folder of its own, or tools: {fs: off}".into(),
    })
}
