//! What rooms tell other systems.

use super::{id, makes};
use crate::harness::{
    DEADLINE, Setup, TestServer, clients, eventually, metric, one_engine, stand_in,
};
use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

one_engine![
    a_deleted_text_is_in_no_later_delivery,
    an_address_that_fails_is_switched_off_and_told,
    a_delivery_goes_nowhere_else,
    what_is_sent_is_counted,
];

/// A receiver in a process of its own, which checks signatures with a library.
struct Receiver {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl Receiver {
    async fn start() -> Self {
        let mut child = Command::new(clients().join("bin/python"))
            .arg("tests/clients/webhook_receiver.py")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().unwrap();
        Self { child, lines, url }
    }

    async fn knows(&mut self, secret: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin
            .write_all(format!("{secret}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn takes(&mut self) -> Value {
        let line = tokio::time::timeout(DEADLINE, self.lines.next_line()).await;
        let line = line.expect("a delivery in time").unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

pub async fn every_event_is_delivered_in_order_over_kills(setup: Setup) {
    let setup = setup.env("FANOUT__RETRY_SECONDS", "[0, 0, 1]");
    let mut server: TestServer = setup.start().await;
    let mut alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "before").await;
    let mut receiver = Receiver::start().await;
    let events = [
        "message",
        "message_edited",
        "message_deleted",
        "reaction_added",
    ];
    let webhook = json!({"kind": "out", "name": "Mirror", "url": receiver.url, "events": events});
    let made = makes(&alice, &room, webhook).await;
    receiver.knows(made["secret"].as_str().unwrap()).await;
    let (mut expected, mut taken) = (Vec::new(), Vec::new());
    for round in 0..3 {
        for n in 0..5 {
            let text = format!("round {round}, message {n}");
            let seq = alice.says(&room, &text).await;
            expected.push(("message".to_owned(), text));
            let message = format!("/rooms/{room}/messages/{seq}");
            if n == 1 {
                let edit = json!({"content": "edited"});
                alice.patch(&message, edit).await.ok();
                expected.push(("message_edited".to_owned(), "edited".to_owned()));
            }
            if n == 2 {
                let react = json!({"emoji": "👍"});
                alice.post(format!("{message}/reactions"), react).await.ok();
                expected.push(("reaction_added".to_owned(), "👍".to_owned()));
            }
        }
        // In the middle of it.
        let event = receiver.takes().await;
        taken.push(event);
        server.kill9();
        server.restart().await;
        alice = alice.at(&server);
    }
    // Each of them once or more, under one id, and in their order.
    let mut order: Vec<Value> = Vec::new();
    let mut waiting = taken.into_iter();
    while order.len() < expected.len() {
        let event = match waiting.next() {
            Some(event) => event,
            None => receiver.takes().await,
        };
        if order.iter().all(|known| known["id"] != event["id"]) {
            order.push(event);
        }
    }
    let told: Vec<(String, String)> = order
        .iter()
        .map(|event| {
            let data = &event["data"];
            assert_eq!(data["room_id"], room);
            let words = data.get("emoji").unwrap_or(&data["content"]);
            (
                event["type"].as_str().unwrap().to_owned(),
                words.as_str().unwrap().to_owned(),
            )
        })
        .collect();
    // An edit that came before its message was sent is in it already.
    let expected: Vec<_> = expected.into_iter().collect();
    for ((kind, words), (told_kind, told_words)) in expected.iter().zip(&told) {
        assert_eq!(kind, told_kind, "{told:#?}");
        let edited = words.ends_with("message 1") && told_words == "edited";
        assert!(words == told_words || edited, "{words}, not {told_words}");
    }
    let log = format!("/rooms/{room}/webhooks/{}/deliveries", id(&made));
    let log = eventually("the log is complete", async || {
        let log = alice.get(&log).await.ok();
        let rows = log["deliveries"].as_array().unwrap().clone();
        let done = rows.iter().all(|row| row["state"] == "delivered");
        (done && rows.len() == expected.len()).then_some(rows)
    })
    .await;
    let first = log.last().unwrap();
    assert_eq!(
        (&first["event"], &first["status"]),
        (&json!("message"), &json!(204))
    );
    assert!(
        log.iter().any(|row| row["attempts"].as_i64() > Some(1)),
        "{log:#?}"
    );
}

/// An address that answers with this status, and what it was sent.
struct Address {
    url: String,
    status: Arc<Mutex<StatusCode>>,
    taken: Arc<Mutex<Vec<Value>>>,
}

impl Address {
    async fn start(status: StatusCode) -> Self {
        let status = Arc::new(Mutex::new(status));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (answer, heard) = (status.clone(), taken.clone());
        let routes = Router::new().route(
            "/{*path}",
            post(move |headers: HeaderMap, body: Bytes| async move {
                let mut event: Value = serde_json::from_slice(&body).unwrap();
                event["id"] = json!(headers["webhook-id"].to_str().unwrap());
                heard.lock().unwrap().push(event);
                let status = *answer.lock().unwrap();
                (status, [("location", "/elsewhere")], "x".repeat(100_000))
            }),
        );
        let url = format!("{}/secret-path", stand_in(routes).await);
        Self { url, status, taken }
    }

    fn taken(&self) -> Vec<Value> {
        self.taken.lock().unwrap().clone()
    }

    async fn has_taken(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(what, async || self.taken().into_iter().find(&is)).await
    }
}

async fn a_deleted_text_is_in_no_later_delivery(setup: Setup) {
    let setup = setup.env("FANOUT__RETRY_SECONDS", "[1]");
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let address = Address::start(StatusCode::INTERNAL_SERVER_ERROR).await;
    let webhook = json!({"kind": "out", "name": "Out", "url": address.url});
    let made = makes(&alice, &room, webhook).await;
    let first = alice.says(&room, "first").await;
    let second = alice.says(&room, "a secret").await;
    address
        .has_taken("the first is tried", |e| e["data"]["seq"] == first)
        .await;
    alice
        .delete(format!("/rooms/{room}/messages/{second}"))
        .await
        .ok();
    *address.status.lock().unwrap() = StatusCode::OK;
    let sent = address
        .has_taken("the second comes", |e| e["data"]["seq"] == second)
        .await;
    assert_eq!(
        (&sent["data"]["deleted"], &sent["data"]["content"]),
        (&json!(true), &json!(""))
    );
    let deleted = address
        .has_taken("its deletion comes", |e| e["type"] == "message_deleted")
        .await;
    assert_eq!(deleted["data"]["seq"], second);
    assert!(!json!(address.taken()).to_string().contains("a secret"));
    // Every attempt has the same id, which the log tells.
    let ids: Vec<Value> = address
        .taken()
        .iter()
        .filter(|e| e["data"]["seq"] == first)
        .map(|e| e["id"].clone())
        .collect();
    assert!(ids.len() > 1 && ids.iter().all(|id| *id == ids[0]));
    let log = alice
        .get(format!("/rooms/{room}/webhooks/{}/deliveries", id(&made)))
        .await;
    let text = log.text().to_owned();
    assert!(
        text.contains(ids[0].as_str().unwrap()) && !text.contains("secret"),
        "{text}"
    );
}

async fn an_address_that_fails_is_switched_off_and_told(setup: Setup) {
    let setup = setup.env("FANOUT__WEBHOOK_FAILING_SECONDS", "1");
    let server = setup.env("FANOUT__RETRY_SECONDS", "[1]").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let address = Address::start(StatusCode::SERVICE_UNAVAILABLE).await;
    let webhook = json!({"kind": "out", "name": "Out", "url": address.url});
    let made = makes(&alice, &room, webhook).await;
    let seq = alice.says(&room, "hello").await;
    let list = format!("/rooms/{room}/webhooks");
    eventually("it is switched off", async || {
        let listed = alice.get(&list).await.ok();
        (listed["webhooks"][0]["enabled"] == false).then_some(())
    })
    .await;
    let hook = alice.get(&list).await.ok()["webhooks"][0].clone();
    let why = "the address answered with status 503";
    assert_eq!(hook["disabled_reason"], why);
    let read = alice
        .get(format!("/rooms/{room}/messages?since={seq}"))
        .await
        .ok();
    let read = read["messages"].as_array().unwrap().clone();
    let told = format!("The webhook {} is switched off: {why}", id(&made));
    let is_told = |m: &Value| m["content"].as_str().unwrap().starts_with(&told);
    assert!(read.iter().any(is_told), "{read:?}");
    alice.says(&room, "while it was off").await;
    *address.status.lock().unwrap() = StatusCode::OK;
    let on = json!({"enabled": true});
    alice.patch(format!("{list}/{}", id(&made)), on).await.ok();
    address
        .has_taken("it goes on", |e| e["data"]["content"] == "while it was off")
        .await;
    // Nobody is there any more.
    *address.status.lock().unwrap() = StatusCode::GONE;
    alice.says(&room, "are you there?").await;
    eventually("it is switched off at once", async || {
        let listed = alice.get(&list).await.ok();
        (listed["webhooks"][0]["enabled"] == false).then_some(())
    })
    .await;
}

async fn a_delivery_goes_nowhere_else(setup: Setup) {
    let server = setup.env("FANOUT__RETRY_SECONDS", "[1]").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let address = Address::start(StatusCode::TEMPORARY_REDIRECT).await;
    let made = makes(
        &alice,
        &room,
        json!({"kind": "out", "name": "Out", "url": address.url}),
    )
    .await;
    // Whoever signed in from outside names no address on the operator's network.
    let person = server.user_of_type("u_alice", "access");
    let traded = person.post_nothing("/auth/exchange").await.created();
    let outside = person.with_token(traded["identity_token"].as_str().unwrap());
    let inside = Address::start(StatusCode::OK).await;
    let webhook = json!({"kind": "out", "name": "Inside", "url": inside.url});
    let guarded = makes(&outside.seen_from_outside(), &room, webhook).await;
    alice.says(&room, "hello").await;
    for (made, error) in [
        (&made, "the address answered with status 307"),
        (
            &guarded,
            "the endpoint's address is not one that this server calls for this member",
        ),
    ] {
        let log = format!("/rooms/{room}/webhooks/{}/deliveries", id(made));
        let failed = eventually("the failure is in the log", async || {
            let log = alice.get(&log).await.ok();
            let first = log["deliveries"][0].clone();
            (!first.is_null()).then_some(first)
        })
        .await;
        assert_eq!(
            (&failed["error"], &failed["state"]),
            (&json!(error), &json!("retrying"))
        );
    }
    assert!(inside.taken().is_empty());
    assert!(
        address
            .taken()
            .iter()
            .all(|event| event["type"] == "message")
    );
    let log = server.log();
    assert!(!log.contains("secret-path"), "an address may be a secret");
}

async fn what_is_sent_is_counted(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let address = Address::start(StatusCode::OK).await;
    let webhook = json!({"kind": "out", "name": "Out", "url": address.url});
    makes(&alice, &room, webhook).await;
    let counted = async |outcome: &str, times: u32| {
        let line = format!("sc_chatroom_webhook_deliveries_total{{outcome=\"{outcome}\"}} {times}");
        metric(&server, &line).await;
    };
    for n in 1..=2 {
        alice.says(&room, "hello").await;
        counted("delivered", n).await;
    }
    *address.status.lock().unwrap() = StatusCode::GONE;
    alice.says(&room, "are you there?").await;
    counted("failed", 1).await;
    counted("switched_off", 1).await;
    counted("delivered", 2).await;
}
