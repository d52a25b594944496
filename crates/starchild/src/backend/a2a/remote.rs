//! Calls to the agent. The bearer goes to the host of its card alone, and what a card names elsewhere
//! has to be a public address: a card must not point this machine at its own network.

use egress::Guard;
use protocol::{
    a2a::{
        A2aError, Card, CardInterface, ErrorKind, MEDIA_TYPE, SendMessage, StreamResponse, Task,
        VERSION, VERSION_HEADER, older,
    },
    sse::Parser,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, header, redirect::Policy};
use serde_json::{Value, json};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call that is no stream may take; the whole answer has its own bound.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_CARD_BYTES: usize = 256 * 1024;
const MAX_ANSWER_BYTES: usize = 4 << 20;
const MAX_STREAM_BYTES: usize = 16 << 20;
const MAX_FRAME_BYTES: usize = 1 << 20;

/// Why the agent gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It may be there later.
    #[error("the agent cannot be reached: {0}")]
    Away(String),
    /// It says no.
    #[error("the agent refuses: {message}")]
    Refused {
        /// Its words.
        message: String,
    },
    /// What it says cannot be understood.
    #[error("the agent's answer cannot be read: {0}")]
    Broken(String),
    /// It must not, or cannot, be called.
    #[error("{0}")]
    Unusable(String),
}

/// Makes calls to one agent.
pub struct Connector {
    host: Option<String>,
    token: Option<String>,
    /// For the card's own host.
    own: Client,
    /// For others.
    public: Client,
    guard: Guard,
}

impl Connector {
    pub fn new(card_url: &Url, token: Option<String>) -> Result<Self, String> {
        let agent = concat!("starchild/", env!("CARGO_PKG_VERSION"));
        let own = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(agent)
            .build();
        let guard = Guard::new(false, Vec::new());
        let wrong = |error: reqwest::Error| error.to_string();
        if let Some(token) = &token
            && !token.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err("the token is no single word".to_owned());
        }
        Ok(Self {
            host: card_url.host_str().map(str::to_owned),
            token,
            own: own.map_err(wrong)?,
            public: guard.client(agent).map_err(wrong)?,
            guard,
        })
    }

    /// Reads the card.
    pub async fn card(&self, url: &Url) -> Result<Card, RemoteError> {
        let mut request = self.own.get(url.clone()).timeout(CALL_TIMEOUT);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let body = answered(request, MAX_CARD_BYTES).await?;
        let card = serde_json::from_slice(&body);
        let card = card.map_err(|error| RemoteError::Broken(error.to_string()))?;
        Card::read(card).map_err(|why| RemoteError::Broken(format!("its card: {why}")))
    }

    /// The first way that the card names and that can be gone.
    pub fn remote(&self, card: &Card) -> Result<Remote, RemoteError> {
        let unusable = |words: String| RemoteError::Unusable(words);
        let Some(interface) = card.interfaces.first() else {
            return Err(unusable(format!(
                "the card of {} names no address for JSON-RPC or HTTP+JSON in A2A 1.0 or 0.3",
                card.name
            )));
        };
        let url: Url = interface
            .url
            .parse()
            .map_err(|_| unusable("the card names an address that is none".to_owned()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unusable("the card names no web address".to_owned()));
        }
        let is_own = url.host_str() == self.host.as_deref();
        if !is_own && !self.guard.allows_url(&url) {
            return Err(unusable(
                "the card names a private address on another host than its own".to_owned(),
            ));
        }
        Ok(Remote {
            client: match is_own {
                true => self.own.clone(),
                false => self.public.clone(),
            },
            token: self.token.clone().filter(|_| is_own),
            interface: interface.clone(),
            url,
        })
    }
}

/// An agent at one address, in one binding and version.
#[derive(Clone)]
pub struct Remote {
    client: Client,
    token: Option<String>,
    interface: CardInterface,
    url: Url,
}

