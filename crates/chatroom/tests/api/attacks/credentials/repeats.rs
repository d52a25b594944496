//! A lost answer leaves nobody without a token: the same Idempotency-Key gives the same answer,
//! to the same caller.

use super::OTTER;
use crate::harness::{Caller, Engine, Setup, both_engines};
use serde_json::{Value, json};

both_engines![
    the_same_key_gives_the_same_answer_and_does_nothing_twice,
    an_answer_is_its_callers_own,
    one_key_at_once_joins_once,
    a_kept_answer_holds_no_token_in_clear,
];

const SECRET: &str = "5f0c2c9e-9c39-4d55-8a0e-9a4f1c1d2b3a";

/// Sends the same twice, as whoever lost the answer does; gives the answer.
async fn twice(caller: &Caller, path: &str, body: Value) -> Value {
    let send = || {
        let request = caller.post(path, body.clone());
        request.header("idempotency-key", SECRET)
    };
    let first = send().await.created();
    assert_eq!(send().await.created(), first, "{path}");
    first
}

async fn the_same_key_gives_the_same_answer_and_does_nothing_twice(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = twice(&alice, "/rooms", json!({"name": "once"})).await;
    let room = room["room_id"].as_str().unwrap();
    let rooms = alice.get("/rooms").await.ok();
    assert_eq!(rooms["rooms"].as_array().unwrap().len(), 1);

    let path = format!("/rooms/{room}/invites");
    let invite = twice(&alice, &path, json!({})).await;
    let invites = alice.get(&path).await.ok();
    assert_eq!(invites["invites"].as_array().unwrap().len(), 1);

    let keys = format!("/rooms/{room}/room-keys");
    twice(&alice, &keys, json!({"for_user_id": "u_alice"})).await;
    let listed = alice.get(&keys).await.ok();
    assert_eq!(listed["room_keys"].as_array().unwrap().len(), 1);

    let path = format!("/rooms/{room}/join");
    let code = &invite["invite_code"];
    let body = json!({"invite_code": code, "adapter_type": "pull", "user_id": OTTER});
    let nobody = server.anonymous();
    let joined = twice(&nobody, &path, body.clone()).await;
    let agent = nobody.with_token(joined["member_token"].as_str().unwrap());
    agent.says(room, "in after all").await;

    // Another request under the same key is told apart, and without the key it is an own request.
    let mut other = body.clone();
    other["user_id"] = json!("sunny_willow-7e2bd401");
    let reply = nobody.post(&path, other);
    let reply = reply.header("idempotency-key", SECRET).await;
    assert!(
        reply
            .refused(400, "bad_request")
            .contains("another request")
    );
    let reply = nobody.post(&path, body.clone()).await;
    reply.refused(400, "invite_invalid");

    // Over a restart, too.
    server.restart().await;
    let again = server.anonymous().post(&path, body);
    let again = again.header("idempotency-key", SECRET).await;
    assert_eq!(again.created(), joined);
}

async fn an_answer_is_its_callers_own(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let body = json!({"name": "once"});
    let hers = twice(&alice, "/rooms", body.clone()).await;
    let his = twice(&bob, "/rooms", body).await;
    assert_ne!(hers["room_id"], his["room_id"]);
    let room = hers["room_id"].as_str().unwrap();

    // A stranger knows the key, the agent's id and the room, but has another invite.
    let path = format!("/rooms/{room}/join");
    let join = |code: &str| json!({"invite_code": code, "adapter_type": "pull", "user_id": OTTER});
    let nobody = server.anonymous();
    let joined = twice(&nobody, &path, join(&alice.invites(room).await)).await;
    for code in [alice.invites(room).await, "inv_x.y.z".to_owned()] {
        let reply = nobody.post(&path, join(&code));
        let reply = reply.header("idempotency-key", SECRET).await;
        assert!(matches!(reply.status, 400 | 409), "{}", reply.text());
        let token = joined["member_token"].as_str().unwrap();
        assert!(!reply.text().contains(token));
    }
    // Whoever has no token is known by the key, so it is not one that others think of.
    let code = alice.invites(room).await;
    let short = nobody.post(&path, join(&code));
    let words = short.header("idempotency-key", "1").await;
    assert!(words.refused(400, "bad_request").contains("UUID"));
}

async fn one_key_at_once_joins_once(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites_with(&room, json!({"max_uses": 20})).await;
    let body = json!({"invite_code": code, "adapter_type": "pull", "user_id": OTTER});
    let path = format!("/rooms/{room}/join");
    let asking: Vec<_> = (0..6)
        .map(|_| {
            let request = server.anonymous().post(&path, body.clone());
            let request = request.header("idempotency-key", SECRET);
            tokio::spawn(async move { request.await.created() })
        })
        .collect();
    let mut answers = Vec::new();
    for answer in asking {
        answers.push(answer.await.unwrap());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let invites = alice.get(format!("/rooms/{room}/invites")).await.ok();
    assert_eq!(invites["invites"][0]["uses"], 1);
}

async fn a_kept_answer_holds_no_token_in_clear(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let code = alice.invites(&room).await;
    let body = json!({"invite_code": code, "adapter_type": "pull", "user_id": OTTER});
    let joined = twice(&server.anonymous(), &format!("/rooms/{room}/join"), body).await;
    let token = joined["member_token"].as_str().unwrap();
    let (_, signature) = token.rsplit_once('.').unwrap();
    let stored = server.stored_bytes().await;
    let mut windows = stored.windows(signature.len());
    assert!(!windows.any(|at| at == signature.as_bytes()));
}

#[tokio::test]
async fn another_node_gives_the_same_answer() {
    let bus = std::env::var("SC_TEST_NATS_URL")
        .expect("SC_TEST_NATS_URL; run `cargo xtask test`, which sets it");
    let one = Setup::new(Engine::Postgres).env("BUS", &bus).start().await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let body = json!({"name": "once"});
    let made = twice(&alice, "/rooms", body.clone()).await;
    let again = alice.at(&two).post("/rooms", body);
    let again = again.header("idempotency-key", SECRET).await;
    assert_eq!(again.created(), made);
}
