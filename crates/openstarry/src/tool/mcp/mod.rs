//! MCP servers as tools, named `mcp__<server>__<tool>`.

mod bounded;
mod content;

use super::builtin::{Group, kept_variables};
use super::{Registry, Risk, Tool, ToolContext, ToolError, ToolOutcome, ToolSpec};
use bounded::BoundedLines;
use futures_util::future::BoxFuture;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{CallToolRequestParams, ToolAnnotations};
use rmcp::service::{NotificationContext, Peer, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::Notify;

/// How long a server may take to start and to tell its tools.
const START: Duration = Duration::from_secs(60);
const MAX_MESSAGE: usize = 16 << 20;
const MAX_TOOLS: usize = 2000;

/// How to reach a server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// A program that speaks MCP on its standard input and output.
    #[serde(default)]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its variables, beside the few that every program gets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Or the address of a server that speaks MCP over HTTP.
    #[serde(default)]
    pub url: Option<String>,
    /// The environment variable with the token for that address.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The risk of all its tools, in place of what the server says of them.
    #[serde(default)]
    pub risk: Option<Risk>,
    /// The tools to offer; all of them when left out.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

/// Why a server is not there.
#[derive(Debug, thiserror::Error)]
#[error("MCP server {server}: {why}")]
pub struct McpError {
    server: String,
    why: String,
}

/// A running connection. Dropping it ends the server that was started for it.
pub struct McpServer {
    _service: RunningService<RoleClient, Handler>,
    _group: Option<Group>,
    refresh: tokio::task::JoinHandle<()>,
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.refresh.abort();
    }
}

impl McpServer {
    /// Connects, and puts the server's tools into the registry. When the server
    /// says that they changed, the registry changes with them.
    pub async fn connect(
        name: &str,
        config: &McpConfig,
        registry: &Registry,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, McpError> {
        let failed = |why: String| McpError {
            server: name.into(),
            why,
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(fits) || name.contains("__") {
            return Err(failed(
                "want a name of letters, digits, - and single _".into(),
            ));
        }
        let changed = Arc::new(Notify::new());
        let handler = Handler(Arc::clone(&changed));
        let start = async {
            match (&config.command, &config.url) {
                (Some(command), None) => {
                    let (service, group) = spawn(command, config, handler).await?;
                    Ok((service, Some(group)))
                }
                (None, Some(url)) => Ok((dial(url, config, handler, env).await?, None)),
                _ => Err("want either a command or a url".into()),
            }
        };
        let (service, group) = tokio::time::timeout(START, start)
            .await
            .map_err(|_| failed(format!("did not start within {} s", START.as_secs())))?
            .map_err(failed)?;
        let source = Source {
            name: name.into(),
            config: config.clone(),
            peer: service.peer().clone(),
            registry: registry.clone(),
        };
        source.load().await.map_err(failed)?;
        let refresh = tokio::spawn(async move {
            loop {
                changed.notified().await;
                if let Err(error) = source.load().await {
                    tracing::warn!(
                        server = source.name,
                        error,
                        "the tools could not be read anew"
                    );
                }
            }
        });
        Ok(Self {
            _service: service,
            _group: group,
            refresh,
        })
    }
}

async fn spawn(
    command: &str,
    config: &McpConfig,
    handler: Handler,
) -> Result<(RunningService<RoleClient, Handler>, Group), String> {
    let mut child = Command::new(command)
        .args(&config.args)
        .env_clear()
        .envs(kept_variables())
        .envs(&config.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{command}: {error}"))?;
    let group = Group::of(&child);
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("no pipes".into());
    };
    // Reaps the program when it ends; the group kills it.
    tokio::spawn(async move { child.wait().await });
    let transport = (BoundedLines::new(output, MAX_MESSAGE), input);
    let service = handler
        .serve(transport)
        .await
        .map_err(|error| error.to_string())?;
    Ok((service, group))
}

async fn dial(
    url: &str,
    config: &McpConfig,
    handler: Handler,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<RunningService<RoleClient, Handler>, String> {
    let mut settings =
        StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE);
    if let Some(variable) = &config.key_env {
        let token = env(variable).ok_or_else(|| format!("no token: set {variable}"))?;
        settings = settings.auth_header(token);
    }
    let transport = StreamableHttpClientTransport::from_config(settings);
    handler
        .serve(transport)
        .await
        .map_err(|error| error.to_string())
}

struct Handler(Arc<Notify>);

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.notify_one();
    }
}

