//! Short links to the viewer.

use crate::harness::{Caller, Setup, both_engines, claims, eventually, one_engine};
use serde_json::{Value, json};

both_engines![
    a_revoked_link_is_not_found_and_the_key_lives_on,
    a_link_ends_with_its_key,
    the_minter_and_the_owner_revoke_a_link,
];

one_engine![
    a_short_link_leads_to_the_viewer,
    an_unknown_code_is_not_found,
    an_expired_link_is_gone,
];

async fn new_key(caller: &Caller, room: &str) -> Value {
    let body = json!({"for_user_id": caller.id()});
    caller
        .post(format!("/rooms/{room}/room-keys"), body)
        .await
        .created()
}

fn code(key: &Value) -> &str {
    key["code"].as_str().unwrap()
}

async fn a_short_link_leads_to_the_viewer(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let key = new_key(&alice, &room).await;
    let reply = server
        .anonymous()
        .seen_from_outside()
        .get(format!("/k/{}", code(&key)))
        .await;
    assert_eq!(reply.status, 302);
    let target = reply.header("location").unwrap();
    let (path, query) = target.split_once('?').unwrap();
    assert!(path.ends_with("/view"), "{target}");
    let token = query.strip_prefix(&format!("room={room}&token=")).unwrap();
    let viewer = server.anonymous().with_token(token);
    viewer.says(&room, "came in by the short link").await;
    let cache = reply.header("cache-control").unwrap();
    assert!(
        cache.contains("no-store"),
        "a redirect with a key in it is kept nowhere"
    );
}

async fn an_unknown_code_is_not_found(setup: Setup) {
    let server = setup.shared().await;
    for unknown in ["ck_xxxxxxxx", "nonsense", "ck_", "sc_12345678", "%00"] {
        let reply = server.anonymous().get(format!("/k/{unknown}")).await;
        assert!(matches!(reply.status, 400 | 404), "{}", reply.text());
        reply.error();
    }
    let alice = server.user("u_alice");
    alice
        .delete("/share-keys/ck_xxxxxxxx")
        .await
        .refused(404, "not_found");
}

async fn a_revoked_link_is_not_found_and_the_key_lives_on(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let key = new_key(&alice, &room).await;
    let path = format!("/share-keys/{}", code(&key));
    assert_eq!(alice.delete(&path).await.ok(), json!({"ok": true}));
    alice.delete(&path).await.refused(404, "not_found");
    let link = server.anonymous().get(format!("/k/{}", code(&key))).await;
    link.refused(404, "not_found");
    let viewer = alice.with_token(key["token"].as_str().unwrap());
    viewer.get(format!("/rooms/{room}")).await.ok();
}

async fn a_link_ends_with_its_key(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let key = new_key(&alice, &room).await;
    let jti = claims(key["token"].as_str().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    alice
        .delete(format!("/rooms/{room}/room-keys/{jti}"))
        .await
        .ok();
    let link = server.anonymous().get(format!("/k/{}", code(&key))).await;
    link.refused(404, "not_found");
}

async fn an_expired_link_is_gone(setup: Setup) {
    let server = setup.env("TOKENS__ROOM_KEY_TTL_SECONDS", "1").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let key = new_key(&alice, &room).await;
    let reply = eventually("the link expires", async || {
        let reply = server.anonymous().get(format!("/k/{}", code(&key))).await;
        (reply.status != 302).then_some(reply)
    });
    reply.await.refused(410, "gone");
}

async fn the_minter_and_the_owner_revoke_a_link(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (bob, carol) = (server.user("u_bob"), server.user("u_carol"));
    alice.lets_in_user(&room, &bob).await;
    alice.lets_in_user(&room, &carol).await;
    let (one, two) = (new_key(&bob, &room).await, new_key(&bob, &room).await);
    let path = |key: &Value| format!("/share-keys/{}", code(key));
    carol.delete(path(&one)).await.refused(403, "forbidden");
    server
        .user("u_eve")
        .delete(path(&one))
        .await
        .refused(403, "forbidden");
    server
        .anonymous()
        .delete(path(&one))
        .await
        .refused(401, "missing_bearer");
    bob.delete(path(&one)).await.ok();
    alice.delete(path(&two)).await.ok();
}
