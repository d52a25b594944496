//! Posting the same thing again under the same key.

use crate::harness::{Setup, agent_id, both_engines, one_engine};
use serde_json::json;

both_engines![
    the_same_key_gives_the_same_answer_and_no_second_message,
    a_client_msg_id_is_a_key_too,
    a_key_survives_a_restart,
    a_key_belongs_to_its_sender_and_room,
    a_key_with_other_content_is_refused,
    a_replay_is_not_limited,
    a_refused_post_does_not_use_its_key_up,
    the_same_key_from_many_at_once_is_one_message,
    a_deleted_message_stays_posted,
];

one_engine![a_key_that_is_no_key_is_refused,];

fn messages(room: &str) -> String {
    format!("/rooms/{room}/messages")
}

async fn the_same_key_gives_the_same_answer_and_no_second_message(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let post = || {
        let request = alice.post(messages(&room), json!({"content": "once"}));
        request.header("idempotency-key", "k-1")
    };
    let first = post().await.created();
    for _ in 0..3 {
        assert_eq!(post().await.created(), first);
    }
    assert_eq!(alice.hears(&room, 0).await, ["once"]);
    alice.says(&room, "and another").await;
    assert_eq!(post().await.created(), first);
}

async fn a_client_msg_id_is_a_key_too(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    let body = json!({"content": "once", "client_msg_id": "m-1"});
    let first = viewer.post(messages(&room), body.clone()).await.created();
    assert_eq!(viewer.post(messages(&room), body).await.created(), first);
    let by_header = viewer.post(messages(&room), json!({"content": "once"}));
    let by_header = by_header.header("idempotency-key", "m-1").await.created();
    assert_eq!(by_header, first);
    assert_eq!(viewer.hears(&room, 0).await, ["once"]);
}

async fn a_key_survives_a_restart(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"content": "once", "client_msg_id": "m-1"});
    let first = alice.post(messages(&room), body.clone()).await.created();
    server.restart().await;
    let alice = alice.at(&server);
    assert_eq!(
        alice.post(messages(&room), body.clone()).await.created(),
        first
    );
    server.kill9();
    server.restart().await;
    let alice = alice.at(&server);
    assert_eq!(alice.post(messages(&room), body).await.created(), first);
    assert_eq!(alice.hears(&room, 0).await, ["once"]);
}

async fn a_key_belongs_to_its_sender_and_room(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let (one, two) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let agent = alice.lets_in(&one, &agent_id("curious_otter")).await;
    let body = json!({"content": "hello", "client_msg_id": "same"});
    alice.post(messages(&one), body.clone()).await.created();
    alice.post(messages(&two), body.clone()).await.created();
    agent.post(messages(&one), body).await.created();
    assert_eq!(alice.hears(&one, 0).await, ["hello", "hello"]);
    assert_eq!(alice.hears(&two, 0).await, ["hello"]);
}

async fn a_key_with_other_content_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let post = |content: &str| {
        let body = json!({"content": content, "client_msg_id": "k"});
        alice.post(messages(&room), body)
    };
    post("one").await.created();
    post("two").await.refused(400, "bad_request");
    assert_eq!(alice.hears(&room, 0).await, ["one"]);
}

async fn a_replay_is_not_limited(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"content": "once", "client_msg_id": "k"});
    let first = alice.post(messages(&room), body.clone()).await.created();
    for _ in 0..10 {
        assert_eq!(
            alice.post(messages(&room), body.clone()).await.created(),
            first
        );
    }
    let other = alice
        .post(messages(&room), json!({"content": "another"}))
        .await;
    other.refused(429, "agent_cooldown");
}

async fn a_refused_post_does_not_use_its_key_up(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let archive =
        |archived: bool| alice.patch(format!("/rooms/{room}"), json!({"archived": archived}));
    let body = json!({"content": "hello", "client_msg_id": "k"});
    archive(true).await.ok();
    alice
        .post(messages(&room), body.clone())
        .await
        .refused(409, "archived");
    archive(false).await.ok();
    alice.post(messages(&room), body).await.created();
}

async fn the_same_key_from_many_at_once_is_one_message(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"content": "once", "client_msg_id": "k"});
    let posts = (0..16)
        .map(|_| tokio::spawn(alice.post(messages(&room), body.clone()).into_future()))
        .collect::<Vec<_>>();
    let mut answers = Vec::new();
    for post in posts {
        answers.push(post.await.unwrap().created());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(alice.hears(&room, 0).await, ["once"]);
}

async fn a_deleted_message_stays_posted(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"content": "once", "client_msg_id": "k"});
    let first = alice.post(messages(&room), body.clone()).await.created();
    let path = format!("{}/{}", messages(&room), first["seq"]);
    alice.patch(&path, json!({"content": "edited"})).await.ok();
    assert_eq!(
        alice.post(messages(&room), body.clone()).await.created(),
        first
    );
    alice.delete(&path).await.ok();
    assert_eq!(alice.post(messages(&room), body).await.created(), first);
    assert_eq!(
        alice.latest_seq(&room).await,
        first["seq"].as_i64().unwrap()
    );
}

async fn a_key_that_is_no_key_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for bad in ["", &"k".repeat(10_000)] {
        let body = json!({"content": "x", "client_msg_id": bad});
        alice
            .post(messages(&room), body)
            .await
            .refused(400, "bad_request");
    }
    let body = json!({"content": "x", "client_msg_id": 5});
    alice
        .post(messages(&room), body)
        .await
        .refused(400, "bad_request");
}
