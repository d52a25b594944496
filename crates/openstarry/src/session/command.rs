//! Slash commands, once they are read: what the session itself does, and tools
//! that the owner runs.

use super::budget::Limits;
use super::drive::Driver;
use super::slash::{self, Slash};
use super::state::SessionState;
use super::{SessionEvent, compact};
use crate::segment::{ContentSegment, Usage};
use crate::tool::Principal;

impl Driver<'_> {
    /// Runs a command. `is_ruled` tells whether the policy holds for it.
    pub(super) async fn command(
        &self,
        state: &mut SessionState,
        slash: Slash,
        is_ruled: bool,
    ) -> Vec<ContentSegment> {
        let tools = self.inner.registry.snapshot();
        let text = match slash {
            Slash::Tool { name, args } => {
                let caller = self.caller(state, Principal::User);
                return caller.command(&name, args, &tools, is_ruled).await;
            }
            Slash::Help => {
                let own = slash::OWN
                    .iter()
                    .map(|(word, about)| format!("/{word}  {about}"));
                let tools = "Any tool can be run: /read a.txt, /fs.read {\"path\":\"a.txt\"}.";
                own.chain([
                    tools.into(),
                    "Begin with // to send a slash to the model.".into(),
                ])
                .collect::<Vec<_>>()
                .join("\n")
            }
            Slash::Tools => {
                let row = |spec: &crate::tool::ToolSpec| {
                    let risk = serde_json::to_value(spec.risk).unwrap_or_default();
                    let about = spec.description.lines().next().unwrap_or_default();
                    format!(
                        "{} ({})  {about}",
                        spec.name,
                        risk.as_str().unwrap_or_default()
                    )
                };
                tools
                    .iter()
                    .map(|tool| row(tool.spec()))
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            Slash::Reset => {
                state.reset();
                "The session starts anew; what was spent stays spent.".into()
            }
            Slash::Usage => cost(state, &self.inner.settings.limits),
            Slash::Compact => {
                let text = compact::compact(self, state).await;
                self.save(state).await;
                text
            }
            Slash::Model(name) => self.model(state, name.as_deref()),
            Slash::Unknown(text) => text,
        };
        self.tell(SessionEvent::Text { text: text.clone() }).await;
        vec![ContentSegment::text(text)]
    }

    /// Tells the model that is asked, or takes another from the next turn on.
    fn model(&self, state: &mut SessionState, name: Option<&str>) -> String {
        let current = |state: &SessionState| {
            let own = self
                .inner
                .provider
                .model()
                .unwrap_or("a model without a name");
            state.model.clone().unwrap_or_else(|| own.to_owned())
        };
        let Some(name) = name else {
            return format!(
                "{} is asked, by {}. /model NAME takes another; `starchild agent models` lists them.",
                current(state),
                self.provider.name()
            );
        };
        match self.inner.provider.with_model(name) {
            Some(_) => {
                state.model = Some(name.to_owned());
                format!("From now on {name} is asked in this session.")
            }
            None => format!("{} has one model only.", self.inner.provider.name()),
        }
    }
}

/// What the session has used up, and of what.
fn cost(state: &SessionState, limits: &Limits) -> String {
    let spent = &state.spent;
    let about = if spent.usage.estimated { "about " } else { "" };
    let Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
        ..
    } = spent.usage;
    let mut text = format!("{about}{input_tokens} tokens read");
    if cached_tokens > 0 {
        text.push_str(&format!(" ({cached_tokens} of them from the API's cache)"));
    }
    text.push_str(&format!(", {output_tokens} written"));
    if let Some(limit) = limits.tokens {
        text.push_str(&format!("; limits.tokens is {limit}"));
    }
    match (limits.price, limits.money) {
        (None, _) => text.push_str("; limits.price would tell what that costs"),
        (Some(_), None) => text.push_str(&format!("; {:.4} spent", spent.money)),
        (Some(_), Some(limit)) => {
            text.push_str(&format!("; {:.4} of {limit:.4} spent", spent.money));
        }
    }
    text
}
