//! A key that was made to be shared opens its room, and stays what it is.

use super::{OTTER, reissue};
use crate::harness::{Caller, Setup, both_engines};
use reqwest::Method;
use serde_json::{Value, json};

both_engines![
    a_shared_key_mints_nothing_and_reissues_nothing,
    a_view_key_changes_nothing,
];

const SCOPE: &str = "key_scope_insufficient";

async fn a_shared_key_mints_nothing_and_reissues_nothing(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let made = alice
        .post(
            format!("/rooms/{room}/room-keys"),
            json!({"for_user_id": "u_alice"}),
        )
        .await
        .created();
    let link = format!("/k/{}", made["code"].as_str().unwrap());
    let target = server.anonymous().get(link).await;
    let (_, of_link) = target
        .header("location")
        .unwrap()
        .split_once("token=")
        .unwrap();
    let keys = [
        alice.viewer_with(&room, "view").await,
        alice.viewer(&room).await,
        alice.with_token(of_link),
    ];
    for key in keys.map(|key| key.seen_from_outside()) {
        key.post_nothing("/agent-identity")
            .await
            .refused(403, SCOPE);
        for room in [&room, &other] {
            let reply = key.post_nothing(reissue(room, "u_alice")).await;
            reply.refused(403, SCOPE);
        }
        // Nor does it prove anything to whoever lets somebody in.
        let code = alice.invites(&other).await;
        let join = json!({"invite_code": code, "adapter_type": "pull", "user_id": "u_alice",
                          "client_kind": "human"});
        let reply = key.post(format!("/rooms/{other}/join"), join).await;
        assert_eq!(reply.status, 403, "{}", reply.text());
        assert!(key.get(format!("/rooms/{room}/me")).await.status == 200);
    }
}

/// Everything that changes something, by a member of the room.
fn changes(room: &str, me: &str, seq: i64) -> Vec<(Method, String, Value)> {
    use Method as M;
    let message = format!("/rooms/{room}/messages/{seq}");
    let member = format!("/rooms/{room}/members/{me}");
    let text = json!({"content": "changed"});
    vec![
        (M::POST, format!("/rooms/{room}/messages"), text.clone()),
        (M::PATCH, message.clone(), text.clone()),
        (M::DELETE, message.clone(), Value::Null),
        (
            M::POST,
            format!("{message}/reactions"),
            json!({"emoji": "👍"}),
        ),
        (M::DELETE, format!("{message}/reactions/👍"), Value::Null),
        (
            M::PUT,
            format!("{member}/endpoint"),
            json!({"agent_endpoint": "https://eve.example", "akm_key": "k"}),
        ),
        (
            M::PATCH,
            format!("{member}/agent-card"),
            json!({"agent_card_url": "https://eve.example"}),
        ),
        (M::PATCH, format!("/rooms/{room}"), json!({"name": "taken"})),
        (M::PATCH, format!("/rooms/{room}/rules"), text.clone()),
        (M::PATCH, format!("/rooms/{room}/data"), text),
        (M::POST, format!("/rooms/{room}/invites"), json!({})),
        (
            M::POST,
            "/rooms/rm_welcome/checklist/refresh".into(),
            Value::Null,
        ),
        (M::DELETE, member, Value::Null),
    ]
}

async fn tries(key: &Caller, (method, path, body): &(Method, String, Value)) -> u16 {
    let request = key.request(method.clone(), path);
    let reply = match body {
        Value::Null => request.await,
        body => request.json(body).await,
    };
    if reply.status == 403 {
        let why = [SCOPE, "forbidden_system_room"];
        assert!(why.contains(&reply.error()), "{method} {path}");
    }
    reply.status
}

async fn a_view_key_changes_nothing(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let bob = server.user("u_bob");
    bob.post_nothing("/rooms/public/auto-join").await.ok();
    let room = "rm_welcome";
    let seq = bob.says(room, "hello").await;
    let agent = server.anonymous();
    let invite = agent
        .post_nothing(format!("/rooms/{room}/auto-invite"))
        .await;
    let code = invite.created()["invite_code"].as_str().unwrap().to_owned();
    agent.joins(room, &code, OTTER).await;
    let view = bob.viewer_with(room, "view").await;
    for change in changes(room, "u_bob", seq) {
        assert_eq!(tries(&view, &change).await, 403, "{change:?}");
    }
    assert_eq!(bob.reads(room, seq).await["content"], "hello");
    assert!(bob.sees_member(room, "u_bob").await.is_some());

    // A shared key that may post does that, and changes nothing about its member.
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let shared = bob.viewer(&room).await;
    let seq = shared.says(&room, "hello").await;
    let member = format!("/rooms/{room}/members/u_bob");
    for change in changes(&room, "u_bob", seq) {
        if change.1.starts_with(&member) {
            assert_eq!(tries(&shared, &change).await, 403, "{change:?}");
        }
    }
    shared
        .patch(
            format!("/rooms/{room}/messages/{seq}"),
            json!({"content": "hello again"}),
        )
        .await
        .ok();
}