impl Remote {
    pub fn tenant(&self) -> Option<&str> {
        self.interface.tenant.as_deref()
    }

    /// Sends a message.
    pub async fn send(&self, message: &SendMessage) -> Result<StreamResponse, RemoteError> {
        let params = self.message(message);
        let request = match self.interface.rpc {
            true => self.rpc("SendMessage", "message/send", params),
            false => self.post("/message:send", &params),
        };
        let body = answered(request.timeout(CALL_TIMEOUT), MAX_ANSWER_BYTES).await?;
        self.event(self.result(&body)?)
    }

    /// Sends a message, and follows what comes of it.
    pub async fn stream(&self, message: &SendMessage) -> Result<Events, RemoteError> {
        let params = self.message(message);
        let request = match self.interface.rpc {
            true => self.rpc("SendStreamingMessage", "message/stream", params),
            false => self.post("/message:stream", &params),
        };
        let request = request.header(header::ACCEPT, "text/event-stream");
        let response = accepted(request).await?;
        let kind = response.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            // An error, most likely.
            let body = read(response, MAX_ANSWER_BYTES).await?;
            self.result(&body)?;
            return Err(RemoteError::Broken("it is no event stream".into()));
        }
        Ok(Events {
            remote: self.clone(),
            response,
            parser: Parser::strict(MAX_FRAME_BYTES),
            bytes: 0,
        })
    }

    /// A task as it is.
    pub async fn task(&self, id: &str) -> Result<Task, RemoteError> {
        let request = match self.interface.rpc {
            true => self.rpc(
                "GetTask",
                "tasks/get",
                json!({"id": id, "tenant": self.tenant()}),
            ),
            false => self.request(self.client.get(self.below(&["tasks", id])?)),
        };
        let body = answered(request.timeout(CALL_TIMEOUT), MAX_ANSWER_BYTES).await?;
        let result = self.result(&body)?;
        let task = match self.interface.older {
            true => self.event(result)?,
            false => self.event(json!({ "task": result }))?,
        };
        match task {
            StreamResponse::Task(task) => Ok(task),
            _ => Err(RemoteError::Broken("it is no task".into())),
        }
    }

    /// Takes a task back.
    pub async fn cancel(&self, id: &str) -> Result<(), RemoteError> {
        let params = json!({"id": id, "tenant": self.tenant()});
        let request = match self.interface.rpc {
            true => self.rpc("CancelTask", "tasks/cancel", params),
            false => {
                let url = self.below(&["tasks", &format!("{id}:cancel")])?;
                self.request(self.client.post(url)).body("{}")
            }
        };
        answered(request.timeout(CALL_TIMEOUT), MAX_ANSWER_BYTES)
            .await
            .map(drop)
    }

    fn message(&self, message: &SendMessage) -> Value {
        match self.interface.older {
            true => older::send_message(message),
            false => json!(message),
        }
    }

    fn rpc(&self, method: &str, older: &str, mut params: Value) -> RequestBuilder {
        if let Value::Object(fields) = &mut params {
            fields.retain(|_, value| !value.is_null());
        }
        let method = match self.interface.older {
            true => older,
            false => method,
        };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.request(self.client.post(self.url.clone()))
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string())
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        self.request(self.client.post(url))
            .header(header::CONTENT_TYPE, MEDIA_TYPE)
            .body(body.to_string())
    }

    fn below(&self, path: &[&str]) -> Result<Url, RemoteError> {
        let mut url = self.url.clone();
        let wrong = || RemoteError::Unusable("the card names no web address".to_owned());
        url.path_segments_mut()
            .map_err(|()| wrong())?
            .pop_if_empty()
            .extend(path);
        if let Some(tenant) = self.tenant() {
            url.query_pairs_mut().append_pair("tenant", tenant);
        }
        Ok(url)
    }

    fn request(&self, mut request: RequestBuilder) -> RequestBuilder {
        if !self.interface.older {
            request = request.header(VERSION_HEADER, VERSION);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request
    }

    /// What a body says, without JSON-RPC around it.
    fn result(&self, body: &[u8]) -> Result<Value, RemoteError> {
        let value: Value =
            serde_json::from_slice(body).map_err(|error| RemoteError::Broken(error.to_string()))?;
        self.unwrapped(value)
    }

    fn unwrapped(&self, mut value: Value) -> Result<Value, RemoteError> {
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            return Err(refusal(error));
        }
        match self.interface.rpc {
            true => Ok(value["result"].take()),
            false => Ok(value),
        }
    }

    fn event(&self, value: Value) -> Result<StreamResponse, RemoteError> {
        let event = match self.interface.older {
            true => older::read_event(value),
            false => serde_json::from_value(value).map_err(|error| error.to_string()),
        };
        event.map_err(RemoteError::Broken)
    }
}

