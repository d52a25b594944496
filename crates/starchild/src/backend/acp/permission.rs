//! Requests for permissions: answered by the policy, or by the agent's owner in the room.

use super::{
    policy::{Decision, Policy, ToolCall},
    turns::Turns,
};
use crate::backend::consent::ConsentAnswer;
use agent_client_protocol::v1::schema as acp;
use std::sync::Arc;

/// Answers a request for a permission: from the policy, or as the owner says in the room. Nothing is
/// ever allowed for good at the agent itself.
pub fn permission(
    request: acp::RequestPermissionRequest,
    turns: Arc<Turns>,
    policy: &Policy,
) -> impl Future<Output = acp::RequestPermissionResponse> + Send + use<> {
    let session = request.session_id.clone();
    let call = turns.permission_call(&session, &request.tool_call);
    let decision = match policy.decide(&call) {
        Decision::Ask if turns.is_granted(&session, &call) => Decision::Allow,
        decision => decision,
    };
    let asked = match decision {
        Decision::Ask => turns.question(&session, &call),
        Decision::Allow | Decision::Deny => None,
    };
    async move {
        let decision = match (decision, asked) {
            (Decision::Ask, Some(asked)) => match asked.answer().await {
                Some(ConsentAnswer::Once) => Decision::Allow,
                Some(ConsentAnswer::Always) => {
                    turns.grant(&session, &call);
                    Decision::Allow
                }
                Some(ConsentAnswer::No(_)) => Decision::Deny,
                None => return cancelled(),
            },
            // Nobody is there to be asked.
            (Decision::Ask, None) => Decision::Deny,
            (decision, _) => decision,
        };
        let response = chosen(&request, decision, &call);
        if decision == Decision::Deny {
            turns.deny(&session, &call);
        }
        response
    }
}

/// The agent's own option for a decision.
fn chosen(
    request: &acp::RequestPermissionRequest,
    decision: Decision,
    call: &ToolCall,
) -> acp::RequestPermissionResponse {
    use acp::PermissionOptionKind::{AllowOnce, RejectAlways, RejectOnce};
    let option = |kind| {
        let mut options = request.options.iter();
        options.find(|option| option.kind == kind)
    };
    let allowed = match decision {
        Decision::Allow => option(AllowOnce).map(|option| (Decision::Allow, option)),
        Decision::Deny | Decision::Ask => None,
    };
    let refused = || option(RejectOnce).or_else(|| option(RejectAlways));
    let chosen = allowed.or_else(|| refused().map(|option| (Decision::Deny, option)));
    let decision = chosen.map_or(Decision::Deny, |(decision, _)| decision);
    let title: String = call.title.chars().take(200).collect();
    tracing::info!(kind = ?call.kind, title, paths = ?call.paths, "a permission was {decision}");
    match chosen {
        Some((_, option)) => {
            acp::RequestPermissionResponse::new(acp::RequestPermissionOutcome::Selected(
                acp::SelectedPermissionOutcome::new(option.option_id.clone()),
            ))
        }
        None => cancelled(),
    }
}

fn cancelled() -> acp::RequestPermissionResponse {
    acp::RequestPermissionResponse::new(acp::RequestPermissionOutcome::Cancelled)
}
