//! `agent.yaml`: what an agent is, and the making of one.

mod build;
mod confirm;

pub use build::{AgentDependencies, Built};
pub use confirm::{ConfirmConfig, RuleConfig};

use crate::pain::AgentPain;
use crate::provider::Providers;
use crate::session::Price;
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
mod tests;
