//! A stand-in for a model's API: it answers as it is told to, byte by byte, and
//! keeps what it was asked.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

pub mod scripted;
pub mod strict;
pub mod wire;

use openstarry::provider::{Provider, ProviderConfig, ProviderKind};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub const ALL: [ProviderKind; 5] = ProviderKind::ALL;

/// What a server sends after the head of its answer.
#[derive(Clone, Debug)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// Says nothing for so long.
    Pause(Duration),
    /// Says nothing until the client hangs up.
    Stall,
    /// Breaks the connection.
    Break,
}

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub pieces: Vec<Piece>,
}

impl Reply {
    pub fn stream(kind: ProviderKind, body: impl Into<Vec<u8>>) -> Self {
        Self::pieces(kind, vec![Piece::Bytes(body.into())])
    }

    pub fn pieces(kind: ProviderKind, pieces: Vec<Piece>) -> Self {
        let content = match kind {
            ProviderKind::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        Self {
            status: 200,
            headers: vec![("content-type", content.into())],
            pieces,
        }
    }

    pub fn json(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".into())],
            pieces: vec![Piece::Bytes(body.to_string().into())],
        }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub head: String,
    pub body: Value,
}

pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    hangups: watch::Receiver<usize>,
}

impl Server {
    /// Answers requests with `replies` in turn; the last one for ever. Requests
    /// that the real API would refuse are refused in its words.
    pub async fn start(replies: Vec<Reply>) -> Self {
        Self::as_strict_as(strict::Dialect::Usual, replies).await
    }

    /// As `start`, with the rules of a server that takes less.
    pub async fn as_strict_as(dialect: strict::Dialect, replies: Vec<Reply>) -> Self {
        let turns = AtomicUsize::new(0);
        Self::answering(move |asked| {
            let turn = turns.fetch_add(1, Ordering::SeqCst);
            let refused = strict::refusal(dialect, &asked.path, &asked.body);
            refused.unwrap_or_else(|| replies[turn.min(replies.len() - 1)].clone())
        })
        .await
    }

    /// Answers each request with what `answer` makes of it.
    pub async fn answering(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (hung_up, hangups) = watch::channel(0);
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            let hung_up = Arc::new(hung_up);
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, hung_up, answer) =
                    (Arc::clone(&seen), Arc::clone(&hung_up), Arc::clone(&answer));
                tokio::spawn(async move { serve(stream, &*answer, &seen, &hung_up).await });
            }
        });
        Self {
            url,
            asked,
            hangups,
        }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until a client hung up on a stalled answer.
    pub async fn hung_up(&self) {
        let mut hangups = self.hangups.clone();
        within(hangups.wait_for(|count| *count > 0)).await.unwrap();
    }

    /// The settings for an adapter that asks this server, with short waits.
    pub fn config(&self, kind: ProviderKind) -> ProviderConfig {
        let mut config = ProviderConfig::new(kind, "model-1");
        config.base_url = Some(self.url.clone());
        config.backoff_seconds = Some(0.005);
        config.first_byte_seconds = Some(20.0);
        config
    }

    pub fn provider(&self, kind: ProviderKind) -> Arc<dyn Provider> {
        self.config(kind).build(&|_| None).unwrap()
    }
}

/// Fails a test that would hang.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("it takes too long")
}

async fn serve(
    mut stream: TcpStream,
    answer: &(dyn Fn(&Asked) -> Reply + Send + Sync),
    seen: &Mutex<Vec<Asked>>,
    hung_up: &watch::Sender<usize>,
) {
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    let reply = {
        let mut seen = seen.lock().unwrap();
        let reply = answer(&asked);
        seen.push(asked);
        reply
    };
    let mut head = format!(
        "HTTP/1.1 {} X\r\nconnection: close\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let _ = stream.write_all(head.as_bytes()).await;
    for piece in &reply.pieces {
        match piece {
            Piece::Bytes(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend(bytes);
                chunk.extend(b"\r\n");
                let _ = stream.write_all(&chunk).await;
                let _ = stream.flush().await;
                tokio::task::yield_now().await;
            }
            Piece::Pause(time) => tokio::time::sleep(*time).await,
            Piece::Stall => {
                let _ = stream.read(&mut [0; 1]).await;
                hung_up.send_modify(|count| *count += 1);
                return;
            }
            Piece::Break => return,
        }
    }
    let _ = stream.write_all(b"0\r\n\r\n").await;
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break String::from_utf8_lossy(&bytes[..end]).into_owned();
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let length = head
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse()
                .ok()
        })
        .unwrap_or(0);
    while bytes.len() < head.len() + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Asked {
        path: head.split_whitespace().nth(1)?.to_owned(),
        body: serde_json::from_slice(&bytes[head.len() + 4..]).unwrap_or(Value::Null),
        head,
    })
}
