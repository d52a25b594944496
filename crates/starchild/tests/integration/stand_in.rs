//! A local HTTP server that answers as a test tells it, and remembers what it was asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

/// What somebody asked.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// For example `POST /agent/chat/stream`.
    pub line: String,
    /// Lower-case `name: value` lines.
    pub headers: Vec<String>,
    /// The body.
    pub body: String,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.headers
            .iter()
            .find_map(|line| line.strip_prefix(&prefix))
    }
}

/// The server; it goes with the test's process.
pub struct StandIn {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

type Answer = dyn Fn(&Request, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

impl StandIn {
    /// Answers every request with `answer`, which writes the whole reply.
    pub fn new(
        answer: impl Fn(&Request, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (answer, kept): (Arc<Answer>, _) = (Arc::new(answer), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, kept) = (answer.clone(), kept.clone());
                std::thread::spawn(move || serve(stream, &*answer, &kept));
            }
        });
        Self { address, requests }
    }

    /// Answers every request with this status, content type and body.
    pub fn always(status: &str, kind: &str, body: &str) -> Self {
        let reply = reply(status, kind, body);
        Self::new(move |_, stream| stream.write_all(reply.as_bytes()))
    }

    /// For example `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// A whole reply.
pub fn reply(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn serve(stream: TcpStream, answer: &Answer, kept: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream);
    let mut request = Request::default();
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    request.line = line.trim().trim_end_matches(" HTTP/1.1").to_owned();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.trim().split_once(": ").unwrap();
        request
            .headers
            .push(format!("{}: {value}", name.to_ascii_lowercase()));
    }
    let length = request
        .header("content-length")
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    request.body = String::from_utf8(body).unwrap();
    kept.lock().unwrap().push(request.clone());
    // A client that hangs up first is part of some tests.
    let _ = answer(&request, reader.get_mut());
}
