//! A server that is kept running: started when it is first needed, and again
//! when it died.

use super::bounded::BoundedLines;
use super::handler::{Handler, InFlight, McpHost};
use super::{MAX_MESSAGE, McpConfig, START};
use crate::tool::builtin::kept_variables;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use runtime::{Backoff, ProcessGroup};
use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio::sync::{Notify, watch};

/// The most of its last words that is kept.
const LAST_LINES: usize = 10;
const MAX_LINE: u64 = 500;
/// How long the words of a server that died may take to come.
const LAST_GASP: Duration = Duration::from_secs(2);
/// The backoff before a server that died is started again, until it has stayed
/// up for a while.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
const STAYED_UP: Duration = Duration::from_secs(60);

pub(super) type Service = RunningService<RoleClient, Handler>;

pub(super) struct Connection {
    pub(super) name: String,
    pub(super) config: McpConfig,
    /// The token for its address.
    token: Option<String>,
    pub(super) calls: InFlight,
    pub(super) changed: Arc<Notify>,
    host: McpHost,
    live: tokio::sync::Mutex<Live>,
}

struct Live {
    running: Option<Running>,
    backoff: Backoff,
    /// How long after its start one that died is started again.
    wait: Option<Duration>,
    started: Option<Instant>,
    /// What the last one said before it died.
    last_words: LastWords,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            running: None,
            backoff: Backoff::new(FIRST_DELAY, LONGEST_DELAY),
            wait: None,
            started: None,
            last_words: LastWords::default(),
        }
    }
}

struct Running {
    service: Arc<Service>,
    _group: Option<ProcessGroup>,
}

impl Connection {
    pub(super) fn new(
        name: &str,
        config: &McpConfig,
        host: McpHost,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let token = match &config.key_env {
            Some(variable) => {
                Some(env(variable).ok_or_else(|| format!("no token: set {variable}"))?)
            }
            None => None,
        };
        Ok(Self {
            name: name.into(),
            config: config.clone(),
            token,
            calls: InFlight::default(),
            changed: Arc::default(),
            host,
            live: tokio::sync::Mutex::default(),
        })
    }

    /// The running server. One that died is started again, after a wait that
    /// grows while it goes on dying.
    pub(super) async fn service(&self) -> Result<Arc<Service>, String> {
        let mut live = self.live.lock().await;
        if let Some(running) = &live.running {
            if !running.service.is_transport_closed() {
                return Ok(Arc::clone(&running.service));
            }
            live.running = None;
        }
        let again = live.started.is_some();
        if let Some(started) = live.started {
            let up = started.elapsed();
            if up >= STAYED_UP {
                live.backoff.reset();
                live.wait = None;
            }
            if let Some(left) = live.wait.and_then(|wait| wait.checked_sub(up)) {
                return Err(format!(
                    "it died and is started again in {} s{}",
                    left.as_secs() + 1,
                    live.last_words.told()
                ));
            }
            live.wait = Some(live.backoff.next_delay());
        }
        live.started = Some(Instant::now());
        live.last_words = LastWords::default();
        let words = live.last_words.clone();
        let started = tokio::time::timeout(START, self.start(&words)).await;
        let started = started
            .map_err(|_| format!("did not start within {} s", START.as_secs()))
            .flatten();
        let running = match started {
            Ok(running) => running,
            Err(why) => return Err(format!("{why}{}", words.told_at_end().await)),
        };
        let service = Arc::clone(&running.service);
        live.running = Some(running);
        if again {
            tracing::info!(server = self.name, "an MCP server was started again");
            self.changed.notify_one();
        }
        Ok(service)
    }

    /// What is told of a call that failed: why, and what the server said last
    /// where it died of it.
    pub(super) async fn failure(&self, service: &Service, why: String) -> String {
        if !service.is_transport_closed() {
            return why;
        }
        let words = self.live.lock().await.last_words.clone();
        format!(
            "the server died: {why}{}. The next call starts it again",
            words.told_at_end().await
        )
    }

    async fn start(&self, words: &LastWords) -> Result<Running, String> {
        let handler = Handler {
            server: self.name.clone(),
            host: self.host.clone(),
            calls: self.calls.clone(),
            changed: Arc::clone(&self.changed),
            grants: Arc::default(),
        };
        match (&self.config.command, &self.config.url) {
            (Some(command), None) => self.spawn(command, handler, words).await,
            (None, Some(url)) => self.dial(url, handler).await,
            _ => Err("want either a command or a url".into()),
        }
    }

    async fn spawn(
        &self,
        command: &str,
        handler: Handler,
        words: &LastWords,
    ) -> Result<Running, String> {
        let mut program = Command::new(command);
        program
            .args(&self.config.args)
            .env_clear()
            .envs(kept_variables())
            .envs(&self.config.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut child, group) =
            ProcessGroup::spawn(&mut program).map_err(|error| format!("{command}: {error}"))?;
        let (Some(input), Some(output), Some(said)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("no pipes".into());
        };
        words.over.send_replace(false);
        tokio::spawn(words.clone().listen(self.name.clone(), said));
        // Reaps the program when it ends; the group kills it.
        tokio::spawn(async move { child.wait().await });
        let transport = (BoundedLines::new(output, MAX_MESSAGE), input);
        let service = handler.serve(transport).await;
        Ok(Running {
            service: Arc::new(service.map_err(|error| error.to_string())?),
            _group: Some(group),
        })
    }

    async fn dial(&self, url: &str, handler: Handler) -> Result<Running, String> {
        let mut settings =
            StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE);
        if let Some(token) = &self.token {
            settings = settings.auth_header(token.clone());
        }
        let transport = StreamableHttpClientTransport::from_config(settings);
        let service = handler.serve(transport).await;
        Ok(Running {
            service: Arc::new(service.map_err(|error| error.to_string())?),
            _group: None,
        })
    }
}

/// The last lines that a server wrote to its standard error.
#[derive(Clone)]
struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Whether there will be no more.
    over: watch::Sender<bool>,
}

impl Default for LastWords {
    fn default() -> Self {
        Self {
            lines: Arc::default(),
            over: watch::Sender::new(true),
        }
    }
}

impl LastWords {
    async fn listen(self, server: String, said: ChildStderr) {
        let mut lines = BufReader::new(said);
        loop {
            let mut line = Vec::new();
            let read = (&mut lines)
                .take(MAX_LINE)
                .read_until(b'\n', &mut line)
                .await;
            if !matches!(read, Ok(1..)) {
                break;
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            tracing::debug!(server, line, "an MCP server says");
            // Frames of a stack would drive out what went wrong.
            if line.is_empty() || line.trim_start().starts_with("at ") {
                continue;
            }
            let mut kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(line);
            while kept.len() > LAST_LINES {
                kept.pop_front();
            }
        }
        self.over.send_replace(true);
    }

    /// What a server said that has just died: its words come a moment later.
    async fn told_at_end(&self) -> String {
        let mut over = self.over.subscribe();
        let _ = tokio::time::timeout(LAST_GASP, over.wait_for(|over| *over)).await;
        self.told()
    }

    /// The words after a colon, where there are any.
    fn told(&self) -> String {
        let kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let said: Vec<&str> = kept.iter().map(String::as_str).collect();
        match said.is_empty() {
            true => String::new(),
            false => format!("; its last words: {}", said.join(" / ")),
        }
    }
}
