//! MCP servers as tools, named `mcp__<server>__<tool>`.

mod bounded;
mod connection;
mod content;
mod handler;
mod tools;

pub use handler::McpHost;

use super::{Registry, Risk};
use crate::segment::ContentSegment;
use connection::Connection;
use rmcp::model::GetPromptRequestParams;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

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
    connection: Arc<Connection>,
    refresh: tokio::task::JoinHandle<()>,
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.refresh.abort();
    }
}

/// A prompt that a server offers to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpPrompt {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Its arguments, and whether they are required.
    pub arguments: Vec<(String, bool)>,
}

impl McpServer {
    /// Connects, and puts the server's tools into the registry. When the server
    /// says that they changed, the registry changes with them.
    pub async fn connect(
        name: &str,
        config: &McpConfig,
        registry: &Registry,
        host: McpHost,
        env: &(dyn Fn(&str) -> Option<String> + Sync),
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
        let connection = Connection::new(name, config, host, env).map_err(failed)?;
        let connection = Arc::new(connection);
        connection.service().await.map_err(failed)?;
        tools::load(&connection, registry).await.map_err(failed)?;
        let refresh = {
            let (connection, registry) = (Arc::downgrade(&connection), registry.clone());
            let changed = connection.upgrade().map(|it| Arc::clone(&it.changed));
            tokio::spawn(async move {
                let Some(changed) = changed else { return };
                loop {
                    changed.notified().await;
                    let Some(connection) = connection.upgrade() else {
                        return;
                    };
                    if let Err(error) = tools::load(&connection, &registry).await {
                        let server = &connection.name;
                        tracing::warn!(server, error, "the tools could not be read anew");
                    }
                }
            })
        };
        Ok(Self {
            connection,
            refresh,
        })
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// The prompts that the server offers to people.
    pub async fn prompts(&self) -> Result<Vec<McpPrompt>, McpError> {
        let listed = async {
            let service = self.connection.service().await?;
            let has = service.peer_info();
            if has.is_none_or(|info| info.capabilities.prompts.is_none()) {
                return Ok(Vec::new());
            }
            let prompts = service.list_all_prompts().await;
            prompts.map_err(|error| error.to_string())
        };
        let prompts = self.within(listed).await?;
        let arguments = |prompt: &rmcp::model::Prompt| {
            let arguments = prompt.arguments.iter().flatten();
            let pair = |a: &rmcp::model::PromptArgument| (a.name.clone(), a.required == Some(true));
            arguments.map(pair).collect()
        };
        let prompts = prompts.into_iter().take(MAX_TOOLS);
        Ok(prompts
            .map(|prompt| McpPrompt {
                arguments: arguments(&prompt),
                about: prompt.description.or(prompt.title).unwrap_or_default(),
                name: prompt.name,
            })
            .collect())
    }

    /// What a prompt says, to be said to the model.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Vec<ContentSegment>, McpError> {
        let asked = async {
            let service = self.connection.service().await?;
            let params = GetPromptRequestParams::new(name).with_arguments(arguments);
            let prompt = service.get_prompt(params).await;
            prompt.map_err(|error| error.to_string())
        };
        let prompt = self.within(asked).await?;
        let messages = prompt.messages.into_iter();
        Ok(messages
            .map(|message| content::segment(message.content))
            .collect())
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, String>>,
    ) -> Result<T, McpError> {
        let done = tokio::time::timeout(START, work).await;
        let done = done.map_err(|_| "did not answer in time".to_owned());
        done.flatten().map_err(|why| McpError {
            server: self.connection.name.clone(),
            why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::tools::risk;
    use super::*;
    use rmcp::model::ToolAnnotations;

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
            let host = McpHost::default();
            let made = McpServer::connect(name, &config, &registry, host, &|_| None).await;
            assert!(made.is_err(), "{name}");
        }
    }
}
