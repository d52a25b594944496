//! Connections, streams, heads and bodies are bounded in number and in time.

use crate::harness::{DEADLINE, Engine, Setup, TestServer, eventually};
use std::io;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

fn setup() -> Setup {
    Setup::new(Engine::Sqlite)
}

async fn connect(server: &TestServer) -> TcpStream {
    let address = server.base_url().strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// Sends this and reads until the server closes the connection.
async fn says_and_hears(mut socket: TcpStream, text: &str) -> String {
    socket.write_all(text.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    let reading = async {
        match socket.read_to_end(&mut heard).await {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("{error}"),
            _ => {}
        }
    };
    let closed = tokio::time::timeout(DEADLINE, reading).await;
    assert!(closed.is_ok(), "the connection stays open after {text:?}");
    String::from_utf8(heard).unwrap()
}

const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test]
async fn stalled_bodies_are_ended() {
    let server = setup().env("LIMITS__BODY_SECONDS", "1").start().await;
    let head = "POST /rooms HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    for body in [
        "content-length: 100\r\n\r\n{",
        "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    ] {
        let stalled: Vec<_> = (0..20)
            .map(|_| async {
                says_and_hears(connect(&server).await, &format!("{head}{body}")).await
            })
            .collect();
        for heard in futures_util::future::join_all(stalled).await {
            assert!(heard.starts_with("HTTP/1.1 40"), "{heard}");
        }
    }
}

#[tokio::test]
async fn slow_heads_and_idle_connections_are_ended() {
    let server = setup().env("LIMITS__HEAD_SECONDS", "1").start().await;
    says_and_hears(connect(&server).await, "").await;
    says_and_hears(connect(&server).await, "GET /health HTTP/1.1\r\nhost").await;
    let heard = says_and_hears(connect(&server).await, HEALTH).await;
    assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_no_more() {
    let setup = setup().env("LIMITS__CONNECTIONS_PER_ADDRESS", "3");
    let server = setup
        .clone()
        .env("NETWORK__TRUSTED_PROXIES", "[]")
        .start()
        .await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(connect(&server).await);
    }
    let refused = "HTTP/1.1 429";
    let close = "GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    // The fourth may be seen before the others are counted.
    let heard = eventually("a connection is refused", async || {
        let heard = says_and_hears(connect(&server).await, close).await;
        heard.starts_with(refused).then_some(heard)
    })
    .await;
    assert!(heard.contains("retry-after: 10"), "{heard}");
    assert!(heard.contains("Too many connections"), "{heard}");
    held.clear();
    eventually("there is room again", async || {
        let heard = says_and_hears(connect(&server).await, close).await;
        heard.starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
    // A proxy's connections are everybody's.
    let behind_a_proxy = setup.start().await;
    for _ in 0..5 {
        held.push(connect(&behind_a_proxy).await);
    }
    let heard = says_and_hears(connect(&behind_a_proxy).await, close).await;
    assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
}

#[tokio::test]
async fn a_key_and_an_address_have_so_many_streams_and_no_more() {
    let setup = setup().env("LIMITS__STREAMS_PER_KEY", "2");
    let server = setup.env("LIMITS__STREAMS_PER_ADDRESS", "3").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    let stream = format!("/rooms/{room}/stream");
    let held = [viewer.listens(&room).await, viewer.listens(&room).await];
    let words = viewer
        .get(&stream)
        .opens()
        .await
        .unwrap_err()
        .refused(429, "rate_limited");
    assert!(words.contains("with this key"), "{words}");
    let _third = alice.listens(&room).await;
    let other = alice.viewer(&room).await;
    let words = other
        .get(&stream)
        .opens()
        .await
        .unwrap_err()
        .refused(429, "rate_limited");
    assert!(words.contains("your address"), "{words}");
    let _elsewhere = other.from("203.0.113.9").listens(&room).await;
    drop(held);
    eventually("a stream that was closed is not counted", async || {
        viewer.get(&stream).opens().await.ok()
    })
    .await;
}
