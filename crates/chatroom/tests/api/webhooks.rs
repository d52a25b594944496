//! Webhooks: what other systems post into rooms, and what rooms tell other systems.

use crate::harness::{
    Caller, DEADLINE, PushAgent, Setup, TestServer, both_engines, clients, eventually, one_engine,
    stand_in,
};
use aws_lc_rs::hmac;
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

both_engines![
    every_event_is_delivered_in_order_over_kills,
    a_webhook_posts_under_its_name,
];
one_engine![
    what_github_sends_is_checked_and_posted_once,
    alerts_and_other_payloads_are_shown,
    an_address_ends_when_its_owner_says_so,
    a_webhook_has_bounds,
    a_loop_through_webhooks_ends,
    a_deleted_text_is_in_no_later_delivery,
    an_address_that_fails_is_switched_off_and_told,
    a_delivery_goes_nowhere_else,
    what_a_webhook_is_made_of_is_checked,
];

async fn makes(owner: &Caller, room: &str, webhook: Value) -> Value {
    let reply = owner.post(format!("/rooms/{room}/webhooks"), webhook).await;
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    reply.created()
}

/// The path of an address that was made.
fn path(made: &Value) -> String {
    let url = made["url"].as_str().unwrap();
    url[url.find("/hooks/").unwrap()..].to_owned()
}

fn id(made: &Value) -> String {
    made["webhook"]["id"].as_str().unwrap().to_owned()
}

async fn a_webhook_posts_under_its_name(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("silent");
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    let made = makes(&alice, &room, json!({"kind": "in", "name": "Build bot"})).await;
    let nobody = server.anonymous();
    let payload = json!({"text": "Done, see <https://ci.example/7|#7>", "username": "root"});
    let posted = nobody.post(path(&made), payload).await.ok();
    assert_eq!(posted["calls_agents"], true);
    let seq = posted["seq"].as_i64().unwrap();
    let message = alice.reads(&room, seq).await;
    assert_eq!(message["content"], "Done, see [#7](https://ci.example/7)");
    assert_eq!(message["via"], "webhook");
    assert_eq!(message["sender_user_name"], "Build bot");
    assert_eq!(message["sender_user_id"], id(&made));
    assert!(agent.seqs(1).await.contains(&seq));
    let listed = alice.get(format!("/rooms/{room}/webhooks")).await;
    let code = path(&made).replace("/hooks/", "");
    assert!(!listed.text().contains(&code), "the address is told once");
    assert_eq!(listed.ok()["webhooks"][0], made["webhook"]);
    // It is no member, has no score, and its code is stored nowhere.
    assert_eq!(alice.sees_member(&room, &id(&made)).await, None);
    let board = alice.get(format!("/rooms/{room}/leaderboard")).await;
    assert!(!board.text().contains("hook_"), "{}", board.text());
    let stored = server.stored_bytes().await;
    assert!(
        !stored
            .windows(code.len())
            .any(|part| part == code.as_bytes())
    );
    assert!(!server.log().contains(&code));
    let audited = alice.audits(&room).await;
    assert!(
        audited
            .iter()
            .any(|(_, action, _)| action == "webhook_created")
    );
}

fn signed(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    let digits: String = tag.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256={digits}")
}

