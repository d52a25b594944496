//! `agent.yaml`: what an agent is, and the making of one.

mod build;

pub use build::{Built, Surroundings};

use crate::approval::{Effect, Pattern, Policy, Rule};
use crate::pain::AgentPain;
use crate::provider::Providers;
use crate::session::Price;
use crate::tool::Risk;
use crate::tool::mcp::McpConfig;
use crate::tool::retrieval::{EmbeddingsConfig, Selector};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MAX_FILE: usize = 256 << 10;

/// Why an agent could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The text is no agent.
    #[error("{0}")]
    Yaml(String),
    /// A value makes no sense.
    #[error("{key}: {why}")]
    Value {
        /// The key.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] AgentPain),
}

fn wrong(key: &str, why: impl ToString) -> ConfigError {
    ConfigError::Value {
        key: key.into(),
        why: why.to_string(),
    }
}

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// The agent's name; its sessions are kept under it.
    #[serde(default = "default_name")]
    pub name: String,
    /// Who it is, for the model.
    #[serde(default)]
    pub system: String,
    /// Which model it asks, and which next where that gives no answer.
    #[serde(alias = "provider")]
    pub providers: Providers,
    /// The folder its tools work in, from the file's folder.
    #[serde(default = "here")]
    pub workspace: PathBuf,
    /// What it can do.
    #[serde(default)]
    pub tools: ToolsConfig,
    /// What needs a yes.
    #[serde(default)]
    pub confirm: ConfirmConfig,
    /// How far it may go.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// What it remembers.
    #[serde(default)]
    pub memory: MemoryConfig,
}

fn default_name() -> String {
    "agent".into()
}

fn here() -> PathBuf {
    ".".into()
}

/// What files an agent may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FsAccess {
    /// None.
    Off,
    /// Read and list.
    #[default]
    Read,
    /// Write too.
    Write,
}

/// The `tools` part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// Files of the workspace.
    pub fs: FsAccess,
    /// Programs; absent: none.
    pub shell: Option<ShellAccess>,
    /// The web; absent: not at all.
    pub http: Option<HttpAccess>,
    /// The time.
    pub time: bool,
    /// A list of things to do.
    pub todo: bool,
    /// MCP servers, by name.
    pub mcp: BTreeMap<String, McpConfig>,
    /// How long a tool may run.
    pub timeout_seconds: f64,
    /// Which tools a turn is offered when there are many.
    pub retrieval: RetrievalConfig,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            fs: FsAccess::default(),
            shell: None,
            http: None,
            time: true,
            todo: true,
            mcp: BTreeMap::new(),
            timeout_seconds: 30.0,
            retrieval: RetrievalConfig::default(),
        }
    }
}

/// Programs an agent may run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellAccess {
    /// Their names; `*` for all.
    pub allow: Vec<String>,
    /// How long one may run; as other tools when left out.
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    /// Whether programs are kept from files outside of the workspace, where the
    /// system can do so.
    #[serde(default = "yes")]
    pub confine: bool,
    /// What they may read besides, from the file's folder; `~` is the home folder.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// What they may write besides.
    #[serde(default)]
    pub write: Vec<PathBuf>,
}

fn yes() -> bool {
    true
}

/// How far into the web an agent may go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpAccess {
    /// Whether private addresses are allowed.
    pub allow_private: bool,
}

/// The `retrieval` part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetrievalConfig {
    /// Up to this many tools are all offered.
    pub above: usize,
    /// Of more, so many are picked for a turn.
    pub top: usize,
    /// Tools that are always offered.
    pub pinned: Vec<String>,
    /// An endpoint for vectors, in place of the built-in ones.
    pub embeddings: Option<EmbeddingsConfig>,
}

impl Default for RetrievalConfig {
    fn default() -> Self {
        let selector = Selector::default();
        Self {
            above: selector.above,
            top: selector.top,
            pinned: Vec::new(),
            embeddings: None,
        }
    }
}

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
    fn policy(&self) -> Result<Policy, ConfigError> {
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

/// The `limits` part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Rounds of tools in a turn.
    pub rounds: u32,
    /// Tokens in a session; 0 for no limit.
    pub tokens: u64,
    /// Money in a session.
    pub money: Option<f64>,
    /// The price of a million tokens.
    pub price: Option<Price>,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            rounds: 10,
            tokens: 0,
            money: None,
            price: None,
        }
    }
}

/// How a model is reminded of what was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// What fits; the rest is left out.
    Window,
    /// What fits, and a summary of the rest.
    #[default]
    Summary,
}

/// The `memory` part.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// What becomes of turns that do not fit.
    pub strategy: Strategy,
    /// The most tokens that are shown; three quarters of the model's context
    /// unless told.
    pub tokens: Option<u64>,
    /// The most turns that are shown; no limit unless told.
    pub turns: Option<usize>,
}

