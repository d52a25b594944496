//! What is to be done about a call, before anybody is asked.

use crate::segment::ToolCall;
use crate::tool::{Registered, ToolSet, nearest};
use std::sync::Arc;

const NEAREST: usize = 3;

/// A call with what is to be done about it.
pub(crate) struct Planned {
    pub(crate) at: usize,
    pub(crate) call: ToolCall,
    pub(crate) action: PlannedAction,
}

impl std::fmt::Debug for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.at, self.call.name)
    }
}

pub(crate) enum PlannedAction {
    /// The arguments fit.
    Run(Arc<Registered>),
    /// It cannot run; this is told in its place.
    Refuse(String),
    /// It may not run; this is told in its place.
    Deny(String),
}

/// What is to be done about a call: broken or unfit arguments and unknown tools
/// are answered, and nothing runs.
pub(super) fn plan(at: usize, call: &ToolCall, tools: &ToolSet, cut: bool) -> Planned {
    let action = match (tools.get(&call.name), &call.broken) {
        (_, Some(_)) if cut => PlannedAction::Refuse(
            "Your reply reached the limit of output tokens before the arguments were complete, so \
             the tool did not run. Call it again with less in it, or in several calls."
                .into(),
        ),
        (None, _) => PlannedAction::Refuse(unknown_tool(&call.name, tools)),
        (Some(_), Some(broken)) => PlannedAction::Refuse(format!(
            "The arguments are no JSON, so the tool did not run: {}. Call it again with a JSON object.",
            broken.error
        )),
        (Some(tool), None) => match tool.check(&call.args) {
            Ok(()) => PlannedAction::Run(Arc::clone(tool)),
            Err(error) => PlannedAction::Refuse(format!(
                "The arguments do not fit, so the tool did not run: {error}"
            )),
        },
    };
    Planned {
        at,
        call: call.clone(),
        action,
    }
}

/// The system observation for a tool that does not exist.
pub(crate) fn unknown_tool(name: &str, tools: &ToolSet) -> String {
    let name = crate::pain::excerpt(name, 100);
    let near = nearest(name, tools.names(), NEAREST);
    match near.is_empty() {
        true => format!("System observation: there is no tool named {name:?}."),
        false => format!(
            "System observation: there is no tool named {name:?}. The nearest are: {}.",
            near.join(", ")
        ),
    }
}
