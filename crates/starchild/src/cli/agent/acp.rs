//! `starchild agent acp`: the same agent for editors, over the Agent Client
//! Protocol on standard input and output.

mod gate;
mod update;

use super::Failure;
use super::state::StateFolder;
use crate::backend::acp::lines;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::{ConnectionTo, schema as acp};
use agent_client_protocol::{Agent, Client, Error as ProtocolError};
use clap::Args;
use gate::AskEditor;
use openstarry::config::{AgentConfig, AgentDependencies, Built};
use openstarry::session::{EndReason, FileAudit, Session, SessionEvent, SessionState};
use openstarry::tool::mcp::McpConfig;
use runtime::CancellationToken;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What `acp` takes.
#[derive(Args)]
pub struct AcpArgs {
    /// The agent's file. Its workspace is the folder that the editor names.
    #[arg(long, short, default_value = "agent.yaml")]
    config: PathBuf,
}

/// Speaks with an editor until it hangs up.
pub async fn serve(args: AcpArgs) -> Result<ExitCode, Failure> {
    // What is wrong with the file is told before an editor waits for it.
    AgentConfig::load(&args.config)?;
    let served = Arc::new(Served {
        config: args.config,
        sessions: Mutex::default(),
    });
    let transport = lines::transport(tokio::io::stdout(), tokio::io::stdin());
    let (make, load, prompt, cancel) = (served.clone(), served.clone(), served.clone(), served);
    Agent
        .v1()
        .name("starchild")
        .on_receive_request(
            async |hello: acp::InitializeRequest, responder, _| {
                let prompts = acp::PromptCapabilities::new()
                    .image(true)
                    .embedded_context(true);
                let can = acp::AgentCapabilities::new()
                    .load_session(true)
                    .prompt_capabilities(prompts);
                let version = env!("CARGO_PKG_VERSION");
                // An editor that wants a newer one is told the newest there is.
                let spoken = hello.protocol_version.min(ProtocolVersion::V1);
                responder.respond(
                    acp::InitializeResponse::new(spoken)
                        .agent_capabilities(can)
                        .agent_info(acp::Implementation::new("starchild", version)),
                )
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::NewSessionRequest, responder, cx: ConnectionTo<Client>| {
                let (served, editor) = (make.clone(), cx.clone());
                // Its MCP servers take their time, and the editor may ask meanwhile.
                cx.spawn(async move {
                    let id = uuid::Uuid::new_v4().to_string();
                    let opened =
                        served.open(&editor, &id, false, &request.cwd, request.mcp_servers);
                    let opened = opened.await.map_err(told);
                    responder.respond_with_result(opened.map(|_| acp::NewSessionResponse::new(id)))
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::LoadSessionRequest, responder, cx: ConnectionTo<Client>| {
                let (served, editor) = (load.clone(), cx.clone());
                cx.spawn(async move {
                    let id = request.session_id.to_string();
                    let opened = served.open(&editor, &id, true, &request.cwd, request.mcp_servers);
                    let opened = opened.await.map_err(told);
                    let opened = opened.and_then(|said| {
                        update::replay(&said)
                            .into_iter()
                            .try_for_each(|update| tell(&editor, &id, update))
                    });
                    responder.respond_with_result(opened.map(|()| acp::LoadSessionResponse::new()))
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::PromptRequest, responder, cx: ConnectionTo<Client>| {
                let (served, editor) = (prompt.clone(), cx.clone());
                // Looked up here, so that a cancellation right behind it finds its turn.
                let found = served.find(&request.session_id.to_string());
                cx.spawn(async move {
                    let turn = match found {
                        Ok((open, cancelled)) => turn(&editor, &open, cancelled, request).await,
                        Err(error) => Err(error),
                    };
                    responder.respond_with_result(turn.map(acp::PromptResponse::new))
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notice: acp::CancelNotification, _| {
                if let Some(open) = cancel.sessions().get(&notice.session_id.to_string()) {
                    open.cancel();
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(transport)
        .await?;
    Ok(ExitCode::SUCCESS)
}

/// The sessions of one editor.
struct Served {
    config: PathBuf,
    sessions: Mutex<HashMap<String, Arc<Open>>>,
}

struct Open {
    /// Its MCP servers live as long as it does.
    _built: Built,
    session: Session,
    /// Ends the turns in hand. Later ones get another.
    cancellation: Mutex<CancellationToken>,
}

impl Open {
    fn cancellation(&self) -> MutexGuard<'_, CancellationToken> {
        let locked = self.cancellation.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel(&self) {
        std::mem::take(&mut *self.cancellation()).cancel();
    }
}

impl Served {
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Open>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session in the editor's folder, and gives what was said in it.
    async fn open(
        &self,
        editor: &ConnectionTo<Client>,
        id: &str,
        resumed: bool,
        folder: &Path,
        servers: Vec<acp::McpServer>,
    ) -> Result<openstarry::session::History, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let mut config = AgentConfig::load(&self.config).map_err(|error| said(&error))?;
        if !folder.is_absolute() {
            return Err("want an absolute folder to work in".into());
        }
        config.workspace = folder.into();
        for server in servers {
            let (name, server) = mcp_server(server)?;
            config.tools.mcp.insert(name, server);
        }
        let state_folder = StateFolder::open(&config.name, folder).map_err(|error| said(&error))?;
        let dependencies = AgentDependencies {
            gate: Arc::new(AskEditor::new(editor.clone(), id)),
            audit: Arc::new(FileAudit::new(&state_folder.audit())),
            folder: Some(state_folder.path().into()),
            approval_timeout: None,
            ..AgentDependencies::default()
        };
        let built = config
            .build(dependencies)
            .await
            .map_err(|error| said(&error))?;
        for warning in &built.warnings {
            tracing::warn!("{warning}");
        }
        let store = state_folder.sessions().map_err(|error| said(&error))?;
        let opened = match resumed {
            true => store.resume(Some(id)),
            false => store.create(id),
        };
        let (state, file): (SessionState, _) = opened.map_err(|error| said(&error))?;
        let history = state.history.clone();
        let open = Open {
            session: built.agent.session(state, Some(file)),
            _built: built,
            cancellation: Mutex::default(),
        };
        self.sessions().insert(id.into(), Arc::new(open));
        Ok(history)
    }

    /// A session, and what ends a turn that begins now.
    fn find(&self, id: &str) -> Result<(Arc<Open>, CancellationToken), ProtocolError> {
        let open = self.sessions().get(id).cloned();
        let open = open.ok_or_else(|| told(format!("there is no session {id}")))?;
        let cancelled = open.cancellation().clone();
        Ok((open, cancelled))
    }
}

/// Answers a prompt, and tells the editor what happens meanwhile.
async fn turn(
    editor: &ConnectionTo<Client>,
    open: &Open,
    cancelled: CancellationToken,
    request: acp::PromptRequest,
) -> Result<acp::StopReason, ProtocolError> {
    let id = request.session_id.to_string();
    let words = request.prompt.into_iter().map(update::segment).collect();
    let mut turn = open
        .session
        .send(words)
        .map_err(|error| told(error.to_string()))?;
    loop {
        let event = tokio::select! {
            () = cancelled.cancelled() => {
                // What comes next begins where this one ended.
                turn.cancel().await;
                return Ok(acp::StopReason::Cancelled);
            }
            event = turn.next() => event,
        };
        let Some(event) = event else {
            return Err(told("the session ended".into()));
        };
        if let SessionEvent::End(outcome) = &event {
            if let Some(update) = update::ended(&outcome.end) {
                tell(editor, &id, update)?;
            }
            return match &outcome.end {
                EndReason::Answered | EndReason::Command => Ok(acp::StopReason::EndTurn),
                EndReason::Rounds(_) => Ok(acp::StopReason::MaxTurnRequests),
                EndReason::Cancelled => Ok(acp::StopReason::Cancelled),
                EndReason::Incomplete(_) => Ok(acp::StopReason::MaxTokens),
                EndReason::Refused(_) => Ok(acp::StopReason::Refusal),
                EndReason::Stopped(why) | EndReason::Budget(why) | EndReason::Failed(why) => {
                    Err(told(why.clone()))
                }
            };
        }
        if let Some(update) = update::of(&event) {
            tell(editor, &id, update)?;
        }
    }
}

fn tell(
    editor: &ConnectionTo<Client>,
    session: &str,
    update: acp::SessionUpdate,
) -> Result<(), ProtocolError> {
    editor.send_notification(acp::SessionNotification::new(session.to_owned(), update))
}

/// An error whose words the person at the editor sees.
fn told(why: String) -> ProtocolError {
    let mut error = ProtocolError::internal_error();
    error.message = why;
    error
}

fn mcp_server(server: acp::McpServer) -> Result<(String, McpConfig), String> {
    let plain = |name: &str| -> String {
        let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        name.chars().map(fits).collect()
    };
    match server {
        acp::McpServer::Stdio(server) => {
            let env = server.env.into_iter();
            let config = McpConfig {
                command: Some(server.command.to_string_lossy().into_owned()),
                args: server.args,
                env: env
                    .map(|variable| (variable.name, variable.value))
                    .collect(),
                ..McpConfig::default()
            };
            Ok((plain(&server.name), config))
        }
        _ => Err("only MCP servers that are programs are started for an editor".into()),
    }
}
