//! Approval: whether a call may run. A [`Policy`] decides by tool, arguments and
//! risk; where it says so, a person is asked through a [`Gate`] or answers from
//! elsewhere through [`Consents`]. It fails closed: no answer, a late one and a
//! gate that breaks all mean no.

mod consents;
mod gate;
mod grants;
mod policy;

pub use consents::{ConsentError, Consents};
pub use gate::{AllowAll, DenyAll, Elsewhere, Form, Gate};
pub use grants::Grants;
pub use policy::{Effect, Pattern, Policy, Rule, Ruling};

use crate::segment::ToolCall;
use crate::tool::{Registered, Risk, ToolSpec};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A call that waits for a yes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consent {
    /// Under which it is answered. The same call of the same session has the
    /// same id after a restart.
    pub id: String,
    /// The session that waits.
    pub session: String,
    /// What would run.
    pub call: ToolCall,
    /// What can go wrong.
    pub risk: Risk,
    /// The change it would make, as a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// What "always" would allow.
    pub always: Rule,
    /// When it was asked, in UTC.
    pub asked_at: String,
}

impl Consent {
    /// A question about a call. "Always" is for all calls of the tool.
    fn new(session: &str, call: &ToolCall, spec: &ToolSpec) -> Self {
        Self {
            id: consent_id(session, call),
            session: session.into(),
            call: call.clone(),
            risk: spec.risk,
            preview: None,
            always: Rule::new(Effect::Allow, Pattern::exactly(&spec.name)),
            asked_at: jiff::Timestamp::now().to_string(),
        }
    }
}

/// What a person says to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// This once.
    Once,
    /// Calls like it, in this session.
    Session,
    /// Calls like it, for good.
    Always,
    /// No.
    Deny {
        /// Why, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Whether a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Run,
    /// It does not, and the model is told this.
    Deny(String),
}

/// What was allowed for the rest of a session. Clones are the same.
pub type SessionGrants = Arc<Mutex<Vec<Rule>>>;

/// How an agent's calls are approved.
#[derive(Clone)]
pub struct Approval {
    /// The owner's rules.
    pub policy: Policy,
    /// Whom to ask.
    pub gate: Arc<dyn Gate>,
    /// The questions that wait.
    pub consents: Consents,
    /// What was allowed for good.
    pub grants: Grants,
    /// How long to wait for an answer; for ever when there is none.
    pub timeout: Option<Duration>,
}

impl Default for Approval {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            gate: Arc::new(DenyAll),
            consents: Consents::default(),
            grants: Grants::default(),
            timeout: Some(Duration::from_secs(300)),
        }
    }
}

impl Approval {
    /// What becomes of a call, before anyone is asked.
    pub(crate) fn ruling(
        &self,
        call: &ToolCall,
        tool: &Registered,
        here: &SessionGrants,
    ) -> Ruling {
        let args = tool.tool().canonical_args(&call.args);
        let mut granted = self.grants.rules();
        granted.extend(lock(here).iter().cloned());
        self.policy.ruling(tool.spec(), &args, &granted)
    }

    /// Keeps the question whether a call may run, so that it can be answered.
    pub(crate) async fn question(
        &self,
        session: &str,
        call: &ToolCall,
        tool: &Registered,
    ) -> Consent {
        let preview = tool.tool().preview(&call.args);
        let preview = AssertUnwindSafe(preview).catch_unwind().await;
        let args = tool.tool().canonical_args(&call.args);
        let mut consent = Consent::new(session, call, tool.spec());
        consent.preview = preview.ok().flatten();
        for name in tool.tool().granted_args() {
            let text = match args.get(*name) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => continue,
            };
            let exactly = Pattern::exactly(&text);
            consent.always.args.insert((*name).into(), exactly);
        }
        self.keep(&consent);
        consent
    }

    /// Decides about something that is no tool of the agent's, but is ruled and
    /// asked about like one.
    pub(crate) async fn decide_without_tool(
        &self,
        session: &str,
        call: &ToolCall,
        spec: &ToolSpec,
        here: &SessionGrants,
    ) -> Decision {
        let mut granted = self.grants.rules();
        granted.extend(lock(here).iter().cloned());
        match self.policy.ruling(spec, &call.args, &granted) {
            Ruling::Allow => Decision::Run,
            Ruling::Deny(why) => denied(&why),
            Ruling::Ask => {
                let consent = Consent::new(session, call, spec);
                self.keep(&consent);
                self.ask(&consent, here).await
            }
        }
    }

    fn keep(&self, consent: &Consent) {
        if let Err(error) = self.consents.keep(consent) {
            tracing::error!(%error, "a question will not survive a restart");
        }
    }

    /// Asks, and keeps what the person says about calls like it.
    pub(crate) async fn ask(&self, consent: &Consent, here: &SessionGrants) -> Decision {
        let gate = AssertUnwindSafe(self.gate.ask(consent)).catch_unwind();
        let answers = async {
            tokio::select! {
                biased;
                answer = self.consents.answered(&consent.id) => Some(answer),
                answer = gate => answer.ok(),
            }
        };
        let answer = match self.timeout {
            Some(timeout) => tokio::time::timeout(timeout, answers).await,
            None => Ok(answers.await),
        };
        self.consents.withdraw(&consent.id);
        match answer {
            Ok(Some(Answer::Once)) => Decision::Run,
            Ok(Some(Answer::Session)) => {
                lock(here).push(consent.always.clone());
                Decision::Run
            }
            Ok(Some(Answer::Always)) => {
                if let Err(error) = self.grants.add(consent.always.clone()) {
                    tracing::error!(%error, "what was allowed for good holds for this run alone");
                }
                Decision::Run
            }
            Ok(Some(Answer::Deny { reason: None })) => denied("the user said no"),
            Ok(Some(Answer::Deny { reason: Some(why) })) => {
                denied(&format!("the answer was no: {why}"))
            }
            Ok(None) => denied("the question failed"),
            Err(_) => denied("nobody answered in time"),
        }
    }
}

/// The words for a call that may not run.
pub(crate) fn denied(why: &str) -> Decision {
    let why = why.trim_end_matches('.');
    Decision::Deny(format!(
        "Denied, so the call did not run: {why}. Do not repeat it unchanged."
    ))
}

fn consent_id(session: &str, call: &ToolCall) -> String {
    let parts = [
        session,
        "\0",
        call.id(),
        "\0",
        &call.name,
        "\0",
        &call.args_text(),
    ];
    format!("{:016x}", crate::hash::fnv(parts))
}

fn lock(rules: &Mutex<Vec<Rule>>) -> std::sync::MutexGuard<'_, Vec<Rule>> {
    rules.lock().unwrap_or_else(PoisonError::into_inner)
}
