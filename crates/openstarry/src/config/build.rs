//! Makes an agent of its settings.

use super::{AgentConfig, ConfigError, FsAccess, Strategy, seconds, wrong};
use crate::approval::{Approval, Consents, DenyAll, Effect, Gate, Grants, Pattern, Policy, Rule};
use crate::provider::{ProviderConfig, USUAL_CONTEXT};
use crate::session::{Agent, Audit, Limits, LogAudit, Settings, Window};
use crate::tool::builtin::can_confine;
use crate::tool::builtin::{
    HttpGet, SearchTools, ShellConfig, ShellFiles, ShellRun, TimeNow, TodoTool, Workspace,
};
use crate::tool::mcp::{McpHost, McpServer};
use crate::tool::retrieval::{EmbeddingsEndpoint, Selector};
use crate::tool::{Registry, Tool};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What an agent keeps in its folder.
const CONSENTS: &str = "consents";
const GRANTS: &str = "always.json";
const UNDO: &str = "undo";

const UNCONFINED: &str = "tools.shell: this system has no Landlock, so programs are not kept inside \
    the workspace (confine: false says that you know)";

const OWN_FOLDER: &str = "tools.shell: the workspace holds the agent's own folder, so programs can \
    change what it is allowed to do (choose another workspace, or another STARCHILD_HOME)";

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
pub struct AgentDependencies<'a> {
    /// Says yes to dangerous calls.
    pub gate: Arc<dyn Gate>,
    /// Keeps audit lines.
    pub audit: Arc<dyn Audit>,
    /// How long a call waits for a yes; for ever when there is no limit.
    pub approval_timeout: Option<Duration>,
    /// Where the agent keeps what outlives it: calls that wait for a yes, what
    /// was allowed for good, what can be undone. Without it, that ends with it.
    pub folder: Option<PathBuf>,
    /// Tools of the program that the agent lives in, besides those of its file.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Looks up environment variables.
    pub env: &'a (dyn Fn(&str) -> Option<String> + Sync),
}

impl Default for AgentDependencies<'_> {
    fn default() -> Self {
        Self {
            gate: Arc::new(DenyAll),
            audit: Arc::new(LogAudit),
            approval_timeout: Approval::default().timeout,
            folder: None,
            tools: Vec::new(),
            env: &|name| std::env::var(name).ok(),
        }
    }
}

impl AgentConfig {
    /// Makes the agent and starts its MCP servers. A server that does not start
    /// is a warning: the agent works without it.
    pub async fn build(&self, dependencies: AgentDependencies<'_>) -> Result<Built, ConfigError> {
        let provider = self.providers.build(&dependencies.env)?;
        let approval = self.approval(&dependencies)?;
        let registry = Registry::new();
        let selector = self.selector(dependencies.env)?;
        let mut tools = self.builtin(dependencies.folder.as_deref(), &approval.policy)?;
        tools.extend(dependencies.tools.iter().cloned());
        tools.push(Arc::new(SearchTools::new(
            registry.clone(),
            selector.clone(),
        )));
        registry.add(tools).map_err(|error| wrong("tools", error))?;
        let mut servers = Vec::new();
        let mut warnings = Vec::new();
        if self.tools.shell.as_ref().is_some_and(|shell| shell.confine) && !can_confine() {
            warnings.push(UNCONFINED.to_owned());
        }
        let own = dependencies.folder.as_deref();
        if self.tools.shell.is_some() && own.is_some_and(|own| self.own_folder(own).is_some()) {
            warnings.push(OWN_FOLDER.to_owned());
        }
        let host = McpHost {
            approval: approval.clone(),
            provider: Some(Arc::clone(&provider)),
            roots: vec![self.workspace.clone()],
        };
        let started = self.tools.mcp.iter().map(|(name, config)| {
            McpServer::connect(name, config, &registry, host.clone(), dependencies.env)
        });
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
            window: self.window(),
            summarize: self.memory.strategy == Strategy::Summary,
            tool_timeout: seconds("tools.timeout_seconds", self.tools.timeout_seconds)?,
            selector,
            approval,
            audit: dependencies.audit,
            hooks: Vec::new(),
        };
        Ok(Built {
            agent: Agent::new(provider, registry, settings),
            servers,
            warnings,
        })
    }

    fn window(&self) -> Window {
        // Of a chain the smallest: any of them may be asked.
        let contexts = self.providers.iter().map(ProviderConfig::context);
        let window = Window::of_context(contexts.min().unwrap_or(USUAL_CONTEXT));
        Window {
            tokens: self.memory.tokens.unwrap_or(window.tokens),
            turns: self.memory.turns,
        }
    }

    fn approval(&self, dependencies: &AgentDependencies<'_>) -> Result<Approval, ConfigError> {
        let mut approval = Approval {
            policy: self.confirm.policy()?,
            gate: Arc::clone(&dependencies.gate),
            timeout: dependencies.approval_timeout,
            ..Approval::default()
        };
        if let Some(folder) = &dependencies.folder {
            approval.policy.rules.extend(self.keep_own(folder));
            let failed = |name: &str, error: std::io::Error| {
                let path = folder.join(name);
                let why = error.to_string();
                ConfigError::File { path, why }
            };
            approval.consents =
                Consents::open(&folder.join(CONSENTS)).map_err(|e| failed(CONSENTS, e))?;
            approval.grants = Grants::open(&folder.join(GRANTS)).map_err(|e| failed(GRANTS, e))?;
        }
        Ok(approval)
    }

    /// The rule that keeps the agent's own folder from its file tools, where the workspace holds it:
    /// what it may do, and what it is told it may, are written down there.
    fn keep_own(&self, folder: &Path) -> Option<Rule> {
        let inside = self.own_folder(folder)?;
        let mut rule = Rule::new(Effect::Deny, Pattern::new("fs.*"));
        rule.args.insert("path".into(), Pattern::below(&inside));
        rule.reason = Some("The agent's own folder is not for its tools.".into());
        Some(rule)
    }

    /// The agent's own folder as seen from the workspace, where it is inside.
    fn own_folder(&self, folder: &Path) -> Option<String> {
        let folder = folder.canonicalize().ok()?;
        let inside = folder
            .strip_prefix(self.workspace.canonicalize().ok()?)
            .ok()?;
        Some(inside.to_string_lossy().into_owned())
    }

    fn builtin(
        &self,
        folder: Option<&Path>,
        policy: &Policy,
    ) -> Result<Vec<Arc<dyn Tool>>, ConfigError> {
        let config = &self.tools;
        let limit = seconds("tools.timeout_seconds", config.timeout_seconds)?;
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if config.fs != FsAccess::Off {
            let failed = |error: std::io::Error| {
                wrong(
                    "workspace",
                    format!("{}: {error}", self.workspace.display()),
                )
            };
            let workspace = Workspace::open(&self.workspace).map_err(failed)?;
            let mut workspace = workspace.with_policy(policy);
            if let Some(folder) = folder {
                workspace = workspace.with_journal(&folder.join(UNDO)).map_err(failed)?;
            }
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
                confine: shell.confine.then(|| ShellFiles {
                    read: shell.read.clone(),
                    write: shell.write.clone(),
                }),
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