async fn what_github_sends_is_checked_and_posted_once(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let made = makes(
        &alice,
        &room,
        json!({"kind": "in", "name": "GitHub", "signed": true}),
    )
    .await;
    let (address, secret) = (path(&made), made["secret"].as_str().unwrap());
    let issue = json!({"action": "opened", "sender": {"login": "ann"}, "repository": {"full_name": "o/r"},
        "issue": {"number": 3, "title": "@u_alice look", "html_url": "https://github.com/o/r/issues/3"}});
    let body = issue.to_string();
    let send = |signature: &str, delivery: &str| {
        let request = server.anonymous().request(reqwest::Method::POST, &address);
        let request = request.header("x-github-event", "issues");
        let request = request.header("x-github-delivery", delivery);
        request
            .header("x-hub-signature-256", signature)
            .header("content-type", "application/json")
            .body(body.clone())
    };
    let before = alice.latest_seq(&room).await;
    for wrong in [
        "",
        "sha256=00",
        &signed("another", &body),
        &signed(secret, "{}"),
    ] {
        send(wrong, "d1").await.refused(401, "token_invalid");
    }
    let unsigned = server.anonymous().post(&address, issue.clone()).await;
    unsigned.refused(401, "token_invalid");
    assert_eq!(alice.latest_seq(&room).await, before);
    let good = signed(secret, &body);
    let first = send(&good, "d1").await.ok();
    let again = send(&good, "d1").await.ok();
    assert_eq!(first["seq"], again["seq"]);
    assert_eq!(alice.latest_seq(&room).await, before + 1);
    assert_ne!(send(&good, "d2").await.ok()["seq"], first["seq"]);
    let message = alice.reads(&room, before + 1).await;
    let link = "(https://github.com/o/r/issues/3)";
    assert_eq!(
        message["content"],
        format!("**o/r** · ann opened issue [#3 ＠u\\_alice look]{link}")
    );
    assert_eq!(
        message["mentions_me"], false,
        "a stranger's title mentions nobody"
    );
    // GitHub's other way to send it.
    let form = format!("payload={}", body.replace(' ', "+").replace('&', "%26"));
    let request = server.anonymous().request(reqwest::Method::POST, &address);
    let request = request.header("x-github-event", "ping").body(form.clone());
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let posted = request.header("x-hub-signature-256", &signed(secret, &form));
    assert!(posted.await.ok()["seq"].is_i64());
    // A step on the way says nothing.
    let step = json!({"action": "labeled", "issue": {}}).to_string();
    let request = server.anonymous().request(reqwest::Method::POST, &address);
    let request = request
        .header("x-github-event", "issues")
        .body(step.clone());
    let posted = request.header("x-hub-signature-256", &signed(secret, &step));
    assert_eq!(posted.await.ok()["seq"], Value::Null);
}

async fn alerts_and_other_payloads_are_shown(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let made = makes(&alice, &room, json!({"kind": "in", "name": "Alerts"})).await;
    let nobody = server.anonymous();
    let alert = json!({"version": "4", "status": "firing", "commonLabels": {"alertname": "Down"},
        "alerts": [{"status": "firing", "labels": {"alertname": "Down", "instance": "db:1"}, "annotations": {"summary": "db is down"}}]});
    let seq = nobody.post(path(&made), alert).await.ok()["seq"].as_i64();
    let shown = alice.reads(&room, seq.unwrap()).await;
    assert_eq!(
        shown["content"],
        "🔥 **Firing (1)** Down\n- db is down (instance=db:1)"
    );
    let seq = nobody.post(path(&made), json!({"a": [1]})).await.ok()["seq"].as_i64();
    let shown = alice.reads(&room, seq.unwrap()).await;
    assert_eq!(
        shown["content"],
        "```json\n{\n  \"a\": [\n    1\n  ]\n}\n```"
    );
    // A text of its own may mention members.
    let mention = json!({"text": "@u_alice the disk is full"});
    let seq = nobody.post(path(&made), mention).await.ok()["seq"].as_i64();
    assert_eq!(alice.reads(&room, seq.unwrap()).await["mentions_me"], true);
}

