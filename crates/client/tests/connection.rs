//! What the client does when connections break, against a server that plays a script.

#![allow(clippy::unwrap_used)]

use client::{Client, ClientError, Cursor, Event, PostMessage, RoomId};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

const POSTED: &str = r#"{"seq":7,"via":"agent","created_at":1745000000}"#;

/// Answers one connection after the other with the next line of the script, cuts it, and in the
/// end gives what each of them asked.
async fn play(script: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in script {
            let (mut connection, _) = listener.accept().await.unwrap();
            asked.push(read_request(&mut connection).await);
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    });
    (Client::new(&format!("http://{address}")).unwrap(), server)
}

async fn read_request(connection: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let mut part = [0; 1024];
        let read = connection.read(&mut part).await.unwrap();
        request.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .split_once("content-length: ")
            .map_or(0, |(_, rest)| rest.lines().next().unwrap().parse().unwrap());
        if body.len() >= length {
            return text;
        }
    }
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )
}

/// The beginning of a stream, cut after these frames.
fn stream(frames: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{frames}"
    )
}

fn room() -> RoomId {
    "rm_8f3kz2".parse().unwrap()
}

fn hello() -> PostMessage {
    PostMessage {
        content: "hello".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_post_with_a_key_is_tried_again_under_the_same_key() {
    let lost = String::new();
    let (client, server) = play(vec![lost, reply("201 Created", "", POSTED)]).await;
    let posted = client.post_message(&room(), &hello(), Some("k1")).await;
    assert_eq!(posted.unwrap().seq, 7);
    for request in server.await.unwrap() {
        assert!(request.contains("idempotency-key: k1"), "{request}");
    }
}

#[tokio::test]
async fn a_post_without_a_key_is_sent_once() {
    let (client, server) = play(vec![String::new()]).await;
    let posted = client.post_message(&room(), &hello(), None).await;
    assert!(matches!(posted, Err(ClientError::Transport(_))));
    assert_eq!(server.await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_error_carries_its_code_and_how_long_to_wait() {
    let body = r#"{"error":"agent_cooldown","message":"Wait."}"#;
    let answer = reply("429 Too Many Requests", "retry-after: 15\r\n", body);
    let (client, _server) = play(vec![answer]).await;
    let error = client
        .post_message(&room(), &hello(), Some("k"))
        .await
        .unwrap_err();
    assert_eq!(
        error.code(),
        Some(client::protocol::ErrorCode::AgentCooldown)
    );
    let ClientError::Api { retry_after, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(retry_after, Some(Duration::from_secs(15)));
}

#[tokio::test]
async fn an_error_without_a_body_is_no_answer_of_a_room_server() {
    let (client, _server) = play(vec![reply("502 Bad Gateway", "", "<html>")]).await;
    let error = client.room(&room()).await.unwrap_err();
    assert!(matches!(error, ClientError::NoErrorBody(502)), "{error}");
    assert!(error.is_passing(), "a gateway may find its server again");
}

#[tokio::test]
async fn a_follower_resumes_where_the_connection_broke() {
    let script = vec![
        stream("retry: 1\nid: 41\n\n"),
        stream("id: 42.1\nevent: message_deleted\ndata: {\"seq\":40}\n\nid: 42.2\nevent: mess"),
        stream("id: 42.2\nevent: message_deleted\ndata: {\"seq\":41}\n\n"),
        reply(
            "401 Unauthorized",
            "",
            r#"{"error":"key_invalid","message":"Revoked."}"#,
        ),
    ];
    let (client, server) = play(script).await;
    let mut events = client.follow(&room(), None);
    for (sub, seq) in [(1, 40), (2, 41)] {
        let (cursor, event) = events.next().await.unwrap();
        assert_eq!(cursor, Some(Cursor { seq: 42, sub }));
        assert_eq!(event, Event::MessageDeleted { seq });
    }
    let error = events.next().await.unwrap_err();
    assert_eq!(error.status(), Some(401));

    let asked = server.await.unwrap();
    assert!(!asked[0].contains("last-event-id"));
    for (request, cursor) in asked[1..].iter().zip(["41", "42.1", "42.2"]) {
        let header = format!("last-event-id: {cursor}\r\n");
        assert!(request.contains(&header), "{request}");
    }
}

#[tokio::test]
async fn a_stream_that_sends_what_is_no_event_is_an_error() {
    let (client, _server) = play(vec![stream("event: message\ndata: {\"seq\":\n\n")]).await;
    let mut events = client.stream(&room(), None).await.unwrap();
    let error = events.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol(_)), "{error}");
}

#[tokio::test]
async fn ids_are_escaped_in_the_path() {
    let (client, server) = play(vec![reply("200 OK", "", r#"{"ok":true,"removed":true}"#)]).await;
    client.unreact(&room(), 3, "👍/..?x").await.unwrap();
    let asked = server.await.unwrap();
    let path = "/rooms/rm_8f3kz2/messages/3/reactions/%f0%9f%91%8d%2f..%3fx ";
    assert!(asked[0].contains(path), "{}", asked[0]);
}

#[tokio::test]
async fn a_token_is_in_no_debug_output_and_in_no_error() {
    let client = Client::new("http://127.0.0.1:1")
        .unwrap()
        .with_token("eyJsecret")
        .unwrap();
    let error = client.health().await.unwrap_err();
    for text in [
        format!("{client:?}"),
        format!("{error:?}"),
        error.to_string(),
    ] {
        assert!(!text.contains("eyJsecret"), "{text}");
    }
    assert!(client.with_token("line\nbreak").is_err());
}

#[test]
fn an_address_that_is_none_is_refused() {
    for bad in ["", "localhost:8080", "ftp://example.org", "http://"] {
        assert!(Client::new(bad).is_err(), "{bad}");
    }
}
