//! One process of a coding agent, the connection to it, and a session for each room.

use super::{
    grants::Grants,
    lines,
    permission::permission,
    policy::Policy,
    quota,
    turns::{Said, Turns},
};
use crate::backend::{
    BackendError, Call, Inbound,
    command::{StderrLog, contract_variables},
    consent::Asker,
    environment::Environment,
    prompt::{Prompt, stopped_note},
};
use agent_client_protocol::{
    Agent, Client, Error as ProtocolError, Lines,
    schema::ProtocolVersion,
    v1::{ConnectionTo, schema as acp},
};
use futures_util::{Sink, Stream};
use runtime::ProcessGroup;
use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, Command},
    sync::oneshot,
    task::JoinHandle,
};

/// How long an agent may take to say hello, and to make a session.
const HELLO: Duration = Duration::from_secs(60);
/// How long an agent may take to stop what it was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How long a death may take to be noticed.
const LAST_GASP: Duration = Duration::from_millis(300);
/// How often a long-lived agent may fill its share of the log.
const STDERR_WINDOW: Duration = Duration::from_secs(60);

/// How to start the agent.
#[derive(Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// What it finds in its environment.
    pub environment: Environment,
    /// Where it works.
    pub folder: PathBuf,
    /// How long an answer may take.
    pub timeout: Duration,
    /// What the owner wants it to know.
    pub owner: Option<String>,
}

/// Why a turn gave no answer.
pub enum TurnError {
    /// The process is gone, or as good as gone.
    Gone(String),
    /// This turn failed; the process is well.
    Failed(BackendError),
}

/// A running agent. Dropping it ends it and all it started.
pub struct Process {
    connection: ConnectionTo<Agent>,
    turns: Arc<Turns>,
    /// By what the rooms are called on this machine: a room of the same id on another server has a
    /// session of its own.
    rooms: Mutex<HashMap<String, AcpSession>>,
    task: JoinHandle<()>,
}

/// The session that an agent has for a room, and what it already knows of it.
#[derive(Debug, Clone)]
struct AcpSession {
    id: acp::SessionId,
    seen_seq: i64,
    rules_version: Option<i64>,
    /// The message whose answer somebody stopped, until the agent is told.
    stopped_seq: Option<i64>,
    /// What the session has cost so far.
    cost: f64,
}

/// A turn that somebody waits for. When nobody does any more, the agent is told to end it.
struct CancelTurnOnDrop<'a> {
    process: &'a Process,
    inbound: &'a Inbound,
    call: &'a Call,
    /// Nothing once the turn has ended by itself.
    session: Option<acp::SessionId>,
}