impl AgentConfig {
    /// Reads a file. Paths in it count from its folder.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let failed = |why: String| ConfigError::File {
            path: path.into(),
            why,
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let mut config = Self::parse(&text).map_err(|error| failed(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        config.workspace = folder.join(&config.workspace);
        config.providers.resolve_path(folder);
        if let Some(shell) = &mut config.tools.shell {
            for path in shell.read.iter_mut().chain(&mut shell.write) {
                if !path.starts_with("~") {
                    *path = folder.join(&*path);
                }
            }
        }
        Ok(config)
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        if text.len() > MAX_FILE {
            return Err(ConfigError::Yaml(format!("over {MAX_FILE} bytes")));
        }
        let budget = serde_saphyr::budget! {
            max_depth: 32,
            max_nodes: 20_000,
            max_events: 50_000,
            max_aliases: 100,
            max_anchors: 100,
            max_documents: 1,
        };
        let options = serde_saphyr::options! { budget: budget };
        let config: Self = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| ConfigError::Yaml(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(fits) {
            return Err(wrong("name", "want letters, digits, - and _, up to 64"));
        }
        if self.providers.iter().any(|p| p.model.trim().is_empty()) {
            return Err(wrong("provider.model", "want the name of a model"));
        }
        self.confirm.policy()?;
        seconds("tools.timeout_seconds", self.tools.timeout_seconds)?;
        if let Some(shell) = &self.tools.shell {
            if shell.allow.is_empty() {
                return Err(wrong("tools.shell.allow", "want at least one program"));
            }
            seconds(
                "tools.shell.timeout_seconds",
                shell.timeout_seconds.unwrap_or(1.0),
            )?;
        }
        if self.tools.retrieval.top == 0 {
            return Err(wrong("tools.retrieval.top", "want at least 1"));
        }
        if self.memory.turns == Some(0) {
            return Err(wrong("memory.turns", "want at least 1"));
        }
        if self.memory.tokens.is_some_and(|tokens| tokens < 1000) {
            return Err(wrong("memory.tokens", "want at least 1000"));
        }
        let sound = |value: f64| value.is_finite() && value >= 0.0;
        if !self.limits.money.is_none_or(sound) {
            return Err(wrong("limits.money", "want an amount"));
        }
        if let Some(price) = self.limits.price
            && !(sound(price.input) && sound(price.output) && price.cached.is_none_or(sound))
        {
            return Err(wrong("limits.price", "want amounts"));
        }
        if self.limits.money.is_some() && self.limits.price.is_none() {
            return Err(wrong(
                "limits.money",
                "want limits.price beside it, or nothing is counted",
            ));
        }
        Ok(())
    }
}

fn seconds(key: &str, value: f64) -> Result<Duration, ConfigError> {
    Duration::try_from_secs_f64(value)
        .ok()
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(86_400))
        .ok_or_else(|| wrong(key, "want seconds above 0, up to a day"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "provider: { kind: ollama, model: m }";

    #[test]
    fn a_provider_is_all_it_takes_and_nothing_dangerous_is_on() {
        let config = AgentConfig::parse(SMALL).unwrap();
        assert_eq!(config.tools.fs, FsAccess::Read);
        assert!(config.tools.shell.is_none() && config.tools.http.is_none());
        assert_eq!(config.confirm.from, Risk::Destructive);
        assert_eq!((config.limits.rounds, config.limits.tokens), (10, 0));
        assert_eq!(config.memory.strategy, Strategy::Summary);
    }

    #[test]
    fn one_provider_or_a_list_of_them() {
        let one = AgentConfig::parse(SMALL).unwrap();
        assert_eq!(one.providers.iter().count(), 1);
        let chain = "providers: [{ kind: openai, model: a }, { kind: ollama, model: b }]";
        let chain = AgentConfig::parse(chain).unwrap();
        let models: Vec<_> = chain.providers.iter().map(|p| p.model.as_str()).collect();
        assert_eq!(models, ["a", "b"]);
        for text in ["providers: []", "{}", "provider: 7"] {
            assert!(AgentConfig::parse(text).is_err(), "{text}");
        }
        let both = format!("{SMALL}\nproviders: [{{ kind: ollama, model: m }}]");
        assert!(AgentConfig::parse(&both).is_err());
    }

    #[test]
    fn a_key_that_does_not_exist_is_told() {
        for text in [
            "provider: {kind: ollama, model: m, modle: x}",
            &format!("{SMALL}\ntool: {{}}"),
        ] {
            let error = AgentConfig::parse(text).unwrap_err().to_string();
            assert!(error.contains("unknown field"), "{error}");
        }
    }

    #[test]
    fn values_that_make_no_sense_are_told_with_their_key() {
        for (more, key) in [
            ("name: '../x'", "name"),
            ("tools: {timeout_seconds: -1}", "tools.timeout_seconds"),
            ("tools: {timeout_seconds: .nan}", "tools.timeout_seconds"),
            ("tools: {shell: {allow: []}}", "tools.shell.allow"),
            ("limits: {money: 1}", "limits.money"),
            ("memory: {turns: 0}", "memory.turns"),
            ("confirm: {rules: [{reason: x}]}", "confirm.rules"),
            ("confirm: {rules: [{allow: a, deny: b}]}", "confirm.rules"),
        ] {
            let error = AgentConfig::parse(&format!("{SMALL}\n{more}")).unwrap_err();
            assert!(error.to_string().starts_with(key), "{more}: {error}");
        }
    }

    #[test]
    fn hostile_yaml_ends_with_an_error() {
        let deep = format!("system: {}", "[".repeat(50_000));
        let long = format!("system: {}", "x".repeat(MAX_FILE));
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for n in 1..12 {
            let list = vec![format!("*a{}", n - 1); 10].join(",");
            bomb.push_str(&format!("a{n}: &a{n} [{list}]\n"));
        }
        for text in [
            "",
            "[]",
            "\0",
            "provider: &a {kind: *a}",
            &deep,
            &long,
            &bomb,
        ] {
            assert!(AgentConfig::parse(text).is_err());
        }
    }
}
