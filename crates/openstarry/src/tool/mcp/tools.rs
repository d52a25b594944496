//! A server's tools and resources as tools of ours.

use super::connection::Connection;
use super::handler::while_waiting;
use super::{MAX_TOOLS, START, content};
use crate::segment::ContentSegment;
use crate::tool::{Registry, Risk, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, PaginatedRequestParams, ReadResourceRequestParams, ToolAnnotations,
};
use serde_json::{Value, json};
use std::sync::Arc;

const LIST_RESOURCES: &str = "list_resources";
const READ_RESOURCE: &str = "read_resource";
const MAX_RESOURCES: usize = 500;

/// Puts what the server has now in the place of what it had.
pub(super) async fn load(connection: &Arc<Connection>, registry: &Registry) -> Result<(), String> {
    let listed = tokio::time::timeout(START, list(connection)).await;
    let (tools, resources) = listed.map_err(|_| "did not tell its tools".to_string())??;
    let prefix = format!("mcp__{}__", connection.name);
    let own = |name: &str| tools.iter().any(|tool| tool.name == name);
    let mut made: Vec<McpTool> = Vec::new();
    if resources {
        let names = [LIST_RESOURCES, READ_RESOURCE];
        let free = names.into_iter().filter(|name| !own(name));
        made.extend(free.map(|name| resource_tool(connection, &prefix, name)));
    }
    made.extend(
        tools
            .into_iter()
            .map(|tool| remote_tool(connection, &prefix, tool)),
    );
    let wanted = |tool: &McpTool| match &connection.config.tools {
        None => true,
        Some(names) => names.contains(&tool.remote),
    };
    let mut fresh: Vec<Arc<dyn Tool>> = Vec::new();
    for tool in made.into_iter().filter(wanted) {
        let tool: Arc<dyn Tool> = Arc::new(tool);
        // One bad schema must not cost the other tools.
        let trial = Registry::new();
        match trial.add(vec![Arc::clone(&tool)]) {
            Ok(()) => fresh.push(tool),
            Err(error) => tracing::warn!(server = connection.name, %error, "a tool was left out"),
        }
    }
    registry
        .replace(|name| name.starts_with(&prefix), fresh)
        .map_err(|error| error.to_string())
}

/// The server's tools, and whether it has resources.
async fn list(connection: &Connection) -> Result<(Vec<rmcp::model::Tool>, bool), String> {
    let service = connection.service().await?;
    let can = service.peer_info().map(|info| info.capabilities.clone());
    let can = can.unwrap_or_default();
    let resources = can.resources.is_some();
    let mut tools = Vec::new();
    let mut cursor = None;
    while can.tools.is_some() {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = service.list_tools(Some(params)).await;
        let page = page.map_err(|error| error.to_string())?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if tools.len() > MAX_TOOLS {
            return Err(format!("over {MAX_TOOLS} tools"));
        }
        if cursor.is_none() {
            break;
        }
    }
    Ok((tools, resources))
}

fn remote_tool(connection: &Arc<Connection>, prefix: &str, tool: rmcp::model::Tool) -> McpTool {
    let given = connection.config.risk;
    let risk = given.unwrap_or_else(|| risk(tool.annotations.as_ref()));
    let schema = Value::Object(tool.input_schema.as_ref().clone());
    let description = tool.description.as_deref().or(tool.title.as_deref());
    let name = format!("{prefix}{}", tool.name);
    McpTool {
        spec: ToolSpec::new(&name, description.unwrap_or_default(), risk, schema),
        remote: tool.name.into_owned(),
        connection: Arc::clone(connection),
        does: Does::Call,
    }
}

