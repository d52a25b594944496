//! A proxy between the daemon and its server that does to streams what proxies do.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

/// What becomes of a room's stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Streams {
    /// It comes through.
    Pass,
    /// It is answered with 502.
    Refuse,
    /// Its head comes through, its body is kept.
    Swallow,
    /// What it says in its first second comes through, the rest is kept.
    Hold,
    /// It is cut every two seconds.
    Cut,
}

/// A proxy, gone when the test ends.
pub struct Proxy {
    pub url: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    upstream: String,
    streams: Mutex<Streams>,
    /// The last part of a path, and how many answers to such requests are still to be lost.
    losing: Mutex<(String, usize)>,
    /// The last part of a path, to whose requests the answers wait here.
    held: watch::Sender<Option<String>>,
    /// How often each path was asked for.
    asked: Mutex<HashMap<String, usize>>,
    /// For the last part of a path, how many such requests are under way, and how many ever were.
    crowds: Mutex<HashMap<String, (usize, usize)>>,
    /// The connections that are open, so that a change of mind reaches them.
    open: Mutex<Vec<JoinHandle<()>>>,
}

impl Proxy {
    /// A proxy before the server at this address.
    pub async fn before(server: &str, streams: Streams) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            upstream: server.trim_start_matches("http://").to_owned(),
            streams: Mutex::new(streams),
            losing: Mutex::default(),
            held: watch::Sender::default(),
            asked: Mutex::default(),
            crowds: Mutex::default(),
            open: Mutex::default(),
        });
        let accepting = tokio::spawn({
            let shared = shared.clone();
            async move {
                while let Ok((connection, _)) = listener.accept().await {
                    let serve = shared.clone().serve(connection);
                    let task = tokio::spawn(async move {
                        // Either side may go away at any time.
                        let _ = serve.await;
                    });
                    shared.open.lock().unwrap().push(task);
                }
            }
        });
        Self {
            url,
            shared,
            accepting,
        }
    }

    /// From now on; connections that are open are cut.
    pub fn set(&self, streams: Streams) {
        *self.shared.streams.lock().unwrap() = streams;
        for task in self.shared.open.lock().unwrap().drain(..) {
            task.abort();
        }
    }

    /// The server gets the next requests whose path ends so, and nobody gets its answers.
    pub fn lose_answers(&self, last: &str, count: usize) {
        *self.shared.losing.lock().unwrap() = (last.to_owned(), count);
    }

    /// The server gets the requests whose path ends so, and its answers wait here.
    pub fn hold_answers(&self, last: &str) {
        self.shared.held.send_replace(Some(last.to_owned()));
    }

    /// Answers that wait, and later ones, come through.
    pub fn release_answers(&self) {
        self.shared.held.send_replace(None);
    }

    /// How often a path was asked for.
    pub fn asked(&self, path: &str) -> usize {
        let asked = self.shared.asked.lock().unwrap();
        asked.get(path).copied().unwrap_or_default()
    }

    /// How many requests were under way at once whose path ends so.
    pub fn most_at_once(&self, last: &str) -> usize {
        let crowds = self.shared.crowds.lock().unwrap();
        crowds.get(last).map_or(0, |(_, most)| *most)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    /// Passes one request on, and its reply back.
    async fn serve(self: Arc<Self>, mut below: TcpStream) -> io::Result<()> {
        let (head, body) = read_head(&mut below).await?;
        let mut lines = head.lines();
        let request = lines.next().unwrap_or_default();
        let path = request.split(' ').nth(1).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default().to_owned();
        *self.asked.lock().unwrap().entry(path.clone()).or_default() += 1;
        let last = path.rsplit('/').next().unwrap_or_default();
        let _one_more = Guest::of(&self, last);
        let streams = match last == "stream" {
            true => *self.streams.lock().unwrap(),
            false => Streams::Pass,
        };
        if streams == Streams::Refuse {
            let refusal =
                "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\nconnection: close\r\n\r\nno\n";
            return below.write_all(refusal.as_bytes()).await;
        }

        let mut above = TcpStream::connect(&self.upstream).await?;
        let kept = lines.filter(|line| {
            !line.is_empty() && !line.to_ascii_lowercase().starts_with("connection:")
        });
        let kept: String = kept.map(|line| format!("{line}\r\n")).collect();
        let head = format!("{request}\r\nconnection: close\r\n{kept}\r\n");
        above.write_all(head.as_bytes()).await?;
        above.write_all(&body).await?;
        let (mut from_below, mut to_below) = below.split();
        let (mut from_above, mut to_above) = above.split();
        let up = tokio::io::copy(&mut from_below, &mut to_above);
        let lost = self.loses_answer_of(last);
        let down = async {
            if lost {
                return tokio::io::copy(&mut from_above, &mut tokio::io::sink()).await;
            }
            let mut held = self.held.subscribe();
            let _ = held.wait_for(|held| held.as_deref() != Some(last)).await;
            match streams {
                Streams::Swallow => {
                    let (head, _) = read_head(&mut from_above).await?;
                    to_below.write_all(head.as_bytes()).await?;
                    tokio::io::copy(&mut from_above, &mut tokio::io::sink()).await
                }
                Streams::Hold => {
                    let copy = tokio::io::copy(&mut from_above, &mut to_below);
                    let _ = timeout(Duration::from_secs(1), copy).await;
                    tokio::io::copy(&mut from_above, &mut tokio::io::sink()).await
                }
                Streams::Cut => {
                    let copy = tokio::io::copy(&mut from_above, &mut to_below);
                    timeout(Duration::from_secs(2), copy).await.unwrap_or(Ok(0))
                }
                Streams::Pass | Streams::Refuse => {
                    tokio::io::copy(&mut from_above, &mut to_below).await
                }
            }
        };
        tokio::select! {
            done = down => done.map(drop),
            // Whoever asked has gone.
            done = up => done.map(drop),
        }
    }

    fn loses_answer_of(&self, last: &str) -> bool {
        let mut losing = self.losing.lock().unwrap();
        let (path, count) = &mut *losing;
        let loses = path == last && *count > 0;
        *count -= usize::from(loses);
        loses
    }
}

/// A request that is under way.
struct Guest<'a> {
    shared: &'a Shared,
    last: String,
}

impl<'a> Guest<'a> {
    fn of(shared: &'a Shared, last: &str) -> Self {
        let mut crowds = shared.crowds.lock().unwrap();
        let (now, most) = crowds.entry(last.to_owned()).or_default();
        *now += 1;
        *most = (*most).max(*now);
        let last = last.to_owned();
        Self { shared, last }
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        if let Some((now, _)) = self.shared.crowds.lock().unwrap().get_mut(&self.last) {
            *now -= 1;
        }
    }
}

/// A request's or a reply's head, and what came with it.
async fn read_head(from: &mut (impl AsyncReadExt + Unpin)) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if from.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = bytes.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
    }
}
