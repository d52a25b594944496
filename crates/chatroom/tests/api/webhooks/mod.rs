//! Webhooks: what other systems post into rooms, and what rooms tell other systems.

mod incoming;
pub mod outgoing;

use crate::harness::{Caller, PushAgent, Setup, eventually, one_engine, stand_in};
use axum::{Router, body::Bytes, routing::post};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

one_engine![
    a_loop_through_webhooks_ends,
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

/// An address that posts whatever it is told back through a webhook, and an agent that answers everything.
async fn a_loop_through_webhooks_ends(setup: Setup) {
    let server = setup.shared().await;
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

async fn what_a_webhook_is_made_of_is_checked(setup: Setup) {
    let server = setup.shared().await;
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
