//! `starchild mcp`: an agent's rooms for an MCP client that speaks over standard input and output. Every
//! message goes to the server's `/mcp` with the agent's identity token, and what comes back is printed: the
//! tools are the server's.

use super::{failure::Failure, sessions::AccountArgs};
use crate::home::Home;
use futures_util::StreamExt;
use protocol::{ErrorBody, sse::Parser};
use reqwest::{RequestBuilder, Response, StatusCode, header};
use runtime::Backoff;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    task::{AbortHandle, JoinSet},
};

/// The longest message that a client may send.
const MAX_LINE: usize = 1024 * 1024;
const CONNECT: Duration = Duration::from_secs(10);
/// How long what was asked may take to be answered once the client has closed its end.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How often a stream that broke off is resumed.
const RESUMES: u32 = 5;
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// Where a message of a version without sessions says which version it is.
const OWN_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// JSON-RPC's code for what the server refused.
const REFUSED: i64 = -32_000;

/// Serves until standard input ends.
pub async fn run(home: &Home, account: AccountArgs) -> Result<(), Failure> {
    let account = account.find(home)?;
    let http = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| Failure::permanent(error.to_string()))?;
    let server = Arc::new(Server {
        http,
        url: format!("{}/mcp", account.server),
        token: account.token,
        session: Mutex::default(),
        waiting: Mutex::default(),
        out: tokio::sync::Mutex::new(tokio::io::stdout()),
    });
    let mut requests = JoinSet::new();
    let mut input = BufReader::new(tokio::io::stdin());
    while let Some(line) = read_line(&mut input).await? {
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            server
                .print(&refusal(&Value::Null, "this line is no JSON"))
                .await;
            continue;
        };
        server.clone().take(message, &mut requests).await;
        while requests.try_join_next().is_some() {}
    }
    let answers = async { while requests.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_ANSWERS, answers).await;
    server.end().await;
    Ok(())
}

/// One line without its end, or nothing at the end of the input.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>, Failure> {
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut *input).take(MAX_LINE as u64 + 1);
        let read = bounded.read_until(b'\n', &mut line).await;
        read.map_err(|error| Failure::permanent(format!("cannot read standard input: {error}")))?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() > MAX_LINE {
            let words = format!("a message of more than {MAX_LINE} bytes");
            return Err(Failure::permanent(words));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(line));
        }
    }
}

/// A session, as older versions of MCP have it.
#[derive(Debug, Clone, Default)]
struct Session {
    id: Option<String>,
    version: Option<String>,
    /// The request that made it, to make another when it has ended.
    opened_with: Option<Value>,
}

/// The server's `/mcp`, with the agent's credential.
struct Server {
    http: reqwest::Client,
    url: String,
    token: String,
    session: Mutex<Session>,
    /// What is being answered, by the request's id.
    waiting: Mutex<HashMap<String, AbortHandle>>,
    out: tokio::sync::Mutex<tokio::io::Stdout>,
}

impl Server {
    /// Sends a message on. Requests are answered side by side; all else keeps its order.
    async fn take(self: Arc<Self>, message: Value, requests: &mut JoinSet<()>) {
        let method = message["method"].as_str().unwrap_or_default();
        match (method, message.get("id")) {
            ("initialize", Some(_)) => {
                self.session().opened_with = Some(message.clone());
                self.answer(&message).await;
            }
            (_, Some(id)) if !method.is_empty() => {
                let (name, server) = (id.to_string(), self.clone());
                let task = requests.spawn(async move {
                    server.answer(&message).await;
                    server.waiting().remove(&message["id"].to_string());
                });
                self.waiting().insert(name, task);
            }
            ("notifications/cancelled", None) => {
                let request = message["params"]["requestId"].to_string();
                // Without a session, whoever hangs up has cancelled.
                if self.session().id.is_none()
                    && let Some(task) = self.waiting().remove(&request)
                {
                    task.abort();
                }
                self.notify(&message).await;
            }
            ("notifications/initialized", None) => {
                self.notify(&message).await;
                let server = self.clone();
                // Ends with the program: what the server tells on its own is nobody's answer.
                tokio::spawn(async move { server.listen().await });
            }
            _ => self.notify(&message).await,
        }
    }

    /// Sends a request and prints all that comes of it.
    async fn answer(&self, message: &Value) {
        let response = match self.send(message).await {
            Ok(response) => response,
            Err(why) => return self.print(&refusal(&message["id"], &why)).await,
        };
        self.keep_session(&response);
        let mut last_event: Option<String> = None;
        let mut response: Result<Response, String> = Ok(response);
        for _ in 0..RESUMES {
            match response {
                Err(why) => return self.print(&refusal(&message["id"], &why)).await,
                Ok(open) => {
                    if self
                        .pass_on(open, Some(&message["id"]), &mut last_event)
                        .await
                    {
                        return;
                    }
                }
            }
            let Some(event) = &last_event else { break };
            response = self.resume(event).await;
        }
        let words = "the server broke off before it had answered; try again";
        self.print(&refusal(&message["id"], words)).await;
    }

    async fn notify(&self, message: &Value) {
        if let Err(why) = self.send(message).await {
            tracing::warn!(%why, "a notification was not taken");
        }
    }

