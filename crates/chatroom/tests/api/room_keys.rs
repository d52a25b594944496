//! Room keys for people's browsers.

use crate::harness::{
    Setup, agent_id, both_engines, claims, eventually, forged, now, one_engine, with_claims,
};
use serde_json::json;

both_engines![
    three_keys_are_the_most,
    one_key_is_revoked_by_its_jti,
    all_keys_are_revoked_at_once,
    keys_survive_a_restart,
];

one_engine![
    a_forged_key_opens_nothing,
    a_key_is_for_oneself,
    a_key_is_for_seven_days_of_viewing_and_posting,
    a_key_may_be_for_viewing_alone,
    a_key_opens_its_own_room_alone,
    only_a_user_token_makes_keys,
    somebody_elses_keys_are_nobodys_business,
    a_key_is_listed_without_the_key,
    an_expired_key_opens_nothing,
];

fn keys(room: &str) -> String {
    format!("/rooms/{room}/room-keys")
}

async fn a_key_is_for_seven_days_of_viewing_and_posting(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let key = alice
        .post(keys(&room), json!({"for_user_id": "u_alice"}))
        .await
        .created();
    let text = |field: &str| key[field].as_str().unwrap().to_owned();
    assert_eq!(key["scope"], "view+post");
    assert!((key["expires_at"].as_i64().unwrap() - now() - 7 * 24 * 3600).abs() < 60);
    let code = text("code");
    assert_eq!(code.strip_prefix("ck_").unwrap().len(), 8);
    let base = server.base_url();
    assert_eq!(text("viewer_url"), format!("{base}/k/{code}"));
    let direct = format!("{base}/view?room={room}&token={}", text("token"));
    assert_eq!(text("direct_url"), direct);
    let viewer = server
        .anonymous()
        .seen_from_outside()
        .with_token(&text("token"));
    viewer.says(&room, "hello").await;
}

async fn a_key_may_be_for_viewing_alone(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let body = json!({"for_user_id": "u_alice", "scope": "view"});
    assert_eq!(
        alice.post(keys(&room), body).await.created()["scope"],
        "view"
    );
    for bad in ["post", "admin", ""] {
        let body = json!({"for_user_id": "u_alice", "scope": bad});
        alice
            .post(keys(&room), body)
            .await
            .refused(400, "bad_request");
    }
}

async fn a_key_is_for_oneself(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let for_bob = json!({"for_user_id": "u_bob"});
    alice
        .post(keys(&room), for_bob.clone())
        .await
        .refused(403, "forbidden");
    bob.post(keys(&room), for_bob).await.created();
    alice
        .post(keys(&room), json!({}))
        .await
        .refused(400, "bad_request");
    let eve = server.user("u_eve");
    let reply = eve.post(keys(&room), json!({"for_user_id": "u_eve"})).await;
    reply.refused(403, "not_a_member");
}

async fn only_a_user_token_makes_keys(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    for (caller, id) in [(&viewer, "u_alice"), (&agent.caller, agent.id())] {
        let reply = caller.post(keys(&room), json!({"for_user_id": id})).await;
        reply.refused(401, "token_invalid");
        caller.get(keys(&room)).await.refused(401, "token_invalid");
        caller
            .delete(keys(&room))
            .await
            .refused(401, "token_invalid");
    }
    let anonymous = server.anonymous();
    let reply = anonymous
        .post(keys(&room), json!({"for_user_id": "u_alice"}))
        .await;
    reply.refused(401, "missing_bearer");
    let outside = alice
        .seen_from_outside()
        .post(keys(&room), json!({"for_user_id": "u_alice"}))
        .await;
    outside.refused(403, "internal_only");
}

async fn three_keys_are_the_most(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    alice.lets_in_user(&room, &bob).await;
    let body = json!({"for_user_id": "u_alice"});
    let mut last = String::new();
    for _ in 0..3 {
        let key = alice.post(keys(&room), body.clone()).await.created();
        last = claims(key["token"].as_str().unwrap())["jti"]
            .as_str()
            .unwrap()
            .to_owned();
    }
    alice
        .post(keys(&room), body.clone())
        .await
        .refused(409, "too_many_keys");
    alice.post(keys(&other), body.clone()).await.created();
    bob.post(keys(&room), json!({"for_user_id": "u_bob"}))
        .await
        .created();
    alice.delete(format!("{}/{last}", keys(&room))).await.ok();
    alice.post(keys(&room), body.clone()).await.created();
    alice.lets_in_user(&room, &server.user("u_carol")).await;
    let posts = (0..6).map(|_| {
        let body = json!({"for_user_id": "u_carol"});
        tokio::spawn(server.user("u_carol").post(keys(&room), body).into_future())
    });
    let mut made = 0;
    for post in posts.collect::<Vec<_>>() {
        made += i32::from(post.await.unwrap().status == 201);
    }
    assert_eq!(made, 3, "at once is no way around it");
}

async fn a_key_is_listed_without_the_key(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    assert_eq!(alice.get(keys(&room)).await.ok(), json!({"room_keys": []}));
    let key = alice
        .post(keys(&room), json!({"for_user_id": "u_alice"}))
        .await
        .created();
    let token = key["token"].as_str().unwrap();
    let reply = alice.get(keys(&room)).await;
    assert!(!reply.text().contains(token) && !reply.text().contains("ck_"));
    let list = reply.ok();
    let issued_at = list["room_keys"][0]["issued_at"].as_i64().unwrap();
    assert!((now() - issued_at).abs() < 60);
    assert_eq!(
        list,
        json!({"room_keys": [{"jti": claims(token)["jti"], "issued_at": issued_at,
                              "expires_at": key["expires_at"], "scope": "view+post"}]})
    );
}

