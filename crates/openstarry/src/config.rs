//! `agent.yaml`: what an agent is, and the making of one.

use crate::pain::AgentPain;
use crate::provider::ProviderConfig;
use crate::session::{Agent, Audit, Confirmation, Gate, Limits, LogAudit, Price, Settings, Window};
use crate::tool::builtin::{
    HttpGet, SearchTools, ShellConfig, ShellRun, TimeNow, TodoTool, Workspace,
};
use crate::tool::mcp::{McpConfig, McpServer};
use crate::tool::retrieval::{EmbeddingsConfig, EmbeddingsEndpoint, Selector};
use crate::tool::{Registry, Risk, Tool};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    /// Which model it asks.
    pub provider: ProviderConfig,
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
}

impl Default for ConfirmConfig {
    fn default() -> Self {
        Self {
            from: Risk::Destructive,
            approve: Vec::new(),
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
            tokens: 100_000,
            money: None,
            price: None,
        }
    }
}

/// How a model is reminded of what was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The last turns.
    #[default]
    Window,
    /// The last turns, and a summary of those before.
    Summary,
}

/// The `memory` part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Which strategy.
    pub strategy: Strategy,
    /// How many turns.
    pub turns: usize,
    /// And of them no more than about so many tokens.
    pub tokens: Option<u64>,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            strategy: Strategy::Window,
            turns: 5,
            tokens: None,
        }
    }
}

/// An agent with what must live as long as it does.
pub struct Built {
    /// The agent.
    pub agent: Agent,
    /// Its MCP servers; dropping them ends those that were started.
    pub servers: Vec<McpServer>,
    /// What went wrong without being fatal.
    pub warnings: Vec<String>,
}

/// Who an agent asks and tells.
pub struct Surroundings<'a> {
    /// Says yes to dangerous calls.
    pub gate: Arc<dyn Gate>,
    /// Keeps audit lines.
    pub audit: Arc<dyn Audit>,
    /// Looks up environment variables.
    pub env: &'a (dyn Fn(&str) -> Option<String> + Sync),
}

impl Default for Surroundings<'_> {
    fn default() -> Self {
        Self {
            gate: Arc::new(crate::session::DenyAll),
            audit: Arc::new(LogAudit),
            env: &|name| std::env::var(name).ok(),
        }
    }
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
        if self.provider.model.trim().is_empty() {
            return Err(wrong("provider.model", "want the name of a model"));
        }
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
        if !(1..=100).contains(&self.memory.turns) {
            return Err(wrong("memory.turns", "want 1 to 100"));
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

    /// Makes the agent and starts its MCP servers. A server that does not start
    /// is a warning: the agent works without it.
    pub async fn build(&self, around: Surroundings<'_>) -> Result<Built, ConfigError> {
        let provider = self.provider.build(&around.env)?;
        let registry = Registry::new();
        let selector = self.selector(around.env)?;
        let mut tools = self.builtin()?;
        tools.push(Arc::new(SearchTools::new(
            registry.clone(),
            selector.clone(),
        )));
        registry.add(tools).map_err(|error| wrong("tools", error))?;
        let mut servers = Vec::new();
        let mut warnings = Vec::new();
        let started = self
            .tools
            .mcp
            .iter()
            .map(|(name, config)| McpServer::connect(name, config, &registry, around.env));
        for server in futures_util::future::join_all(started).await {
            match server {
                Ok(server) => servers.push(server),
                Err(error) => warnings.push(error.to_string()),
            }
        }
        let set = registry.snapshot();
        let missing = |key: &str, names: &[String]| -> Vec<String> {
            let gone = names.iter().filter(|name| set.get(name).is_none());
            gone.map(|name| format!("{key}: there is no tool named {name}"))
                .collect()
        };
        warnings.extend(missing(
            "tools.retrieval.pinned",
            &self.tools.retrieval.pinned,
        ));
        warnings.extend(missing("confirm.approve", &self.confirm.approve));
        let settings = Settings {
            system: self.system.trim().into(),
            limits: Limits {
                rounds: self.limits.rounds,
                tokens: Some(self.limits.tokens).filter(|tokens| *tokens > 0),
                money: self.limits.money,
                price: self.limits.price,
            },
            window: Window {
                turns: self.memory.turns,
                tokens: self.memory.tokens,
            },
            summarize: self.memory.strategy == Strategy::Summary,
            tool_timeout: seconds("tools.timeout_seconds", self.tools.timeout_seconds)?,
            selector,
            confirmation: Confirmation {
                from: self.confirm.from,
                approved: self.confirm.approve.clone(),
                gate: around.gate,
                ..Confirmation::default()
            },
            audit: around.audit,
        };
        Ok(Built {
            agent: Agent::new(provider, registry, settings),
            servers,
            warnings,
        })
    }

    fn builtin(&self) -> Result<Vec<Arc<dyn Tool>>, ConfigError> {
        let config = &self.tools;
        let limit = seconds("tools.timeout_seconds", config.timeout_seconds)?;
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if config.fs != FsAccess::Off {
            let workspace = Workspace::open(&self.workspace).map_err(|error| {
                wrong(
                    "workspace",
                    format!("{}: {error}", self.workspace.display()),
                )
            })?;
            tools.extend(workspace.read_tools());
            if config.fs == FsAccess::Write {
                tools.extend(workspace.write_tools());
            }
        }
        if let Some(shell) = &config.shell {
            let key = "tools.shell.timeout_seconds";
            let own = shell
                .timeout_seconds
                .map(|value| seconds(key, value))
                .transpose()?;
            tools.push(Arc::new(ShellRun::new(ShellConfig {
                allow: shell.allow.clone(),
                timeout: own.unwrap_or(limit),
                folder: self.workspace.clone(),
            })));
        }
        if let Some(http) = &config.http {
            let tool = HttpGet::new(http.allow_private, limit);
            tools.push(Arc::new(tool.map_err(|error| wrong("tools.http", error))?));
        }
        if config.time {
            tools.push(Arc::new(TimeNow::new(jiff::Timestamp::now)));
        }
        if config.todo {
            tools.push(Arc::new(TodoTool::default()));
        }
        Ok(tools)
    }

    fn selector(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Selector, ConfigError> {
        let config = &self.tools.retrieval;
        let endpoint = match &config.embeddings {
            Some(embeddings) => Some(Arc::new(EmbeddingsEndpoint::new(embeddings, env)?)),
            None => None,
        };
        Ok(Selector {
            above: config.above,
            top: config.top,
            pinned: config.pinned.clone(),
            endpoint,
        })
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
        assert_eq!((config.limits.rounds, config.limits.tokens), (10, 100_000));
        assert_eq!(config.memory.turns, 5);
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
