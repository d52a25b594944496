//! Agents that the room server calls: many on one port of this program, told apart by their path.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::Result;
use crate::content::sent;

const SILENCE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    content-length: 16\r\n\r\ndata: [SILENT]\n\n";
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    connection: close\r\n\r\n";

/// How an agent behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Is silent at once, and its delay counts.
    Healthy,
    /// Never says anything, nor ends.
    Hangs,
    /// Streams a gigabyte.
    Floods,
    /// Sends what is no UTF-8.
    Broken,
    /// Breaks off in the middle.
    Resets,
}

/// The agents of a measurement.
pub struct Agents {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    clock: Instant,
    manners: Mutex<Vec<Manner>>,
    /// The delays of healthy agents, in milliseconds.
    delays: Mutex<Vec<f64>>,
}

impl Agents {
    /// Starts so many, all healthy.
    pub async fn start(count: usize, clock: Instant) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            clock,
            manners: Mutex::new(vec![Manner::Healthy; count]),
            delays: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, shared.clone()));
        Ok(Self {
            address,
            shared,
            serving,
        })
    }

    /// Where an agent is called.
    pub fn endpoint(&self, agent: usize) -> String {
        format!("http://{}/{agent}", self.address)
    }

    /// From now on these agents behave like this.
    pub fn behave(&self, manners: impl IntoIterator<Item = (usize, Manner)>) {
        let mut all = lock(&self.shared.manners);
        for (agent, manner) in manners {
            all[agent] = manner;
        }
    }

    /// The delays since the last time.
    pub fn take_delays(&self) -> Vec<f64> {
        std::mem::take(&mut lock(&self.shared.delays))
    }

    /// How many delays there are.
    pub fn heard(&self) -> usize {
        lock(&self.shared.delays).len()
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        let shared = shared.clone();
        // A connection that breaks is what some of these agents are for.
        tokio::spawn(async move { connection(socket, &shared).await.ok() });
    }
}

/// Answers one call after the other.
async fn connection(mut socket: TcpStream, shared: &Shared) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8 * 1024);
    loop {
        let (agent, body) = read_call(&mut socket, &mut buffer).await?;
        let manner = lock(&shared.manners)
            .get(agent)
            .copied()
            .ok_or("no such agent")?;
        match manner {
            Manner::Healthy => {
                let body: Value = serde_json::from_slice(&body)?;
                let message = body["message"].as_str().unwrap_or_default();
                if let Some(sent) = sent(message.as_bytes()) {
                    let delay = shared.clock.elapsed().saturating_sub(sent);
                    lock(&shared.delays).push(delay.as_secs_f64() * 1000.0);
                }
                socket.write_all(SILENCE).await?;
            }
            Manner::Hangs => {
                socket.write_all(HEAD).await?;
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            Manner::Floods => {
                socket.write_all(HEAD).await?;
                let chunk = format!("data: {}\n\n", "x".repeat(64 * 1024));
                for _ in 0..16 * 1024 {
                    socket.write_all(chunk.as_bytes()).await?;
                }
                return Ok(());
            }
            Manner::Broken => {
                socket.write_all(HEAD).await?;
                socket.write_all(b"data: \xff\xfe\xc3\x28\n\n").await?;
                return Ok(());
            }
            Manner::Resets => {
                let half = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    content-length: 1000\r\n\r\ndata: half an ans";
                socket.write_all(half.as_bytes()).await?;
                return Ok(());
            }
        }
    }
}

/// The next call: whom it is for, and its body.
async fn read_call(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<(usize, Vec<u8>)> {
    let end = loop {
        if let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") {
            break end + 4;
        }
        read_more(socket, buffer).await?;
    };
    let head = std::str::from_utf8(&buffer[..end])?;
    let agent = head
        .strip_prefix("POST /")
        .and_then(|rest| rest.split('/').next())
        .ok_or("a call for nobody")?
        .parse()?;
    let length: usize = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .ok_or("a call without a length")?
        .1
        .trim()
        .parse()?;
    while buffer.len() < end + length {
        read_more(socket, buffer).await?;
    }
    let rest = buffer.split_off(end + length);
    let body = std::mem::replace(buffer, rest).split_off(end);
    Ok((agent, body))
}

async fn read_more(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    match socket.read_buf(buffer).await? {
        0 => Err("the server closed the connection".into()),
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
