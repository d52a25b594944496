//! A small agent that speaks the Agent Client Protocol, for the tests of the `acp` backend.
//!
//! What it does depends on a word in the prompt's last line: `die` ends it, `hang` never answers,
//! `touch PATH` asks for a permission to edit and tells the outcome, `offers` tells what the client
//! offers, `read PATH` reads a file through the client although it offers no such thing; else it repeats the line, with
//! its process, its session and how many prompts that session had.

use agent_client_protocol::{
    Agent, ByteStreams, Client, Result,
    v1::{
        ConnectionTo,
        schema::{
            AgentCapabilities, CancelNotification, ContentBlock, ContentChunk, InitializeRequest,
            InitializeResponse, NewSessionRequest, NewSessionResponse, PermissionOption,
            PermissionOptionKind, PromptRequest, PromptResponse, ReadTextFileRequest,
            RequestPermissionOutcome, RequestPermissionRequest, SessionNotification, SessionUpdate,
            StopReason, TextContent, ToolCallLocation, ToolCallUpdate, ToolCallUpdateFields,
            ToolKind,
        },
    },
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

#[tokio::main]
async fn main() -> Result<()> {
    let sessions = Arc::new(AtomicUsize::new(0));
    let prompts = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
    let hangs = Arc::new(tokio::sync::Notify::new());
    let cancelled = hangs.clone();
    let offers = Arc::new(Mutex::new(String::new()));
    let offered = offers.clone();
    Agent
        .v1()
        .name("acp_agent")
        .on_receive_request(
            async move |hello: InitializeRequest, responder, _| {
                let client = &hello.client_capabilities;
                let offer = format!(
                    "read {} write {} terminal {}",
                    client.fs.read_text_file, client.fs.write_text_file, client.terminal
                );
                *offered.lock().unwrap_or_else(|broken| broken.into_inner()) = offer;
                let capabilities = AgentCapabilities::new();
                let reply = InitializeResponse::new(hello.protocol_version);
                responder.respond(reply.agent_capabilities(capabilities))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _| {
                let number = sessions.fetch_add(1, Ordering::Relaxed);
                responder.respond(NewSessionResponse::new(format!("session-{number}")))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: CancelNotification, _| {
                cancelled.notify_waiters();
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                let (prompts, hangs) = (prompts.clone(), hangs.clone());
                let offers = offers.clone();
                let client = connection.clone();
                connection.spawn(async move {
                    let reason = answer(request, &client, &prompts, &hangs, &offers).await?;
                    responder.respond(PromptResponse::new(reason))
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_to(ByteStreams::new(
            tokio::io::stdout().compat_write(),
            tokio::io::stdin().compat(),
        ))
        .await
}

async fn answer(
    request: PromptRequest,
    client: &ConnectionTo<Client>,
    prompts: &Mutex<HashMap<String, usize>>,
    hangs: &tokio::sync::Notify,
    offers: &Mutex<String>,
) -> Result<StopReason> {
    let session = request.session_id.clone();
    let text = request.prompt.iter().find_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text = text.unwrap_or_default().trim_end().to_owned();
    let line = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("> ")
        .to_owned();
    let say = |words: &str| {
        let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(words)));
        let update = SessionUpdate::AgentMessageChunk(chunk);
        client.send_notification(SessionNotification::new(session.clone(), update))
    };
    if line.contains("die") {
        std::process::exit(7);
    }
    if line.contains("hang") {
        hangs.notified().await;
        return Ok(StopReason::Cancelled);
    }
    if line.contains("offers") {
        let offers = offers.lock().unwrap_or_else(|broken| broken.into_inner());
        say(&offers)?;
        return Ok(StopReason::EndTurn);
    }
    if let Some((_, path)) = line.split_once("read ") {
        let read = ReadTextFileRequest::new(session.clone(), path);
        let read = client.send_request(read).block_task().await;
        say(&match read {
            Ok(read) => format!("it holds: {}", read.content),
            Err(error) => format!("refused: {}", error.message),
        })?;
        return Ok(StopReason::EndTurn);
    }
    if let Some((_, path)) = line.split_once("touch ") {
        let fields = ToolCallUpdateFields::new()
            .kind(ToolKind::Edit)
            .title(format!("Touch {path}"))
            .locations(vec![ToolCallLocation::new(path)]);
        let options = vec![
            PermissionOption::new("always", "Always", PermissionOptionKind::AllowAlways),
            PermissionOption::new("once", "Once", PermissionOptionKind::AllowOnce),
            PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
        ];
        let call = ToolCallUpdate::new("call-1", fields);
        let ask = RequestPermissionRequest::new(session.clone(), call, options);
        let outcome = client.send_request(ask).block_task().await?.outcome;
        say(&match outcome {
            RequestPermissionOutcome::Selected(chosen) => format!("chosen: {}", chosen.option_id),
            _ => "cancelled".to_owned(),
        })?;
        return Ok(StopReason::EndTurn);
    }
    let count = {
        let mut prompts = prompts.lock().unwrap_or_else(|broken| broken.into_inner());
        let count = prompts.entry(session.to_string()).or_default();
        *count += 1;
        *count
    };
    say("You said: ")?;
    say(&line)?;
    let process = std::process::id();
    let length = text.lines().count();
    say(&format!(
        "\nprocess {process} {session} prompt {count} lines {length}"
    ))?;
    Ok(StopReason::EndTurn)
}