async fn one_key_is_revoked_by_its_jti(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (dead, alive) = (alice.viewer(&room).await, alice.viewer(&room).await);
    let jti = claims(dead.token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("{}/{jti}", keys(&room));
    alice.delete(&path).await.ok();
    alice.delete(&path).await.refused(404, "not_found");
    alice
        .delete(format!("{}/nosuch", keys(&room)))
        .await
        .refused(404, "not_found");
    let room_path = format!("/rooms/{room}");
    dead.get(&room_path).await.refused(401, "key_invalid");
    dead.get(format!("{room_path}/messages"))
        .await
        .refused(401, "key_invalid");
    dead.get(format!("{room_path}/stream"))
        .await
        .refused(401, "key_invalid");
    let post = dead
        .post(format!("{room_path}/messages"), json!({"content": "x"}))
        .await;
    post.refused(401, "key_invalid");
    alive.get(&room_path).await.ok();
}

async fn all_keys_are_revoked_at_once(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let mine = [alice.viewer(&room).await, alice.viewer(&room).await];
    let his = bob.viewer(&room).await;
    assert_eq!(alice.delete(keys(&room)).await.ok(), json!({"revoked": 2}));
    assert_eq!(alice.delete(keys(&room)).await.ok(), json!({"revoked": 0}));
    for key in mine {
        key.get(format!("/rooms/{room}"))
            .await
            .refused(401, "key_invalid");
    }
    his.get(format!("/rooms/{room}")).await.ok();
    assert_eq!(alice.get(keys(&room)).await.ok(), json!({"room_keys": []}));
}

async fn somebody_elses_keys_are_nobodys_business(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let his = bob.viewer(&room).await;
    assert_eq!(alice.get(keys(&room)).await.ok(), json!({"room_keys": []}));
    let jti = claims(his.token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    alice
        .delete(format!("{}/{jti}", keys(&room)))
        .await
        .refused(404, "not_found");
    his.get(format!("/rooms/{room}")).await.ok();
}

async fn an_expired_key_opens_nothing(setup: Setup) {
    let server = setup.env("TOKENS__ROOM_KEY_TTL_SECONDS", "1").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    let refused = eventually("the key expires", async || {
        let reply = viewer.get(format!("/rooms/{room}")).await;
        (reply.status != 200).then_some(reply)
    });
    refused.await.refused(401, "key_invalid");
    let post = viewer
        .post(format!("/rooms/{room}/messages"), json!({"content": "x"}))
        .await;
    post.refused(401, "key_invalid");
    viewer
        .post_nothing("/agent-identity")
        .await
        .refused(401, "key_invalid");
    assert_eq!(alice.get(keys(&room)).await.ok(), json!({"room_keys": []}));
}

async fn a_key_opens_its_own_room_alone(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (private, public) = (
        alice.creates_a_room().await,
        alice.creates_a_public_room().await,
    );
    let viewer = alice.viewer(&room).await;
    for path in [
        "",
        "/messages",
        "/members",
        "/me",
        "/stream",
        "/rules",
        "/state",
        "/data",
    ] {
        let reply = viewer.get(format!("/rooms/{private}{path}")).await;
        assert_eq!(reply.refused(404, "not_found"), "Room not found", "{path}");
        let reply = viewer.get(format!("/rooms/rm_nosuch{path}")).await;
        assert_eq!(reply.refused(404, "not_found"), "Room not found", "{path}");
        let reply = viewer.get(format!("/rooms/{public}{path}")).await;
        reply.refused(403, "key_scope_insufficient");
    }
    let body = json!({"content": "x"});
    let reply = viewer
        .post(format!("/rooms/{private}/messages"), body.clone())
        .await;
    reply.refused(404, "not_found");
    let reply = viewer.post(format!("/rooms/{public}/messages"), body).await;
    reply.refused(403, "key_scope_insufficient");
}

async fn a_forged_key_opens_nothing(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let view = alice.viewer_with(&room, "view").await;
    let token = view.token().unwrap();
    let mut bad = forged(token);
    bad.push(with_claims(token, |claims| {
        claims["scope"] = json!("view+post")
    }));
    bad.push(with_claims(token, |claims| {
        claims["room_id"] = json!(other)
    }));
    bad.push(with_claims(token, |claims| {
        claims["user_id"] = json!("u_bob")
    }));
    bad.push(with_claims(token, |claims| {
        claims["exp"] = json!(now() + 999_999_999)
    }));
    bad.extend(["", "x", "a.b.c", "..", "Bearer"].map(str::to_owned));
    bad.push("x".repeat(7000));
    for token in bad {
        for room in [&room, &other] {
            let caller = view.with_token(&token);
            let reply = caller.get(format!("/rooms/{room}")).await;
            reply.refused(401, "token_invalid");
            let body = json!({"content": "x"});
            let reply = caller.post(format!("/rooms/{room}/messages"), body).await;
            reply.refused(401, "token_invalid");
        }
    }
}

async fn keys_survive_a_restart(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    let dead = alice.viewer(&room).await;
    let jti = claims(dead.token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    alice.delete(format!("{}/{jti}", keys(&room))).await.ok();
    server.restart().await;
    viewer.at(&server).says(&room, "still me").await;
    let reply = dead.at(&server).get(format!("/rooms/{room}")).await;
    reply.refused(401, "key_invalid");
}
