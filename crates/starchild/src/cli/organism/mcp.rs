//! `organism mcp`: what a gateway may send, as tools for an MCP client on
//! standard input and output. A call is a conversation of its own.

use super::run::log_to_stderr;
use super::{FileArgument, McpArguments};
use crate::organism::config::load;
use agentserver::payload::Canonical;
use agentserver::system::{Huh, SystemError};
use agentserver::{Delivered, Offer, Pump, SendError};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;

/// Answers of one call; more are left out.
const ANSWERS: usize = 256;

pub async fn run(arguments: McpArguments) -> Result<(), String> {
    log_to_stderr()?;
    let McpArguments {
        file: FileArgument { file: path },
        gateway,
    } = arguments;
    let (file, organism) = load(&path).map_err(|error| error.to_string())?;
    let first = || {
        file.gateways
            .first()
            .map(|gateway| gateway.name.value.clone())
    };
    let gateway = gateway.or_else(first).ok_or("the file has no gateway")?;
    let offers = organism.offers(&gateway);
    if offers.is_empty() {
        return Err(format!(
            "no peer of the gateway {gateway:?} accepts anything"
        ));
    }
    let pump = Pump::start(organism, file.settings());
    let server = Server {
        name: file.organism.clone(),
        pump: pump.clone(),
        gateway,
        offers: named(offers),
    };
    let streams = (tokio::io::stdin(), tokio::io::stdout());
    let running = server.serve(streams).await;
    let running = running.map_err(|error| error.to_string())?;
    running.waiting().await.map_err(|error| error.to_string())?;
    pump.drain().await.map_err(|error| error.to_string())
}

struct Server {
    name: String,
    pump: Pump,
    gateway: String,
    offers: Vec<(String, Offer)>,
}

/// The payload's name, or, where several peers accept it, the peer's before it.
fn named(offers: Vec<Offer>) -> Vec<(String, Offer)> {
    let names: Vec<_> = offers
        .iter()
        .map(|offer| offer.schema.name.clone())
        .collect();
    let is_shared = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let named = offers.into_iter().map(|offer| {
        let payload = &offer.schema.name;
        let name = match (&offer.to, is_shared(payload)) {
            (Some(peer), true) => format!("{peer}_{payload}"),
            _ => payload.clone(),
        };
        let usable = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        (name.chars().map(usable).take(64).collect(), offer)
    });
    named.collect()
}

impl Server {
    async fn call(&self, name: &str, arguments: Value) -> Result<CallToolResult, ErrorData> {
        let found = self.offers.iter().find(|(known, _)| known == name);
        let Some((_, offer)) = found else {
            let known: Vec<_> = self.offers.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("there is no tool {name:?}; there are: {}", known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let sent = match offer.schema.json_to_xml(&arguments) {
            Ok(xml) => self.answers(offer.to.as_deref(), &xml).await,
            Err(error) => return Ok(failed(error.to_string())),
        };
        Ok(match sent {
            Ok(answers) => self.result(&answers),
            Err(SendError::Refused(payload)) => failed(words(&payload)),
            Err(error) => failed(error.to_string()),
        })
    }

    async fn answers(&self, to: Option<&str>, xml: &str) -> Result<Vec<Delivered>, SendError> {
        let conversation = self.pump.open(&self.gateway)?;
        conversation.send_xml(to, xml).await?;
        let mut answers = Vec::new();
        while let Some(answer) = conversation.next().await {
            answers.push(answer);
            if answers.len() == ANSWERS {
                tracing::warn!(limit = "answers", "a call had more answers than are given");
                break;
            }
        }
        Ok(answers)
    }

    fn result(&self, answers: &[Delivered]) -> CallToolResult {
        let organism = self.pump.organism();
        let content = answers.iter().map(|answer| {
            let payload = &answer.payload;
            let known = organism.payload_type(payload.namespace(), payload.root());
            let fields = known.and_then(|known| known.xml_to_json(payload).ok());
            match fields {
                Some(fields) => {
                    ContentBlock::text(serde_json::json!({ payload.root(): fields }).to_string())
                }
                None => ContentBlock::text(payload.xml()),
            }
        });
        let is_fault = |answer: &Delivered| &*answer.from == agentserver::system::NAME;
        match answers.iter().any(is_fault) {
            true => CallToolResult::error(content.collect()),
            false => CallToolResult::success(content.collect()),
        }
    }
}

/// What is wrong, without the XML around it.
fn words(refusal: &Canonical) -> String {
    let huh = refusal.read::<Huh>().map(|huh| huh.error);
    let error = huh.or_else(|_| refusal.read::<SystemError>().map(|error| error.message));
    error.unwrap_or_else(|_| refusal.xml().to_owned())
}

fn failed(words: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words)])
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let about = Implementation::new(self.name.clone(), env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(about)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.offers.iter().map(|(name, offer)| {
            let about = format!("{} {}", offer.schema.description, offer.description);
            let schema = match offer.schema.json_schema() {
                Value::Object(schema) => schema,
                _ => serde_json::Map::new(),
            };
            Tool::new(name.clone(), about.trim().to_owned(), schema)
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        tokio::select! {
            called = self.call(&request.name, arguments) => called.map(Into::into),
            () = context.ct.cancelled() => Ok(failed("cancelled".to_owned()).into()),
        }
    }
}
