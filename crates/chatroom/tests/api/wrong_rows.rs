//! Rows that somebody wrote behind the server's back and that it cannot read: they are refused in words,
//! and never taken for something else.

use crate::harness::{Setup, TestServer, both_engines, eventually, one_engine, stand_in};
use axum::{Router, body::Bytes, routing::post};
use serde_json::json;
use std::sync::{Arc, Mutex};

both_engines![what_does_not_fit_its_column_is_refused];
one_engine![
    an_event_that_cannot_be_read_is_not_sent_as_another,
    a_ban_that_cannot_be_read_is_told_and_stops_no_other,
    a_denylist_whose_version_cannot_be_read_is_not_begun_anew,
    a_short_code_that_cannot_be_read_is_no_session_without_an_id,
];

async fn what_does_not_fit_its_column_is_refused(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "hello").await;
    let hook = json!({"kind": "out", "name": "Mirror", "url": "https://a.example"});
    let hooks = format!("/rooms/{room}/webhooks");
    let made = alice.post(&hooks, hook).await.created();
    let hook = made["webhook"]["id"].as_str().unwrap();
    let sent = format!(
        "INSERT INTO webhook_deliveries (hook_id, seq, sub, event, state, attempts, first_at, last_at) \
         VALUES ('{hook}', 1, 0, 'message', 'delivered', 1, 1, 1)"
    );
    server.run_sql(&sent, &sent).await;
    let deliveries = format!("{hooks}/{hook}/deliveries");
    let (messages, audit) = (
        format!("/rooms/{room}/messages"),
        format!("/rooms/{room}/audit"),
    );
    for (table, column, wrong, right, path) in [
        ("messages", "usage", "'{'", "NULL", &messages),
        ("messages", "event", "'[]'", "NULL", &messages),
        ("room_audit_log", "detail", "'{'", "'{}'", &audit),
        ("room_audit_log", "actor", "'no user'", "'u_a'", &audit),
        (
            "webhook_deliveries",
            "event",
            "'gossip'",
            "'message'",
            &deliveries,
        ),
        (
            "webhooks",
            "events",
            "'[\"gossip\"]'",
            "'[\"message\"]'",
            &hooks,
        ),
    ] {
        let set = async |value: &str| {
            let change = format!("UPDATE {table} SET {column} = {value}");
            server.run_sql(&change, &change).await;
        };
        alice.get(path).await.ok();
        set(wrong).await;
        alice.get(path).await.refused(500, "internal");
        logs(&server, &format!("decoding column {column}:")).await;
        set(right).await;
        alice.get(path).await.ok();
    }
}

async fn an_event_that_cannot_be_read_is_not_sent_as_another(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let told = Arc::new(Mutex::new(Vec::<Bytes>::new()));
    let heard = told.clone();
    let address = Router::new().route(
        "/",
        post(async move |body: Bytes| heard.lock().unwrap().push(body)),
    );
    let url = stand_in(address).await;
    let hook = json!({"kind": "out", "name": "Mirror", "url": url, "events": ["reaction_added"]});
    let hooks = format!("/rooms/{room}/webhooks");
    let made = alice.post(&hooks, hook).await.created();
    let hook = format!("{hooks}/{}", made["webhook"]["id"].as_str().unwrap());
    alice.patch(&hook, json!({"enabled": false})).await.ok();
    let reactions = format!("/rooms/{room}/messages/{seq}/reactions");
    alice.post(reactions, json!({"emoji": "👍"})).await.ok();
    let wrong = "UPDATE events SET data = '{' WHERE kind = 'reaction_added'";
    server.run_sql(wrong, wrong).await;
    alice.patch(&hook, json!({"enabled": true})).await.ok();
    logs(&server, "decoding column data:").await;
    assert_eq!(*told.lock().unwrap(), Vec::<Bytes>::new());
}

async fn a_ban_that_cannot_be_read_is_told_and_stops_no_other(setup: Setup) {
    let mut server = setup.start().await;
    let admin = server.user_of_type("u_admin", "admin");
    let wrong = "INSERT INTO bans (subject, banned_at) VALUES ('no one', 1)";
    server.run_sql(wrong, wrong).await;
    let ban = json!({"subject": "u_eve"});
    admin.post("/internal/admin/bans", ban).await.created();
    let eve = server.user("u_eve");
    eve.get("/rooms").await.refused(403, "forbidden");
    logs(&server, "a ban cannot be read").await;
    let health = admin.get("/health").await.ok();
    let warning = health["warnings"][0].as_str().unwrap();
    assert!(warning.contains("ban cannot be read"), "{warning}");

    server.terminate().await;
    let data = server.data().to_str().unwrap();
    let serve = ["serve", "--data", data, "--listen", "127.0.0.1:0"];
    let refused = server.run_aside(&serve).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let told = "the ban of \"no one\" cannot be read";
    assert!(!refused.status.success() && said.contains(told), "{said}");
    let corrected = "DELETE FROM bans WHERE subject = 'no one'";
    server.run_sql(corrected, corrected).await;
    server.restart().await;
    eve.at(&server)
        .get("/rooms")
        .await
        .refused(403, "forbidden");
}

async fn a_denylist_whose_version_cannot_be_read_is_not_begun_anew(setup: Setup) {
    let server = setup.start().await;
    let admin = server.user_of_type("u_admin", "admin");
    let ban = |user: &str| admin.post("/internal/admin/bans", json!({"subject": user}));
    ban("u_eve").await.created();
    let wrong = "UPDATE meta SET value = 'many' WHERE name = 'denylist_version'";
    server.run_sql(wrong, wrong).await;
    ban("u_mallory").await.refused(500, "internal");
    logs(&server, "denylist_version in the table meta").await;
}

async fn a_short_code_that_cannot_be_read_is_no_session_without_an_id(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let key = json!({"akm_key": "sk_x", "container_id": "1"});
    alice.post("/cli-keys", key).await.created();
    alice.get("/auth/sessions").await.ok();
    let wrong = "UPDATE cli_keys SET sealed_code = 'rubbish'";
    server.run_sql(wrong, wrong).await;
    alice.get("/auth/sessions").await.refused(500, "internal");
    logs(&server, "a short code cannot be read").await;
    // They can be ended all the same.
    alice.delete("/auth/sessions").await.ok();
}

/// Waits until the log has these words.
async fn logs(server: &TestServer, words: &str) {
    eventually(words, async || server.log().contains(words).then_some(())).await;
}
