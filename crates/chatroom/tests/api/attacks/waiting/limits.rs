//! Every write has a limit, by member and by address, which holds over nodes.

use crate::harness::{Caller, Engine, Setup, TestServer, both_engines};
use reqwest::Method;
use serde_json::{Value, json};

both_engines!(
    every_kind_of_write_has_a_limit,
    all_writes_from_an_address_are_counted_together,
    what_others_do_with_a_members_keys_does_not_use_up_its_limits,
);

/// Twice is fine, the third time is too much.
async fn third_is_refused(caller: &Caller, method: Method, path: &str, body: Value) {
    for _ in 0..2 {
        let reply = caller.request(method.clone(), path).json(&body).await;
        assert_ne!(reply.status, 429, "{method} {path}: {}", reply.text());
    }
    let reply = caller.request(method.clone(), path).json(&body).await;
    assert_eq!(reply.status, 429, "{method} {path}: {}", reply.text());
    let words = reply.refused(429, "rate_limited");
    assert!(words.contains("Try again in"), "{words}");
}

async fn every_kind_of_write_has_a_limit(setup: Setup) {
    let kinds = [
        "edits_per_minute",
        "reactions_per_minute",
        "invites_per_hour",
        "room_changes_per_hour",
        "key_changes_per_hour",
        "joins_per_hour",
        "member_changes_per_hour",
    ];
    let setup = kinds.iter().fold(setup, |setup, kind| setup.limit(kind, 2));
    let server = setup.limit("rooms_per_hour", 3).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let at = |path: &str| format!("/rooms/{room}{path}");
    let message = at(&format!("/messages/{seq}"));
    let writes = [
        (
            Method::POST,
            "/rooms".to_owned(),
            json!({"name": "another"}),
        ),
        (Method::PATCH, message.clone(), json!({"content": "hello!"})),
        (
            Method::POST,
            format!("{message}/reactions"),
            json!({"emoji": "👍"}),
        ),
        (Method::POST, at("/invites"), json!({})),
        (Method::PATCH, at("/rules"), json!({"content": "be kind"})),
        (
            Method::POST,
            at("/room-keys"),
            json!({"for_user_id": "u_alice"}),
        ),
        (
            Method::PATCH,
            at("/members/u_alice/name"),
            json!({"user_name": "Al"}),
        ),
        (Method::POST, at("/join"), json!({"adapter_type": "pull"})),
    ];
    for (method, path, body) in writes {
        third_is_refused(&alice, method, &path, body).await;
    }
    // What is counted for one is not for another.
    let bob = server.user("u_bob");
    bob.creates_a_room().await;
    // Those without a token are counted by their address.
    let stranger = server.anonymous().from("203.0.113.7");
    third_is_refused(
        &stranger,
        Method::POST,
        &at("/join"),
        json!({"adapter_type": "pull"}),
    )
    .await;
    // Posting has limits of its own.
    alice.says(&room, "still here").await;
}

async fn all_writes_from_an_address_are_counted_together(setup: Setup) {
    let server = setup
        .limit("writes_per_minute_per_address", 3)
        .start()
        .await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.from("10.0.0.1").creates_a_room().await;
    bob.from("10.0.0.1").creates_a_room().await;
    alice.from("10.0.0.1").invites(&room).await;
    let reply = bob
        .from("10.0.0.1")
        .post("/rooms", json!({"name": "one more"}))
        .await;
    assert!(reply.refused(429, "rate_limited").contains("address"));
    bob.from("10.0.0.2").creates_a_room().await;
    alice
        .from("10.0.0.1")
        .says(&room, "messages are counted elsewhere")
        .await;
}

async fn what_others_do_with_a_members_keys_does_not_use_up_its_limits(setup: Setup) {
    let server = setup.limit("reactions_per_minute", 2).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("/rooms/{room}/messages/{seq}/reactions");
    let thumb = json!({"emoji": "👍"});
    let shared = alice.viewer_with(&room, "view+post").await;
    third_is_refused(&shared, Method::POST, &path, thumb.clone()).await;
    // Another key that was given away is another's.
    let other = alice.viewer_with(&room, "view+post").await;
    other.post(&path, thumb.clone()).await.ok();
    alice.delete(format!("/rooms/{room}/room-keys")).await.ok();
    for _ in 0..3 {
        let reply = other.post(&path, thumb.clone()).await;
        assert!([401, 429].contains(&reply.status), "{}", reply.text());
    }
    alice.post(&path, thumb).await.ok();
}

#[tokio::test]
async fn a_limit_holds_over_nodes() {
    let setup = Setup::new(Engine::Postgres).limit("reactions_per_minute", 2);
    let server = setup.start().await;
    let node = server.another_node().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("/rooms/{room}/messages/{seq}/reactions");
    let react =
        async |server: &TestServer| alice.at(server).post(&path, json!({"emoji": "👍"})).await;
    react(&server).await.ok();
    react(&node).await.ok();
    react(&node).await.refused(429, "rate_limited");
    react(&server).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn an_ipv6_network_is_one_address() {
    let setup = Setup::new(Engine::Sqlite).limit("joins_per_hour", 1);
    let server = setup.start().await;
    let room = server.user("u_alice").creates_a_room().await;
    let join = async |address: &str| {
        let stranger = server.anonymous().from(address);
        let body = json!({"adapter_type": "pull"});
        let reply = stranger.post(format!("/rooms/{room}/join"), body).await;
        reply.status == 429
    };
    assert!(!join("2001:db8:0:1::1").await);
    assert!(join("2001:db8:0:1:ffff::2").await);
    assert!(!join("2001:db8:0:2::1").await);
    assert!(!join("203.0.113.9").await);
    assert!(join("::ffff:203.0.113.9").await);
}