/// What an agent says step by step.
pub struct Events {
    remote: Remote,
    response: Response,
    parser: Parser,
    bytes: usize,
}

impl Events {
    /// The next event; nothing where the stream has ended.
    pub async fn next(&mut self) -> Result<Option<StreamResponse>, RemoteError> {
        loop {
            while let Some(frame) = self.parser.next_frame() {
                let Some(data) = frame.data.filter(|data| !data.trim().is_empty()) else {
                    continue;
                };
                let value: Value = serde_json::from_str(&data)
                    .map_err(|error| RemoteError::Broken(error.to_string()))?;
                let event = self.remote.unwrapped(value)?;
                return self.remote.event(event).map(Some);
            }
            let chunk = self.response.chunk().await;
            let Some(chunk) = chunk.map_err(|error| away(&error))? else {
                return Ok(None);
            };
            self.bytes += chunk.len();
            if self.bytes > MAX_STREAM_BYTES {
                let why = format!("it is longer than {MAX_STREAM_BYTES} bytes");
                return Err(RemoteError::Broken(why));
            }
            let pushed = self.parser.push(&chunk);
            pushed.map_err(|error| RemoteError::Broken(error.to_string()))?;
        }
    }
}

fn refusal(error: &Value) -> RemoteError {
    let message = error["message"].as_str().unwrap_or("it does not say why");
    let message: String = message.chars().take(500).collect();
    RemoteError::Refused { message }
}

fn away(error: &reqwest::Error) -> RemoteError {
    let words = if error.is_connect() {
        "no connection"
    } else if error.is_timeout() {
        "it takes too long"
    } else {
        "the connection broke"
    };
    RemoteError::Away(words.to_owned())
}

/// Sends a request; gives its answer, unless that is a refusal.
async fn accepted(request: RequestBuilder) -> Result<Response, RemoteError> {
    let response = request.send().await.map_err(|error| away(&error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = read(response, MAX_CARD_BYTES).await.unwrap_or_default();
    let told: Option<Value> = serde_json::from_slice(&body).ok();
    let told = told.filter(|told| told["error"]["message"].is_string());
    Err(match (status, told) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => RemoteError::Unusable(format!(
            "the agent answers {status}; token_env names the variable with its bearer"
        )),
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT, _) => {
            RemoteError::Away(format!("it answers {status}"))
        }
        (status, _) if status.is_server_error() => {
            RemoteError::Away(format!("it answers {status}"))
        }
        (_, Some(told)) => refusal(&told["error"]),
        (status, None) => RemoteError::Refused {
            message: A2aError::new(ErrorKind::Internal, format!("it answers {status}")).message,
        },
    })
}

async fn answered(request: RequestBuilder, most: usize) -> Result<Vec<u8>, RemoteError> {
    read(accepted(request).await?, most).await
}

async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, RemoteError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| away(&error))? {
        if body.len() + chunk.len() > most {
            return Err(RemoteError::Broken(format!(
                "it is larger than {most} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