impl Drop for CancelTurnOnDrop<'_> {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        self.process.turns.end(&session);
        self.process.cancel(&session);
        if self.call.is_stopped() {
            let seq = self.inbound.message.seq;
            let room = &self.inbound.room_name;
            self.process
                .change(room, |known| known.stopped_seq = Some(seq));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Process {
    /// Starts the agent and greets it.
    pub async fn start(
        launch: &Launch,
        inbound: &Inbound,
        policy: Arc<Policy>,
        grants: Arc<Grants>,
    ) -> Result<Self, BackendError> {
        let not_started = |why: String| {
            let program = launch.words.first().map_or("", String::as_str);
            BackendError::Failed(format!("{program} does not start: {why}"))
        };
        let (mut child, group) =
            spawn(launch, inbound).map_err(|error| not_started(error.to_string()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(not_started("it has no pipes".into()));
        };
        let turns = Arc::new(Turns::new(grants));
        let (send_connection, connected) = oneshot::channel();
        let serving = serve(
            lines::transport(stdin, stdout),
            turns.clone(),
            policy,
            send_connection,
        );
        let task = tokio::spawn(live(child, group, serving));
        let hello = tokio::time::timeout(HELLO, connected).await;
        let connection = match hello {
            Ok(Ok(Ok(connection))) => connection,
            Ok(Ok(Err(error))) => return Err(not_started(error.to_string())),
            Ok(Err(_)) => return Err(not_started("it ended without a greeting".into())),
            Err(_) => {
                task.abort();
                return Err(not_started(format!("no greeting in {} s", HELLO.as_secs())));
            }
        };
        Ok(Self {
            connection,
            turns,
            rooms: Mutex::default(),
            task,
        })
    }

    /// Whether it is still there.
    pub fn is_alive(&self) -> bool {
        !self.task.is_finished() && !self.connection.is_incoming_closed()
    }

    /// Asks for an answer in the room's session.
    pub async fn ask(
        &self,
        launch: &Launch,
        inbound: &Inbound,
        call: &Call,
    ) -> Result<String, TurnError> {
        let known = self.room(&inbound.room_name);
        let acp_session = match &known {
            Some(known) => known.clone(),
            None => AcpSession {
                id: self.new_session(launch).await?,
                seen_seq: 0,
                rules_version: None,
                stopped_seq: None,
                cost: 0.0,
            },
        };
        let prompt = match &known {
            Some(known) => {
                let unseen = inbound.unseen(known.seen_seq, known.rules_version);
                let note = known.stopped_seq.map(stopped_note).unwrap_or_default();
                note + &Prompt::new(&unseen, None).material
            }
            None => Prompt::new(inbound, launch.owner.as_deref()).whole(),
        };
        let session = acp_session.id.clone();
        let cost_before = acp_session.cost;
        self.remember(inbound, acp_session);
        self.turns.begin(
            &session,
            &inbound.room_name,
            call,
            Asker::new(inbound, call),
        );
        let mut cancel_on_drop = CancelTurnOnDrop {
            process: self,
            inbound,
            call,
            session: Some(session.clone()),
        };
        let turn = self.turn(&session, prompt, launch.timeout, call).await;
        cancel_on_drop.session = None;
        let Said {
            text,
            session_cost,
            denied,
        } = self.turns.end(&session);
        if let Some(cost) = session_cost {
            call.report_usage(|usage| usage.cost_usd = Some((cost - cost_before).max(0.0)));
            self.change(&inbound.room_name, |known| known.cost = cost);
        }
        let is_silent = text.trim().is_empty();
        match (turn?, denied) {
            // Some end their turn as if it were answered, others break it off.
            (acp::StopReason::Cancelled | acp::StopReason::EndTurn, Some(tool)) if is_silent => {
                Ok(format!("I may not do that: {tool} was denied."))
            }
            (acp::StopReason::Cancelled, Some(_)) => Ok(text),
            (acp::StopReason::Cancelled, None) => Err(TurnError::Failed(BackendError::Failed(
                "the agent broke its turn off".into(),
            ))),
            (acp::StopReason::Refusal, _) if is_silent => Err(TurnError::Failed(
                BackendError::Failed("the agent refuses to answer".into()),
            )),
            _ => Ok(text),
        }
    }

    async fn turn(
        &self,
        session: &acp::SessionId,
        prompt: String,
        timeout: Duration,
        call: &Call,
    ) -> Result<acp::StopReason, TurnError> {
        let content = vec![acp::ContentBlock::Text(acp::TextContent::new(prompt))];
        let request = acp::PromptRequest::new(session.clone(), content);
        let turn = self.connection.send_request(request).block_task();
        tokio::pin!(turn);
        tokio::select! {
            answered = &mut turn => match answered {
                Ok(answered) => {
                    quota::count(call, answered.meta.as_ref());
                    Ok(answered.stop_reason)
                }
                Err(error) => Err(self.why(error).await),
            },
            () = call.overdue(timeout) => {
                self.cancel(session);
                match tokio::time::timeout(GRACE, turn).await {
                    Ok(_) => Err(TurnError::Failed(BackendError::TimedOut(timeout))),
                    // It does not listen, so it is of no use to the other rooms either.
                    Err(_) => {
                        self.task.abort();
                        Err(TurnError::Failed(BackendError::TimedOut(timeout)))
                    }
                }
            }
        }
    }

    async fn new_session(&self, launch: &Launch) -> Result<acp::SessionId, TurnError> {
        let request = acp::NewSessionRequest::new(launch.folder.clone());
        let made = self.connection.send_request(request).block_task();
        match tokio::time::timeout(HELLO, made).await {
            Ok(Ok(made)) => Ok(made.session_id),
            Ok(Err(error)) => Err(self.why(error).await),
            Err(_) => Err(TurnError::Gone("it makes no session".into())),
        }
    }

    async fn why(&self, error: ProtocolError) -> TurnError {
        let why = match error.code == ProtocolError::auth_required().code {
            true => {
                "the agent wants somebody to sign in; start it once in a terminal and do so".into()
            }
            false => format!("the agent failed: {}", error.message),
        };
        // The requests of a process that dies fail a moment before it is seen to be dead.
        let closed = tokio::time::timeout(LAST_GASP, self.connection.incoming_closed()).await;
        match closed.is_err() && self.is_alive() {
            true => TurnError::Failed(BackendError::Failed(why)),
            false => TurnError::Gone(why),
        }
    }

    fn cancel(&self, session: &acp::SessionId) {
        let cancel = acp::CancelNotification::new(session.clone());
        // One that is gone has nothing to end.
        let _ = self.connection.send_notification(cancel);
    }

    fn change(&self, room: &str, change: impl FnOnce(&mut AcpSession)) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rooms.get_mut(room) {
            change(known);
        }
    }

    fn room(&self, room: &str) -> Option<AcpSession> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(room).cloned()
    }

    fn remember(&self, inbound: &Inbound, mut session: AcpSession) {
        session.seen_seq = inbound.message.seq;
        session.stopped_seq = None;
        if let Some(rules) = &inbound.rules {
            session.rules_version = Some(rules.version);
        }
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.insert(inbound.room_name.clone(), session);
    }
}