/// Where a server's tools come from and go to.
struct Source {
    name: String,
    config: McpConfig,
    peer: Peer<RoleClient>,
    registry: Registry,
}

impl Source {
    async fn load(&self) -> Result<(), String> {
        let list = tokio::time::timeout(START, self.list());
        let tools = list
            .await
            .map_err(|_| "did not tell its tools".to_string())??;
        let prefix = format!("mcp__{}__", self.name);
        let wanted = |tool: &rmcp::model::Tool| match &self.config.tools {
            None => true,
            Some(names) => names.iter().any(|name| *name == tool.name),
        };
        let mut fresh: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in tools.into_iter().filter(wanted) {
            let made = self.tool(&prefix, tool);
            // One bad schema must not cost the other tools.
            let trial = Registry::new();
            match trial.add(vec![Arc::clone(&made)]) {
                Ok(()) => fresh.push(made),
                Err(error) => tracing::warn!(server = self.name, %error, "a tool was left out"),
            }
        }
        self.registry
            .replace(|name| name.starts_with(&prefix), fresh)
            .map_err(|error| error.to_string())
    }

    async fn list(&self) -> Result<Vec<rmcp::model::Tool>, String> {
        let mut tools = Vec::new();
        let mut cursor = None;
        loop {
            let params = rmcp::model::PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_tools(Some(params)).await;
            let page = page.map_err(|error| error.to_string())?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if tools.len() > MAX_TOOLS {
                return Err(format!("over {MAX_TOOLS} tools"));
            }
            if cursor.is_none() {
                return Ok(tools);
            }
        }
    }

    fn tool(&self, prefix: &str, tool: rmcp::model::Tool) -> Arc<dyn Tool> {
        let risk = self
            .config
            .risk
            .unwrap_or_else(|| risk(tool.annotations.as_ref()));
        let schema = Value::Object(tool.input_schema.as_ref().clone());
        let description = tool.description.as_deref().or(tool.title.as_deref());
        Arc::new(McpTool {
            spec: ToolSpec::new(
                &format!("{prefix}{}", tool.name),
                description.unwrap_or_default(),
                risk,
                schema,
            ),
            remote: tool.name.into_owned(),
            peer: self.peer.clone(),
        })
    }
}

/// What a server says of a tool. One that says nothing counts as destructive:
/// that is the protocol's own default, and the gate fails closed.
fn risk(hints: Option<&ToolAnnotations>) -> Risk {
    let read_only = hints.and_then(|hints| hints.read_only_hint);
    let destructive = hints.and_then(|hints| hints.destructive_hint);
    match (read_only, destructive) {
        (Some(true), _) => Risk::Safe,
        (_, Some(false)) => Risk::Moderate,
        _ => Risk::Destructive,
    }
}

struct McpTool {
    spec: ToolSpec,
    remote: String,
    peer: Peer<RoleClient>,
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let mut params = CallToolRequestParams::new(self.remote.clone());
            if let Value::Object(args) = args {
                params = params.with_arguments(args);
            }
            let answer = self.peer.call_tool(params).await.map_err(ToolError::new)?;
            let failed = answer.is_error == Some(true);
            let segments = content::segments(answer);
            match failed {
                true => Err(ToolError(crate::segment::joined_text(&segments))),
                false => Ok(segments),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_without_hints_counts_as_destructive() {
        let mut hints = ToolAnnotations::default();
        assert_eq!(risk(None), Risk::Destructive);
        assert_eq!(risk(Some(&hints)), Risk::Destructive);
        hints.destructive_hint = Some(false);
        assert_eq!(risk(Some(&hints)), Risk::Moderate);
        hints.read_only_hint = Some(true);
        assert_eq!(risk(Some(&hints)), Risk::Safe);
    }

    #[tokio::test]
    async fn a_bad_name_or_address_is_told() {
        let registry = Registry::new();
        for (name, command) in [
            ("a b", "true"),
            ("a__b", "true"),
            ("ok", "/nonexistent/program"),
        ] {
            let config = McpConfig {
                command: Some(command.into()),
                ..McpConfig::default()
            };
            let made = McpServer::connect(name, &config, &registry, &|_| None).await;
            assert!(made.is_err(), "{name}");
        }
    }
}
