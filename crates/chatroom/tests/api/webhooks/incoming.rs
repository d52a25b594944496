//! What other systems post into rooms.

use super::{id, makes, path};
use crate::harness::{PushAgent, Setup, both_engines, metric, one_engine};
use aws_lc_rs::hmac;
use serde_json::{Value, json};

both_engines![a_webhook_posts_under_its_name];
one_engine![
    what_github_sends_is_checked_and_posted_once,
    alerts_and_other_payloads_are_shown,
    an_address_ends_when_its_owner_says_so,
    a_webhook_has_bounds,
    what_comes_in_is_counted,
];

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
    let server = setup.shared().await;
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
    let server = setup.shared().await;
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

async fn what_comes_in_is_counted(setup: Setup) {
    let server = setup.limit("webhook_messages_per_minute", 1).start().await;
    let (alice, nobody) = (server.user("u_alice"), server.anonymous());
    let room = alice.creates_a_room().await;
    let made = makes(&alice, &room, json!({"kind": "in", "name": "CI"})).await;
    let post = |text: &str| nobody.post(path(&made), json!({"text": text}));
    for _ in 0..2 {
        post("once").header("idempotency-key", "once").await.ok();
    }
    post("too many").await.refused(429, "rate_limited");
    let quiet = post("").header("x-github-event", "status").await.ok();
    assert_eq!(quiet["seq"], Value::Null);
    let nowhere = nobody.post("/hooks/hk_nowhere", json!({"text": "x"}));
    nowhere.await.refused(404, "not_found");
    let request = nobody.request(reqwest::Method::POST, &path(&made));
    request.body("{").await.refused(400, "bad_request");
    for (outcome, times) in [
        ("posted", 1),
        ("repeated", 1),
        ("limited", 1),
        ("ignored", 1),
        ("refused", 2),
    ] {
        let line = format!("sc_chatroom_webhook_posts_total{{outcome=\"{outcome}\"}} {times}");
        metric(&server, &line).await;
    }
}
