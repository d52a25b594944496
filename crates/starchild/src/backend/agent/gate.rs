//! Calls that need a yes are asked for in the room that the session works in.

use super::tools::ToolRooms;
use crate::backend::consent::{self, ConsentQuestion};
use futures_util::future::BoxFuture;
use openstarry::approval::{Answer, Consent, Gate};

/// Asks the agent's owner in the room.
pub struct RoomGate(pub ToolRooms);

impl Gate for RoomGate {
    fn ask<'a>(&'a self, consent: &'a Consent) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Some(room) = self.0.of_session(&consent.session) else {
                let reason = Some("this session is in no room".into());
                return Answer::Deny { reason };
            };
            match room.asker.ask(&question(consent)).await {
                consent::ConsentAnswer::Once => Answer::Once,
                // For this room's session: in another room others may be listening.
                consent::ConsentAnswer::Always => Answer::Session,
                consent::ConsentAnswer::No(reason) => Answer::Deny {
                    reason: Some(reason),
                },
            }
        })
    }
}

fn question(consent: &Consent) -> ConsentQuestion {
    let arguments = consent.call.args_text();
    let path = consent.call.args["path"].as_str();
    // Where the change is shown, the file is enough.
    let about = path.filter(|_| consent.preview.is_some());
    ConsentQuestion {
        id: consent.id.clone(),
        tool: consent.call.name.clone(),
        summary: format!("{} {}", consent.call.name, about.unwrap_or(&arguments)),
        detail: Some(consent.preview.clone().unwrap_or(arguments)),
    }
}