async fn an_address_ends_when_its_owner_says_so(setup: Setup) {
    let server = setup.start().await;
    let (alice, nobody) = (server.user("u_alice"), server.anonymous());
    let room = alice.creates_a_room().await;
    let made = makes(&alice, &room, json!({"kind": "in", "name": "CI"})).await;
    let text = json!({"text": "x"});
    let base = format!("/rooms/{room}/webhooks/{}", id(&made));
    alice.patch(&base, json!({"enabled": false})).await.ok();
    nobody
        .post(path(&made), text.clone())
        .await
        .refused(404, "not_found");
    alice.patch(&base, json!({"enabled": true})).await.ok();
    nobody.post(path(&made), text.clone()).await.ok();
    let rotated = alice.post_nothing(format!("{base}/rotate")).await.ok();
    nobody
        .post(path(&made), text.clone())
        .await
        .refused(404, "not_found");
    nobody.post(path(&rotated), text.clone()).await.ok();
    alice
        .patch(format!("/rooms/{room}"), json!({"archived": true}))
        .await
        .ok();
    nobody
        .post(path(&rotated), text.clone())
        .await
        .refused(409, "archived");
    alice
        .patch(format!("/rooms/{room}"), json!({"archived": false}))
        .await
        .ok();
    alice.delete(&base).await.ok();
    nobody
        .post(path(&rotated), text.clone())
        .await
        .refused(404, "not_found");
    alice.delete(&base).await.refused(404, "not_found");
    // Whom the operator bans posts no more, this way either.
    let made = makes(&alice, &room, json!({"kind": "in", "name": "CI"})).await;
    let operator = server.user_of_type("u_root", "admin");
    let ban = json!({"subject": "u_alice"});
    operator.post("/internal/admin/bans", ban).await.created();
    nobody
        .post(path(&made), text)
        .await
        .refused(404, "not_found");
}

async fn a_webhook_has_bounds(setup: Setup) {
    let server = setup.limit("webhook_messages_per_minute", 3).start().await;
    let (alice, nobody) = (server.user("u_alice"), server.anonymous());
    let room = alice.creates_a_room().await;
    let made = makes(&alice, &room, json!({"kind": "in", "name": "CI"})).await;
    let large = json!({"text": "x".repeat(1024 * 1024)});
    nobody
        .post(path(&made), large)
        .await
        .refused(413, "payload_too_large");
    for bad in ["", "{", "hello", "\u{feff}{}"] {
        let request = nobody.request(reqwest::Method::POST, &path(&made));
        request.body(bad).await.refused(400, "bad_request");
    }
    let deep = "[".repeat(100_000);
    let request = nobody.request(reqwest::Method::POST, &path(&made));
    request.body(deep).await.refused(400, "bad_request");
    let long = json!({"text": "é".repeat(100_000)});
    let seq = nobody.post(path(&made), long).await.ok()["seq"].as_i64();
    let shown = alice.reads(&room, seq.unwrap()).await;
    assert!(shown["content"].as_str().unwrap().len() <= 4096);
    nobody.post(path(&made), json!({"text": "2"})).await.ok();
    nobody.post(path(&made), json!({"text": "3"})).await.ok();
    let more = nobody.post(path(&made), json!({"text": "4"})).await;
    more.refused(429, "rate_limited");
    // Another webhook is not held up by it.
    let other = makes(&alice, &room, json!({"kind": "in", "name": "Other"})).await;
    nobody.post(path(&other), json!({"text": "5"})).await.ok();
    for n in 3..=20 {
        let webhook = json!({"kind": "in", "name": format!("Hook {n}")});
        makes(&alice, &room, webhook).await;
    }
    let webhook = json!({"kind": "in", "name": "One more"});
    let more = alice.post(format!("/rooms/{room}/webhooks"), webhook).await;
    more.refused(400, "bad_request");
}

