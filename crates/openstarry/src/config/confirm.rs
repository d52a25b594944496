//! The `confirm` part: what needs a yes, and what is allowed or denied.

use super::{ConfigError, wrong};
use crate::approval::{Effect, Pattern, Policy, Rule};
use crate::tool::Risk;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The `confirm` part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfirmConfig {
    /// Calls of this risk and above need a yes.
    pub from: Risk,
    /// Tools that need none.
    pub approve: Vec<String>,
    /// What is allowed, asked about or denied, by tool and arguments.
    pub rules: Vec<RuleConfig>,
}

/// One of the `rules`: `allow`, `ask` or `deny`, and nothing but one of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleConfig {
    /// The tools that may run.
    pub allow: Option<String>,
    /// The tools that are asked about.
    pub ask: Option<String>,
    /// The tools that may not run.
    pub deny: Option<String>,
    /// Of them, the calls whose arguments fit.
    pub args: BTreeMap<String, String>,
    /// What the model is told when a call is denied.
    pub reason: Option<String>,
}

impl RuleConfig {
    fn rule(&self) -> Result<Rule, ConfigError> {
        let (effect, tool) = match (&self.allow, &self.ask, &self.deny) {
            (Some(tool), None, None) => (Effect::Allow, tool),
            (None, Some(tool), None) => (Effect::Ask, tool),
            (None, None, Some(tool)) => (Effect::Deny, tool),
            _ => {
                let why = "want one of allow, ask and deny, with the name of a tool";
                return Err(wrong("confirm.rules", why));
            }
        };
        let args = self.args.iter();
        Ok(Rule {
            effect,
            tool: Pattern::new(tool),
            args: args
                .map(|(name, pattern)| (name.clone(), Pattern::new(pattern)))
                .collect(),
            reason: self.reason.clone(),
        })
    }
}

impl ConfirmConfig {
    /// The owner's rules.
    pub(super) fn policy(&self) -> Result<Policy, ConfigError> {
        let approved = self.approve.iter();
        let approved = approved.map(|name| Ok(Rule::new(Effect::Allow, Pattern::new(name))));
        let rules = self.rules.iter().map(RuleConfig::rule);
        Ok(Policy {
            rules: approved.chain(rules).collect::<Result<_, ConfigError>>()?,
            ask_from: self.from,
        })
    }
}

impl Default for ConfirmConfig {
    fn default() -> Self {
        Self {
            from: Risk::Destructive,
            approve: Vec::new(),
            rules: Vec::new(),
        }
    }
}
