//! A push bearer goes only where its owner sent it.

use crate::harness::{Caller, PushAgent, Setup, agent_id, both_engines, eventually};
use serde_json::{Value, json};

both_engines![
    a_bearer_does_not_follow_to_another_origin,
    an_owner_detaches_an_agent_and_never_redirects_it,
    the_bearer_behind_a_short_code_stays_where_it_was_sent_first,
];

const KEY: &str = "sk_ab12cd34_the_secret_of_the_agent";

fn endpoint(room: &str, user: &str) -> String {
    format!("/rooms/{room}/members/{user}/endpoint")
}

/// Who calls the thief's agent, and with what.
async fn bearers(agent: &PushAgent) -> Vec<Value> {
    let calls = agent.calls().await;
    calls
        .iter()
        .map(|call| call["headers"]["authorization"].clone())
        .collect()
}

async fn sees_key(caller: &Caller, room: &str, user: &str) -> bool {
    let member = caller.sees_member(room, user).await.unwrap();
    member["has_akm_key"].as_bool().unwrap()
}

async fn a_bearer_does_not_follow_to_another_origin(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let bob = server.user("u_bob");
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let (honest, thief) = (PushAgent::start("[SILENT]"), PushAgent::start("[SILENT]"));
    let path = endpoint(&room, "u_bob");
    let first = json!({"agent_endpoint": honest.url(), "akm_key": KEY, "container_id": "c1"});
    bob.put(&path, first.clone()).await.ok();
    alice.says(&room, "for the honest one").await;
    honest.seqs(1).await;

    // Another path at the same place keeps the key.
    let below = format!("{}/below", honest.url());
    let reply = bob.put(&path, json!({"agent_endpoint": below})).await.ok();
    assert_eq!(reply["akm_key_cleared"], Value::Null);
    assert!(sees_key(&alice, &room, "u_bob").await);

    for elsewhere in [
        json!({"agent_endpoint": thief.url()}),
        json!({"agent_endpoint": thief.url(), "container_id": "c1"}),
        json!({"container_id": "c2"}),
    ] {
        bob.put(&path, first.clone()).await.ok();
        let reply = bob.put(&path, elsewhere.clone()).await.ok();
        assert_eq!(reply["akm_key_cleared"], true, "{elsewhere}");
        assert!(KEY.starts_with(reply["prior_akm_prefix"].as_str().unwrap()));
        assert!(!sees_key(&alice, &room, "u_bob").await, "{elsewhere}");
        alice.says(&room, "for whom?").await;
    }
    // With a key of its own, another place is called with that one.
    let moved = json!({"agent_endpoint": thief.url(), "akm_key": "sk_of_its_own"});
    bob.put(&path, moved).await.ok();
    let last = alice.says(&room, "for the new place").await;
    eventually("the new place is called", async || {
        let calls = thief.calls().await;
        let seq = |call: &Value| call["body"]["thread_metadata"]["seq"].as_i64();
        calls
            .iter()
            .any(|call| seq(call) == Some(last))
            .then_some(())
    })
    .await;
    for bearer in bearers(&thief).await {
        assert_eq!(bearer, "Bearer sk_of_its_own");
    }
}

async fn an_owner_detaches_an_agent_and_never_redirects_it(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let bob = server.user("u_bob");
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let honest = PushAgent::start("[SILENT]");
    let path = endpoint(&room, "u_bob");
    let body = json!({"agent_endpoint": honest.url(), "akm_key": KEY});
    bob.put(&path, body.clone()).await.ok();
    for redirected in [
        json!({"agent_endpoint": "https://eve.example"}),
        json!({"akm_key": "sk_of_eve"}),
        json!({"container_id": "c9"}),
        body.clone(),
        json!({}),
    ] {
        let words = alice.put(&path, redirected).await.refused(403, "forbidden");
        assert!(words.contains("detach"), "{words}");
    }
    // A key that was made to be shared changes nothing, not even its own member's.
    for key in [
        bob.viewer(&room).await,
        bob.viewer_with(&room, "view").await,
    ] {
        for body in [body.clone(), json!({"agent_endpoint": ""})] {
            let reply = key.put(&path, body).await;
            reply.refused(403, "key_scope_insufficient");
        }
    }
    let reply = agent.put(&path, json!({"agent_endpoint": ""})).await;
    reply.refused(403, "key_scope_insufficient");
    assert!(sees_key(&alice, &room, "u_bob").await);

    let detach = json!({"agent_endpoint": ""});
    let reply = alice.put(&path, detach.clone()).await.ok();
    assert_eq!(reply["akm_key_cleared"], true);
    let member = alice.sees_member(&room, "u_bob").await.unwrap();
    assert_eq!(
        (&member["has_agent_endpoint"], &member["has_akm_key"]),
        (&json!(false), &json!(false))
    );
    let audit = alice.audits(&room).await;
    assert!(audit.contains(&("u_alice".into(), "endpoint_detached".into(), json!("u_bob"))));
    // The member attaches it again, and detaches it itself.
    bob.put(&path, body).await.ok();
    let seq = alice.says(&room, "called again").await;
    assert_eq!(honest.seqs(1).await, [seq]);
    bob.put(&path, detach).await.ok();
    let both = json!({"agent_endpoint": "", "akm_key": "k"});
    bob.put(&path, both).await.refused(400, "bad_request");
}

async fn the_bearer_behind_a_short_code_stays_where_it_was_sent_first(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (honest, thief) = (PushAgent::start("always"), PushAgent::start("always"));
    let path = endpoint(&room, "u_alice");
    let attach = json!({"agent_endpoint": honest.url(), "akm_key": KEY, "container_id": "c1"});
    let code = async || {
        let body = json!({"akm_key": "sk_behind_the_code", "container_id": "c1"});
        let made = alice.post("/cli-keys", body).await.created();
        made["code"].as_str().unwrap().to_owned()
    };
    let calls = async |code: &str| {
        let cli = server.anonymous().with_token(code).seen_from_outside();
        let question = json!({"message": "What is up?", "thread_id": "cli-1"});
        assert_eq!(cli.post("/agent/chat/stream", question).await.status, 200);
    };
    // One is made before the agent is there, and used once; the other is never used.
    let early = code().await;
    alice.put(&path, attach).await.ok();
    calls(&early).await;
    let late = code().await;
    // Whoever got hold of the member's key moves the endpoint.
    let moved = json!({"agent_endpoint": thief.url(), "akm_key": "sk_own", "container_id": "c1"});
    alice.put(&path, moved).await.ok();
    calls(&early).await;
    calls(&late).await;
    assert_eq!(bearers(&honest).await.len(), 3);
    for bearer in bearers(&thief).await {
        assert_ne!(bearer, "Bearer sk_behind_the_code");
    }
}