/// An address that posts whatever it is told back through a webhook, and an agent that answers everything.
async fn a_loop_through_webhooks_ends(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let limit = json!({"agent_exchanges_without_person": 6});
    alice.patch(format!("/rooms/{room}"), limit).await.ok();
    let agent = PushAgent::start("always");
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    let back = makes(&alice, &room, json!({"kind": "in", "name": "Back"})).await;
    let (address, told) = (path(&back), Arc::new(Mutex::new(Vec::<Value>::new())));
    let (nobody, heard) = (server.anonymous(), told.clone());
    let echo = Router::new().route(
        "/echo",
        post(move |body: Bytes| async move {
            let event: Value = serde_json::from_slice(&body).unwrap();
            let text = json!({"text": event["data"]["content"]});
            heard.lock().unwrap().push(event);
            nobody.post(address, text).await.ok();
        }),
    );
    let url = format!("{}/echo", stand_in(echo).await);
    makes(
        &alice,
        &room,
        json!({"kind": "out", "name": "Out", "url": url}),
    )
    .await;
    // The agent begins: a person's own word would let it go on.
    server
        .anonymous()
        .post(path(&back), json!({"text": "go"}))
        .await
        .ok();
    let last = eventually("the agents have paused", async || {
        let messages = alice
            .get(format!("/rooms/{room}/messages?limit=200"))
            .await
            .ok();
        let messages = messages["messages"].as_array().unwrap().clone();
        let paused = messages.iter().any(|m| {
            let content = m["content"].as_str().unwrap();
            m["via"] == "system" && content.contains("so they pause")
        });
        paused.then_some(messages)
    })
    .await;
    let by = |via: &str| last.iter().filter(|m| m["via"] == via).count();
    assert!(by("agent") <= 6 && by("webhook") <= 7, "{last:#?}");
    // What came in through a webhook has gone out through none.
    let told = told.lock().unwrap().clone();
    assert!(
        told.iter().all(|event| event["data"]["via"] == "agent"),
        "{told:#?}"
    );
    // An alert is still shown, and calls nobody.
    let calls = agent.calls().await.len();
    let alert = server
        .anonymous()
        .post(path(&back), json!({"text": "fire"}))
        .await
        .ok();
    assert_eq!(alert["calls_agents"], false);
    assert!(alert["seq"].is_i64());
    let person = server.user_of_type("u_alice", "access");
    person.says(&room, "I see").await;
    agent.seqs(calls + 1).await;
    let asked: Vec<Value> = agent.calls().await;
    let fire = alert["seq"].as_i64().unwrap();
    assert!(
        asked
            .iter()
            .all(|call| call["body"]["thread_metadata"]["seq"] != fire)
    );
}

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

async fn every_event_is_delivered_in_order_over_kills(setup: Setup) {
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

async fn what_a_webhook_is_made_of_is_checked(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user_named("u_alice", "Alice");
    let room = alice.creates_a_room().await;
    let url = "https://ci.example/x";
    for wrong in [
        json!({"kind": "in", "name": ""}),
        json!({"kind": "in", "name": "a\nb"}),
        json!({"kind": "in", "name": "Alice"}),
        json!({"kind": "in", "name": "Аlice"}),
        json!({"kind": "in", "name": "system"}),
        json!({"kind": "in", "name": "CI", "url": url}),
        json!({"kind": "sideways", "name": "CI"}),
        json!({"kind": "out", "name": "CI"}),
        json!({"kind": "out", "name": "CI", "url": "ftp://ci.example"}),
        json!({"kind": "out", "name": "CI", "url": "https://me:pw@ci.example"}),
        json!({"kind": "out", "name": "CI", "url": url, "signed": false}),
        json!({"kind": "out", "name": "CI", "url": url, "events": []}),
        json!({"kind": "out", "name": "CI", "url": url, "events": ["everything"]}),
    ] {
        let reply = alice
            .post(format!("/rooms/{room}/webhooks"), wrong.clone())
            .await;
        assert_eq!(
            (reply.status, reply.error()),
            (400, "bad_request"),
            "{wrong}"
        );
    }
    makes(&alice, &room, json!({"kind": "in", "name": "CI"})).await;
    // Nobody takes its name afterwards.
    let bob = server.user_named("u_bob", "CI");
    alice.lets_in_user(&room, &bob).await;
    let bob = alice.sees_member(&room, "u_bob").await.unwrap();
    assert_eq!(bob["user_name"], "CI (u_bob)");
    for reserved in ["rm_welcome"] {
        let webhook = json!({"kind": "in", "name": "CI"});
        let reply = alice
            .post(format!("/rooms/{reserved}/webhooks"), webhook)
            .await;
        assert_eq!(reply.status, 403, "{}", reply.text());
    }
}
