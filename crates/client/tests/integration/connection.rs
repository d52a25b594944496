//! What the client does when connections break, against a server that plays a script.

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
    assert!(error.is_transient(), "a gateway may find its server again");
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

/// A message as the server sends it, `via` and all else as given.
fn message(seq: i64, via: &str, more: &str) -> String {
    format!(
        r#"{{"seq":{seq},"sender_user_id":"u_a","sender_user_name":null,"via":"{via}","type":"chat","content":"hi","reply_to_seq":null,"reply_chain_depth":0,"rules_version":1,"created_at":1745000000,"deleted":false,"edited_at":null,"reactions":{{}}{more}}}"#
    )
}

#[tokio::test]
async fn a_message_of_a_later_version_is_read_and_keeps_its_words() {
    let later = message(8, "telepathy", r#","mood":"good""#).replace("\"chat\"", "\"poll\"");
    let (client, _server) = play(vec![stream(&format!("id: 8\ndata: {later}\n\n"))]).await;
    let mut events = client.stream(&room(), None).await.unwrap();
    let Some((_, Event::Message(read))) = events.next().await.unwrap() else {
        panic!("no message");
    };
    assert_eq!(read.via.as_str(), "telepathy");
    assert_eq!(read.r#type.as_str(), "poll");
    let written = serde_json::to_value(&*read).unwrap();
    assert_eq!(written["via"], "telepathy");
    assert_eq!(written["type"], "poll");
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_passed_over_and_not_asked_for_again() {
    let hostile = [
        "{\"seq\":".to_owned(),
        "[]".to_owned(),
        "[".repeat(100_000),
        r#"{"seq":"seven"}"#.to_owned(),
        message(7, &"x".repeat(1000), ""),
    ];
    let frames: String = hostile
        .iter()
        .map(|data| format!("id: 7\nevent: message\ndata: {data}\n\n"))
        .collect();
    let good = message(8, "agent", "");
    let script = vec![
        stream(&format!("retry: 1\n{frames}id: what\ndata: {good}\n\n")),
        stream(&format!("{frames}id: 8\ndata: {good}\n\n")),
        stream(""),
    ];
    let (client, server) = play(script).await;
    let mut events = client.follow(&room(), None);
    for place in [None, Some(Cursor::at(8))] {
        let (cursor, event) = events.next().await.unwrap();
        assert_eq!(cursor, place);
        assert!(matches!(event, Event::Message(message) if message.seq == 8));
    }
    // The third connection asks for what comes after the good one.
    let third = tokio::select! {
        asked = server => asked.unwrap().remove(2),
        event = events.next() => panic!("{event:?}"),
    };
    assert!(third.contains("last-event-id: 8\r\n"), "{third}");
}

#[tokio::test]
async fn a_message_on_a_page_that_cannot_be_read_is_left_out() {
    let (good, later) = (message(8, "agent", ""), message(9, "telepathy", ""));
    let body = format!(
        r#"{{"room_id":"rm_8f3kz2","messages":[{{"seq":7}},7,{good},{later}],"latest_seq":9}}"#
    );
    let (client, _server) = play(vec![reply("200 OK", "", &body)]).await;
    let page = client.messages(&room(), &Default::default()).await.unwrap();
    let seqs: Vec<_> = page.messages.iter().map(|message| message.seq).collect();
    assert_eq!(seqs, [8, 9]);
}

#[tokio::test]
async fn a_page_where_a_stream_should_be_is_an_error() {
    let html = reply("200 OK", "content-type: text/html\r\n", "<html>");
    let (client, _server) = play(vec![html]).await;
    let error = client.stream(&room(), None).await.unwrap_err();
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
