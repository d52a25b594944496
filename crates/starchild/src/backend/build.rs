//! From `handler.yaml` to the backend that it names.

use super::{
    Backend, BackendError,
    config::{BackendConfig, BackendKind},
    handler::Handler,
};
use std::path::Path;

/// Makes the backend and checks that what it needs is there. Relative paths count from `folder`,
/// the agent's own.
pub fn build(config: &BackendConfig, folder: &Path) -> Result<Box<dyn Backend>, BackendError> {
    match config.backend {
        BackendKind::Handler => Ok(Box::new(Handler::new(config, folder)?)),
        other => Err(BackendError::Missing {
            what: format!("this version has no backend {other}"),
            hint: "choose another one with starchild byoa edit".into(),
        }),
    }
}