/// It serves every room, so it is told of none in its environment.
fn spawn(launch: &Launch, inbound: &Inbound) -> io::Result<(Child, ProcessGroup)> {
    let mut words = launch.words.iter();
    let mut command = Command::new(words.next().map_or("", String::as_str));
    command
        .args(words)
        .current_dir(&launch.folder)
        .env_clear()
        .envs(launch.environment.variables())
        .envs(contract_variables(inbound))
        .env_remove("SCCHAT_ROOM_ID")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ProcessGroup::spawn(&mut command)
}

/// Keeps the process until it ends or its connection does; then all it started ends with it.
async fn live(mut child: Child, _group: ProcessGroup, serving: impl Future<Output = ()>) {
    let stderr = child.stderr.take();
    tokio::select! {
        () = serving => tracing::warn!("the agent closed its connection"),
        status = child.wait() => match status {
            Ok(status) => tracing::warn!("the agent ended with {status}"),
            Err(error) => tracing::warn!("the agent is lost: {error}"),
        },
        () = log(stderr) => {}
    }
}

/// Logs what the agent says on its standard error, for as long as it lives.
async fn log(stderr: Option<ChildStderr>) {
    let Some(mut stderr) = stderr else {
        return std::future::pending().await;
    };
    let mut buffer = vec![0; 8 << 10];
    let (mut stderr_log, mut since) = (StderrLog::default(), Instant::now());
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        if since.elapsed() > STDERR_WINDOW {
            stderr_log.finish();
            (stderr_log, since) = (StderrLog::default(), Instant::now());
        }
        stderr_log.push(&buffer[..read]);
    }
    stderr_log.finish();
    std::future::pending().await
}

/// Speaks the protocol until the agent hangs up.
async fn serve<O, I>(
    transport: Lines<O, I>,
    turns: Arc<Turns>,
    policy: Arc<Policy>,
    tell: oneshot::Sender<Result<ConnectionTo<Agent>, ProtocolError>>,
) where
    O: Sink<String, Error = io::Error> + Send + 'static,
    I: Stream<Item = io::Result<String>> + Send + 'static,
{
    let asked = turns.clone();
    let ended = Client
        .v1()
        .name("starchild")
        .on_receive_notification(
            async move |notice: acp::SessionNotification, _| {
                turns.update(&notice.session_id, notice.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: acp::RequestPermissionRequest, responder, _| {
                let permission = permission(request, asked.clone(), &policy);
                // An owner takes time; other rooms' messages do not wait for that.
                tokio::spawn(async move { responder.respond(permission.await) });
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async move |connection: ConnectionTo<Agent>| {
            let hello = acp::InitializeRequest::new(ProtocolVersion::V1);
            let greeted = connection.send_request(hello).block_task().await;
            let greeted = greeted.and_then(|hello| match hello.protocol_version {
                ProtocolVersion::V1 => Ok(()),
                other => Err(ProtocolError::invalid_params()
                    .data(format!("it speaks version {other} of the protocol, not 1"))),
            });
            let is_ready = greeted.is_ok();
            let _ = tell.send(greeted.map(|()| connection.clone()));
            if is_ready {
                connection.incoming_closed().await;
            }
            Ok(())
        })
        .await;
    if let Err(error) = ended {
        tracing::warn!("the connection to the agent broke: {error}");
    }
}
