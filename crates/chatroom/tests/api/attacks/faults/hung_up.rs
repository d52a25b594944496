//! What is committed is told, whoever hangs up.

use crate::harness::{Caller, DEADLINE, Setup, TestServer, both_engines, eventually};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{io::AsyncWriteExt, net::TcpStream};

both_engines!(
    an_edit_is_told_when_its_sender_hangs_up,
    a_revoked_key_stops_reading_when_the_owner_hangs_up,
    a_ban_holds_when_the_operator_hangs_up,
);

/// Callers that hang up, each a little later than the one before.
const CALLERS: u64 = 40;
/// On a busy machine it takes more of them until one hangs up late enough.
const MOST_CALLERS: u64 = 120;

async fn an_edit_is_told_when_its_sender_hangs_up(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let mut edited = 0;
    for n in 0..MOST_CALLERS {
        if n >= CALLERS && edited > 0 {
            break;
        }
        // A room of its own: nothing that follows may tell of what was missed.
        let room = alice.creates_a_room().await;
        let seq = alice.says(&room, "before").await;
        let mut events = alice.listens(&room).await;
        let path = format!("/rooms/{room}/messages/{seq}");
        hang_up(
            &server,
            &alice,
            "PATCH",
            &path,
            json!({"content": "after"}),
            n,
        )
        .await;
        if settled(&alice, &room, seq).await == "after" {
            edited += 1;
            let told = tokio::time::timeout(DEADLINE / 4, events.expect("message_edited"));
            let told = told
                .await
                .expect("the edit is told, though its sender has gone");
            assert_eq!(told["seq"], seq);
        }
    }
    assert!(edited > 0, "everybody hung up too early for this test");
}

async fn a_revoked_key_stops_reading_when_the_owner_hangs_up(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let mut revoked = 0;
    for n in 0..MOST_CALLERS {
        if n >= CALLERS && revoked > 0 {
            break;
        }
        let room = alice.creates_a_room().await;
        let viewer = alice.viewer(&room).await;
        let events = viewer.listens(&room).await;
        let path = format!("/rooms/{room}/room-keys");
        hang_up(&server, &alice, "DELETE", &path, Value::Null, n).await;
        // Whatever was begun is over once the room was locked anew.
        alice.says(&room, "after").await;
        if viewer.get(format!("/rooms/{room}/messages")).await.status == 401 {
            revoked += 1;
            tokio::time::timeout(DEADLINE / 4, events.ended())
                .await
                .expect("the stream of a revoked key ends, though its revoker has gone");
        }
    }
    assert!(revoked > 0, "everybody hung up too early for this test");
}

async fn a_ban_holds_when_the_operator_hangs_up(setup: Setup) {
    let server = setup.start().await;
    let operator = server.user_of_type("u_operator", "admin");
    let mut banned = 0;
    for n in 0..MOST_CALLERS {
        if n >= CALLERS && banned > 0 {
            break;
        }
        let mallory = server.user(&format!("u_mallory{n}"));
        let room = mallory.creates_a_room().await;
        let body = json!({"subject": mallory.id()});
        hang_up(&server, &operator, "POST", "/internal/admin/bans", body, n).await;
        // Whatever was begun is over once the store was written to again.
        operator.creates_a_room().await;
        let bans = operator.get("/internal/admin/bans").await.ok();
        let bans = bans["bans"].as_array().unwrap();
        if bans.iter().any(|ban| ban["subject"] == mallory.id()) {
            banned += 1;
            eventually(
                "the ban is known, though the operator has gone",
                async || {
                    let reply = mallory.get(format!("/rooms/{room}/messages")).await;
                    (reply.status != 200).then_some(())
                },
            )
            .await;
        }
    }
    assert!(banned > 0, "everybody hung up too early for this test");
}

/// Sends a request and cuts the connection after a moment, which grows with `n`.
async fn hang_up(
    server: &TestServer,
    caller: &Caller,
    method: &str,
    path: &str,
    body: Value,
    n: u64,
) {
    let address = server.base_url().strip_prefix("http://").unwrap();
    let body = body.to_string();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        caller.token().unwrap(),
        body.len()
    );
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_micros(100 * n * n)).await;
    // A reset, so that the server notices at once.
    socket.set_zero_linger().unwrap();
}

/// The message's text, once it was read twice alike after the caller has gone.
async fn settled(caller: &Caller, room: &str, seq: i64) -> String {
    let mut before = caller.reads(room, seq).await["content"].clone();
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = caller.reads(room, seq).await["content"].clone();
        if now == before {
            return now.as_str().unwrap().to_owned();
        }
        before = now;
    }
}