fn resource_tool(connection: &Arc<Connection>, prefix: &str, name: &str) -> McpTool {
    let server = &connection.name;
    let (does, about, schema) = match name {
        READ_RESOURCE => (
            Does::ReadResource,
            format!("Read a resource of {server} by its URI."),
            json!({
                "type": "object", "required": ["uri"],
                "properties": { "uri": { "type": "string", "description": "The URI, as list_resources tells it." } },
            }),
        ),
        _ => (
            Does::ListResources,
            format!("List the resources of {server}: their URIs, names and what they are."),
            json!({ "type": "object", "properties": {} }),
        ),
    };
    let risk = connection.config.risk.unwrap_or(Risk::Safe);
    McpTool {
        spec: ToolSpec::new(&format!("{prefix}{name}"), &about, risk, schema),
        remote: name.into(),
        connection: Arc::clone(connection),
        does,
    }
}

/// What a server says of a tool. One that says nothing counts as destructive:
/// that is the protocol's own default, and the gate fails closed.
pub(super) fn risk(hints: Option<&ToolAnnotations>) -> Risk {
    let read_only = hints.and_then(|hints| hints.read_only_hint);
    let destructive = hints.and_then(|hints| hints.destructive_hint);
    match (read_only, destructive) {
        (Some(true), _) => Risk::Safe,
        (_, Some(false)) => Risk::Moderate,
        _ => Risk::Destructive,
    }
}

/// What a tool does at its server.
enum Does {
    Call,
    ListResources,
    ReadResource,
}

struct McpTool {
    spec: ToolSpec,
    remote: String,
    connection: Arc<Connection>,
    does: Does,
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, context: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            // One that died takes its time to start again.
            let starting = || context.progress.tell("the server starts again");
            let service = while_waiting(self.connection.service(), starting).await;
            let service = service.map_err(ToolError)?;
            // Dropping the call tells the server that nobody waits any more.
            let calls = &self.connection.calls;
            let _underway = calls.begin(&context.session, &context.progress);
            let output = match self.does {
                Does::Call => {
                    let mut params = CallToolRequestParams::new(self.remote.clone());
                    if let Value::Object(args) = args {
                        params = params.with_arguments(args);
                    }
                    let answer = service.call_tool(params).await;
                    answer.map(|answer| {
                        let failed = answer.is_error == Some(true);
                        let segments = content::segments(answer);
                        match failed {
                            true => Err(ToolError(crate::segment::joined_text(&segments))),
                            false => Ok(segments),
                        }
                    })
                }
                Does::ListResources => {
                    let resources = service.list_all_resources().await;
                    let templates = service.list_all_resource_templates().await;
                    let templates = templates.unwrap_or_default();
                    resources.map(|resources| Ok(vec![rows(resources, templates)]))
                }
                Does::ReadResource => {
                    let uri = args.get("uri").and_then(Value::as_str).unwrap_or_default();
                    let read = service
                        .read_resource(ReadResourceRequestParams::new(uri))
                        .await;
                    read.map(|read| Ok(read.contents.into_iter().map(content::resource).collect()))
                }
            };
            match output {
                Ok(output) => output,
                Err(error) => {
                    let why = error.to_string();
                    Err(ToolError(self.connection.failure(&service, why).await))
                }
            }
        })
    }
}

fn rows(
    resources: Vec<rmcp::model::Resource>,
    templates: Vec<rmcp::model::ResourceTemplate>,
) -> ContentSegment {
    let row = |uri: &str, name: &str, kind: Option<&String>, about: Option<&String>| {
        let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
        let about = about.map(|about| format!(": {about}")).unwrap_or_default();
        format!("{uri}  {name}{kind}{about}")
    };
    let whole = resources.len() + templates.len();
    let resources = resources.iter().map(|r| {
        row(
            &r.uri,
            &r.name,
            r.mime_type.as_ref(),
            r.description.as_ref(),
        )
    });
    let templates = templates.iter().map(|t| {
        row(
            &t.uri_template,
            &t.name,
            t.mime_type.as_ref(),
            t.description.as_ref(),
        )
    });
    let mut rows: Vec<String> = resources.chain(templates).take(MAX_RESOURCES).collect();
    match whole {
        0 => rows.push("[there are none]".into()),
        whole if whole > MAX_RESOURCES => {
            rows.push(format!("[cut: {} more]", whole - MAX_RESOURCES))
        }
        _ => {}
    }
    ContentSegment::text(rows.join("\n"))
}
