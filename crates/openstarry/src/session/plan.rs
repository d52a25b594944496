//! What is to be done about a call, before anybody is asked.

use crate::segment::{StopReason, ToolCall};
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
/// are answered, and nothing runs. `cut` is what cut the reply off, if anything did.
pub(super) fn plan(
    at: usize,
    call: &ToolCall,
    tools: &ToolSet,
    cut: Option<&StopReason>,
) -> Planned {
    let action = match (tools.get(&call.name), &call.broken, cut) {
        (_, Some(_), Some(cut)) => PlannedAction::Refuse(cut_off(cut)),
        (None, ..) => PlannedAction::Refuse(unknown_tool(&call.name, tools)),
        (Some(_), Some(broken), None) => PlannedAction::Refuse(format!(
            "The arguments are no JSON, so the tool did not run: {}. Call it again with a JSON object.",
            broken.error
        )),
        (Some(tool), None, _) => match tool.check(&call.args) {
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

fn cut_off(by: &StopReason) -> String {
    let why = match by {
        StopReason::MaxTokens => "reached the limit of output tokens".to_owned(),
        StopReason::ContextFull => "filled the context window".to_owned(),
        other => format!("was stopped by the API ({other})"),
    };
    format!(
        "Your reply {why} before the arguments were complete, so the tool did not run. Call it \
         again with less in it, or in several calls."
    )
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
