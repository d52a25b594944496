//! From `handler.yaml` to the backend that it names.

use super::{Backend, BackendError, config::BackendConfig};
use std::path::Path;

/// Makes the backend and checks that what it needs is there. Relative paths count from `folder`,
/// the agent's own.
pub fn build(config: &BackendConfig, folder: &Path) -> Result<Box<dyn Backend>, BackendError> {
    let _ = folder;
    Err(BackendError::Missing {
        what: format!("this version has no backend {}", config.backend),
        hint: "use another one".into(),
    })
}
