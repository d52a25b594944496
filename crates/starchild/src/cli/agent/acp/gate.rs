//! Asks the person at the editor before a dangerous call.

use super::update::{fenced, kind};
use agent_client_protocol::Client;
use agent_client_protocol::v1::{ConnectionTo, schema as acp};
use futures_util::future::BoxFuture;
use openstarry::approval::{Answer, Consent, Gate};

/// What the editor offers, and what it means.
const OPTIONS: [(&str, &str, acp::PermissionOptionKind); 4] = [
    ("once", "Allow", acp::PermissionOptionKind::AllowOnce),
    (
        "session",
        "Allow in this session",
        acp::PermissionOptionKind::AllowAlways,
    ),
    (
        "always",
        "Always allow",
        acp::PermissionOptionKind::AllowAlways,
    ),
    ("deny", "Deny", acp::PermissionOptionKind::RejectOnce),
];

/// Hands questions to the editor.
pub struct AskEditor {
    editor: ConnectionTo<Client>,
    session: String,
}

impl AskEditor {
    /// Questions of this session.
    pub fn new(editor: ConnectionTo<Client>, session: &str) -> Self {
        Self {
            editor,
            session: session.into(),
        }
    }
}

impl Gate for AskEditor {
    fn ask<'a>(&'a self, consent: &'a Consent) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let call = &consent.call;
            let mut fields = acp::ToolCallUpdateFields::new()
                .title(call.name.clone())
                .kind(kind(&call.name))
                .status(acp::ToolCallStatus::Pending)
                .raw_input(call.args.clone());
            if let Some(diff) = &consent.preview {
                let text = acp::TextContent::new(fenced(diff));
                fields = fields.content(vec![acp::ContentBlock::Text(text).into()]);
            }
            let options =
                OPTIONS.map(|(id, name, kind)| acp::PermissionOption::new(id, name, kind));
            let request = acp::RequestPermissionRequest::new(
                self.session.clone(),
                acp::ToolCallUpdate::new(call.id().to_owned(), fields),
                options.into(),
            );
            let answered = self.editor.send_request(request).block_task().await;
            let chosen = match answered.map(|answered| answered.outcome) {
                Ok(acp::RequestPermissionOutcome::Selected(chosen)) => chosen.option_id.to_string(),
                _ => String::new(),
            };
            match chosen.as_str() {
                "once" => Answer::Once,
                "session" => Answer::Session,
                "always" => Answer::Always,
                _ => Answer::Deny { reason: None },
            }
        })
    }
}
