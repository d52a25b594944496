//! A lean HTTP/1.1 client for one keep-alive connection.
//!
//! The load generator shares the machine with what it measures, so each cycle it spends is a cycle
//! the server lacks. Requests are therefore bytes made beforehand, and of an answer only the status
//! and the length are read.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Result;

/// The end of a header block.
const BLANK_LINE: &[u8] = b"\r\n\r\n";

/// One keep-alive connection.
pub struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

/// An answer with its whole body.
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The body, as long as its content-length said.
    pub body: &'a [u8],
}

impl Connection {
    /// Connects without delay of small packets.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(1024),
        })
    }

    /// Sends a request and reads its answer to the last byte.
    pub async fn send(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.socket.write_all(request).await?;
        self.buffer.clear();
        let head = self.read_head().await?;
        let length = head.length.ok_or("an answer without a content-length")?;
        let end = head.end + length;
        while self.buffer.len() < end {
            self.read_more().await?;
        }
        Ok(Answer {
            status: head.status,
            body: &self.buffer[head.end..end],
        })
    }

    /// Sends a JSON request and reads the JSON of its answer; any status but 2xx is an error.
    pub async fn call(
        &mut self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Value> {
        let body = body.map(Value::to_string);
        let request = request(method, path, token, body.as_deref());
        let answer = self.send(&request).await?;
        if !(200..300).contains(&answer.status) {
            let body = String::from_utf8_lossy(answer.body);
            return Err(format!("{method} {path} answered {}: {body}", answer.status).into());
        }
        Ok(serde_json::from_slice(answer.body)?)
    }

    /// Sends a request whose answer has no end, and gives the socket with what follows the head.
    pub async fn open_stream(mut self, request: &[u8]) -> Result<(TcpStream, Vec<u8>)> {
        self.socket.write_all(request).await?;
        let head = self.read_head().await?;
        if head.status != 200 {
            let rest = String::from_utf8_lossy(&self.buffer[head.end..]);
            return Err(format!("the stream answered {}: {rest}", head.status).into());
        }
        let rest = self.buffer.split_off(head.end);
        Ok((self.socket, rest))
    }

    async fn read_head(&mut self) -> Result<Head> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, BLANK_LINE) {
                return Head::parse(&self.buffer[..end + BLANK_LINE.len()]);
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> Result<()> {
        match self.socket.read_buf(&mut self.buffer).await? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }
}

struct Head {
    status: u16,
    length: Option<usize>,
    end: usize,
}

impl Head {
    fn parse(head: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(head)?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 "))
            .and_then(|line| line.get(..3))
            .ok_or("an answer that is not HTTP/1.1")?
            .parse()?;
        let length = lines
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map(|(_, value)| value.trim().parse())
            .transpose()?;
        Ok(Self {
            status,
            length,
            end: head.len(),
        })
    }
}

/// The bytes of a request, with a body if there is one.
pub fn request(method: &str, path: &str, token: Option<&str>, body: Option<&str>) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: bench\r\n");
    if let Some(token) = token {
        head += &format!("authorization: Bearer {token}\r\n");
    }
    if let Some(body) = body {
        head += "content-type: application/json\r\n";
        head += &format!("content-length: {}\r\n", body.len());
    }
    head += "\r\n";
    head += body.unwrap_or_default();
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_status_and_length_of_a_head() {
        let head = Head::parse(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n").unwrap();
        assert_eq!(
            (head.status, head.length, head.end),
            (201, Some(9), 43),
            "status, content-length and where the body begins"
        );
    }

    #[test]
    fn a_request_carries_token_and_body() {
        let bytes = request("POST", "/x", Some("t"), Some("{}"));
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("authorization: Bearer t\r\n"));
        assert!(text.ends_with("content-length: 2\r\n\r\n{}"));
    }
}