    /// Follows what the server tells on its own, for as long as there is a session.
    async fn listen(&self) {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
        let mut last_event: Option<String> = None;
        while self.session().id.is_some() {
            let opened = match &last_event {
                Some(event) => self.resume(event).await,
                None => checked(self.with_session(self.http.get(&self.url)).send().await).await,
            };
            match opened {
                Ok(response) => {
                    backoff.reset();
                    self.pass_on(response, None, &mut last_event).await;
                }
                Err(why) => tracing::debug!(%why, "nothing is told"),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Sends a message; where its session has ended, in a new one.
    async fn send(&self, message: &Value) -> Result<Response, String> {
        let had_session = self.session().id.is_some();
        let response = self.post(message).await?;
        if response.status() != StatusCode::NOT_FOUND || !had_session || is_stateless(message) {
            return accepted(response).await;
        }
        self.open_anew().await?;
        accepted(self.post(message).await?).await
    }

    async fn post(&self, message: &Value) -> Result<Response, String> {
        let mut request = self.http.post(&self.url).json(message);
        request = match own_version(message) {
            // Such a message says in its headers what its body says.
            Some(version) => {
                let method = message["method"].as_str().unwrap_or_default();
                let name = ["name", "uri"]
                    .iter()
                    .find_map(|name| message["params"][name].as_str());
                let request = self.with_token(request).header(VERSION, version);
                let request = request.header("mcp-method", method);
                match name {
                    Some(name) => request.header("mcp-name", name),
                    None => request,
                }
            }
            None => self.with_session(request),
        };
        request.send().await.map_err(|error| words_of(&error))
    }

    async fn open_anew(&self) -> Result<(), String> {
        let opened_with = {
            let mut session = self.session();
            session.id = None;
            session.opened_with.clone()
        };
        let opened_with = opened_with.ok_or("the session has ended; send initialize")?;
        let response = accepted(self.post(&opened_with).await?).await?;
        self.keep_session(&response);
        let _ = response.bytes().await;
        self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        Ok(())
    }

    async fn resume(&self, event: &str) -> Result<Response, String> {
        let request = self.http.get(&self.url).header("last-event-id", event);
        checked(self.with_session(request).send().await).await
    }

    fn with_token(&self, request: RequestBuilder) -> RequestBuilder {
        request
            .bearer_auth(&self.token)
            .header(header::ACCEPT, "application/json, text/event-stream")
    }

    fn with_session(&self, request: RequestBuilder) -> RequestBuilder {
        let session = self.session().clone();
        let mut request = self.with_token(request);
        if let Some(id) = session.id {
            request = request.header(SESSION, id);
            request = request.header(VERSION, session.version.unwrap_or_default());
        }
        request
    }

    fn keep_session(&self, response: &Response) {
        let id = response
            .headers()
            .get(SESSION)
            .and_then(|id| id.to_str().ok());
        if let Some(id) = id {
            self.session().id = Some(id.to_owned());
        }
    }

    /// Prints what a response holds; whether the answer to this request was among it.
    async fn pass_on(
        &self,
        response: Response,
        id: Option<&Value>,
        last: &mut Option<String>,
    ) -> bool {
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !is_stream {
            return match response.json::<Value>().await {
                Ok(message) => self.pass_on_message(message, id).await,
                Err(_) => false,
            };
        }
        let mut parser = Parser::new();
        let mut bytes = response.bytes_stream();
        while let Some(Ok(chunk)) = bytes.next().await {
            if parser.push(&chunk).is_err() {
                return false;
            }
            while let Some(frame) = parser.next_frame() {
                if frame.id.is_some() {
                    *last = frame.id;
                }
                let data = frame.data.and_then(|data| serde_json::from_str(&data).ok());
                if let Some(message) = data
                    && self.pass_on_message(message, id).await
                {
                    return true;
                }
            }
        }
        false
    }

    async fn pass_on_message(&self, message: Value, id: Option<&Value>) -> bool {
        let answers =
            id.is_some_and(|id| message.get("id") == Some(id) && message.get("method").is_none());
        if answers && let Some(version) = message["result"]["protocolVersion"].as_str() {
            self.session().version = Some(version.to_owned());
        }
        self.print(&message).await;
        answers
    }

    /// One message, one line.
    async fn print(&self, message: &Value) {
        let line = format!("{message}\n");
        let mut out = self.out.lock().await;
        // A client that does not listen any more has closed its end, which ends the program.
        let _ = out.write_all(line.as_bytes()).await;
        let _ = out.flush().await;
    }

    /// Ends the session, if there is one.
    async fn end(&self) {
        if self.session().id.is_some() {
            let ended = self.with_session(self.http.delete(&self.url)).send();
            let _ = tokio::time::timeout(Duration::from_secs(2), ended).await;
        }
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The version that a message without a session says.
fn own_version(message: &Value) -> Option<&str> {
    message["params"]["_meta"][OWN_VERSION].as_str()
}

fn is_stateless(message: &Value) -> bool {
    own_version(message).is_some()
}

/// An error that answers a request.
fn refusal(id: &Value, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": REFUSED, "message": why}})
}

async fn checked(sent: reqwest::Result<Response>) -> Result<Response, String> {
    accepted(sent.map_err(|error| words_of(&error))?).await
}

/// The response, unless it refuses; then why. MCP's own errors are answers.
async fn accepted(response: Response) -> Result<Response, String> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = response.bytes().await.unwrap_or_default();
    let error: Option<ErrorBody> = serde_json::from_slice(&body).ok();
    let rpc = || {
        let answer: Value = serde_json::from_slice(&body).ok()?;
        answer["error"]["message"].as_str().map(str::to_owned)
    };
    Err(match error {
        Some(error) => format!("{}: {}", error.error, error.message),
        None => rpc().unwrap_or_else(|| format!("the server answered {status}")),
    })
}

fn words_of(error: &reqwest::Error) -> String {
    format!("the server cannot be reached: {error}")
}
