//! A tool of an MCP server behind a listener: the payload's fields are its
//! arguments, the words it gives back are the answer.

use super::{Types, accept_all};
use agentserver::payload::{Canonical, Schema, Shape};
use agentserver::{HandlerError, HandlerMetadata, Listener, Reply, Result};
use openstarry::segment::joined_text;
use openstarry::session::Expenses;
use openstarry::tool::mcp::{McpConfig, McpError, McpHost, McpServer};
use openstarry::tool::{Principal, Progress, Registry, ToolContext};
use serde::Deserialize;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// The file's words for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpFile {
    /// The server: `command` and `args`, or `url`.
    server: McpConfig,
    /// The tool; the payload's name unless said.
    #[serde(default)]
    tool: Option<String>,
    /// The payload type of the answer; its words go into the first text field.
    answer: String,
}

struct Caller {
    file: McpFile,
    types: Types,
    answer: Schema,
    field: String,
    /// Connected when the first message comes; a server that dies is started again.
    connection: Mutex<Option<Arc<ConnectedServer>>>,
}

struct ConnectedServer {
    tools: Registry,
    _server: McpServer,
}

const SERVER: &str = "server";

impl McpFile {
    /// The program that has to be on this machine.
    pub fn program(&self) -> Option<&str> {
        self.server.command.as_deref()
    }

    pub fn attach(
        &self,
        accepts: Vec<Schema>,
        listener: Listener,
        types: &Types,
    ) -> std::result::Result<Listener, String> {
        let no_type = || format!("the payload {:?} does not exist", self.answer);
        let answer = types
            .get(&self.answer)
            .ok_or_else(no_type)?
            .schema()
            .clone();
        let mut fields = answer.fields().iter();
        let field = fields.find(|field| field.shape == Shape::Text);
        let field = field.map(|field| field.name.clone());
        let field = field.ok_or_else(|| format!("{} has no text field", self.answer))?;
        let caller = Arc::new(Caller {
            file: self.clone(),
            types: types.clone(),
            answer: answer.clone(),
            field,
            connection: Mutex::default(),
        });
        let handler = move |payload, metadata| {
            let caller = caller.clone();
            async move { caller.call(payload, metadata).await }
        };
        Ok(accept_all(accepts, listener.answers(answer), handler))
    }
}

impl Caller {
    async fn call(&self, payload: Canonical, metadata: HandlerMetadata) -> Result<Reply> {
        let known = self
            .types
            .get(payload.root())
            .ok_or("the payload has no type")?;
        let arguments = known.xml_to_json(&payload)?;
        let tool = self.file.tool.as_deref().unwrap_or(payload.root());
        let name = format!("mcp__{SERVER}__{tool}");
        let connection = self.connected().await?;
        let tools = connection.tools.snapshot();
        let tool = tools.get(&name).ok_or_else(|| {
            let prefix = format!("mcp__{SERVER}__");
            let names = tools.names().map(|name| name.trim_start_matches(&prefix));
            format!(
                "the server has no tool {tool:?}; it has: {}",
                names.collect::<Vec<_>>().join(", ")
            )
        })?;
        tool.check(&arguments).map_err(HandlerError::telling)?;
        let context = ToolContext {
            session: metadata.thread_id.to_string(),
            principal: Principal::Agent,
            todos: Arc::default(),
            found: Arc::default(),
            expenses: Expenses::default(),
            progress: Progress::default(),
        };
        // Why a tool could not do it is for whoever asked.
        let called = tool.tool().call(arguments, &context).await;
        let said = joined_text(&called.map_err(HandlerError::telling)?);
        let fields = serde_json::json!({ self.field.as_str(): said });
        Ok(Reply::Text(self.answer.json_to_xml(&fields)?.into_bytes()))
    }

    async fn connected(&self) -> Result<Arc<ConnectedServer>> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = &*held {
            return Ok(connection.clone());
        }
        let (config, runtime) = (self.file.server.clone(), Handle::current());
        // What connects may not change threads; a handler may.
        let connecting = tokio::task::spawn_blocking(move || {
            let tools = Registry::new();
            let variable = |name: &str| std::env::var(name).ok();
            // Nobody is asked here: what a server asks for is denied.
            let host = McpHost::default();
            let connect = McpServer::connect(SERVER, &config, &tools, host, &variable);
            let server = runtime.block_on(connect)?;
            Ok::<_, McpError>(ConnectedServer {
                tools,
                _server: server,
            })
        });
        let connection = Arc::new(connecting.await??);
        *held = Some(connection.clone());
        Ok(connection)
    }
}
