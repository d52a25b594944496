//! The web entry: trading an access token for an identity token, and CORS.

use crate::harness::{
    Caller, Setup, TestServer, agent_id, both_engines, claims, forged, now, one_engine,
};
use reqwest::Method;
use serde_json::json;

both_engines![
    an_access_token_is_traded_for_an_identity,
    an_exchange_is_limited_to_one_a_minute_for_each_user,
    the_identity_of_a_person_opens_their_rooms,
    the_identity_of_a_person_manages_their_rooms_from_anywhere,
    the_identity_of_a_person_enters_public_rooms,
    a_revoked_identity_manages_nothing,
];
one_engine![
    pages_of_other_origins_may_not_call,
    pages_of_allowed_origins_may_call,
    only_an_access_token_is_traded,
    an_exchange_works_seen_from_outside,
    the_identity_of_a_person_posts_nothing_by_itself,
    what_a_room_key_mints_is_no_person,
];

const EXCHANGE: &str = "/auth/exchange";

async fn an_access_token_is_traded_for_an_identity(setup: Setup) {
    let server = setup.shared().await;
    let person = server.user_of_type("12345", "access");
    let traded = person.post_nothing(EXCHANGE).await.created();
    assert_eq!(traded["user_id"], "12345");
    assert!((traded["expires_at"].as_i64().unwrap() - now() - 90 * 24 * 3600).abs() < 60);
    let identity = person.with_token(traded["identity_token"].as_str().unwrap());
    let fresh = identity.post_nothing("/agent-identity/refresh").await.ok();
    assert_eq!(fresh["user_id"], "12345");
}

async fn an_exchange_works_seen_from_outside(setup: Setup) {
    let server = setup.shared().await;
    let outside = server.user_of_type("u_alice", "access").seen_from_outside();
    outside.post_nothing(EXCHANGE).await.created();
    outside.get("/rooms").await.refused(403, "internal_only");
    let container = server.user("u_alice").seen_from_outside();
    container
        .post_nothing(EXCHANGE)
        .await
        .refused(403, "internal_only");
}

async fn only_an_access_token_is_traded(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    alice.post_nothing(EXCHANGE).await.refused(403, "forbidden");
    let admin = server.user_of_type("u_admin", "admin");
    admin.post_nothing(EXCHANGE).await.refused(403, "forbidden");
    for wrong in [
        &agent.caller,
        &agent.identity(),
        &server.anonymous().with_token("rubbish"),
    ] {
        wrong
            .post_nothing(EXCHANGE)
            .await
            .refused(401, "token_invalid");
    }
    server
        .anonymous()
        .post_nothing(EXCHANGE)
        .await
        .refused(401, "missing_bearer");
    let access = server.user_of_type("u_alice", "access");
    for token in forged(access.token().unwrap()) {
        let reply = access.with_token(&token).post_nothing(EXCHANGE).await;
        reply.refused(401, "token_invalid");
    }
}

async fn an_exchange_is_limited_to_one_a_minute_for_each_user(setup: Setup) {
    let mut server = setup.with_the_documents_limits().start().await;
    let alice = server.user_of_type("u_alice", "access");
    alice.post_nothing(EXCHANGE).await.created();
    alice
        .post_nothing(EXCHANGE)
        .await
        .refused(429, "rate_limited");
    server
        .user_of_type("u_bob", "access")
        .post_nothing(EXCHANGE)
        .await
        .created();
    server.restart().await;
    alice
        .at(&server)
        .post_nothing(EXCHANGE)
        .await
        .refused(429, "rate_limited");
}

async fn the_identity_of_a_person_opens_their_rooms(setup: Setup) {
    let server = setup.shared().await;
    let person = server.user_of_type("u_alice", "access");
    let room = person.creates_a_room().await;
    let traded = person
        .seen_from_outside()
        .post_nothing(EXCHANGE)
        .await
        .created();
    let identity = person
        .with_token(traded["identity_token"].as_str().unwrap())
        .seen_from_outside();
    let path = format!("/rooms/{room}/members/u_alice/reissue-token");
    let key = identity.post_nothing(path).await.ok();
    let viewer = identity.with_token(key["member_token"].as_str().unwrap());
    let posted = viewer
        .post(format!("/rooms/{room}/messages"), json!({"content": "hi"}))
        .await;
    assert_eq!(
        posted.created()["via"],
        "web",
        "a person posts from the viewer"
    );
}

/// A person who signed in, with their identity token, from the public internet.
async fn signed_in(server: &TestServer, id: &str, name: &str) -> Caller {
    let token = server.token(&["--user", id, "--name", name, "--type", "access"]);
    let person = server.anonymous().with_token(&token).seen_from_outside();
    let traded = person.post_nothing(EXCHANGE).await.created();
    person.with_token(traded["identity_token"].as_str().unwrap())
}

async fn the_identity_of_a_person_manages_their_rooms_from_anywhere(setup: Setup) {
    let server = setup.start().await;
    let first = signed_in(&server, "u_alice", "Alice").await;
    let fresh = first.post_nothing("/agent-identity/refresh").await.ok();
    let alice = first.with_token(fresh["identity_token"].as_str().unwrap());
    let room = alice.creates_a_room().await;
    let rooms = alice.get("/rooms").await.ok();
    assert_eq!(rooms["rooms"][0]["room_id"], room.as_str());
    let path = |rest: &str| format!("/rooms/{room}{rest}");
    alice.patch(path(""), json!({"name": "renamed"})).await.ok();
    alice
        .patch(path("/rules"), json!({"content": "be kind"}))
        .await
        .ok();
    let invite = alice.invites(&room).await;
    assert!(invite.starts_with("inv_"));
    let audit = alice.get(path("/audit")).await.ok();
    assert!(audit["entries"].as_array().unwrap().len() >= 3);
    let member = alice.sees_member(&room, "u_alice").await.unwrap();
    assert_eq!(member["user_name"], "Alice", "the sign-in told the name");
    assert_eq!(member["member_kind"], "starchild_user");
}

async fn the_identity_of_a_person_enters_public_rooms(setup: Setup) {
    let server = setup.shared().await;
    let room = server.user("u_owner").creates_a_public_room().await;
    let bob = signed_in(&server, "u_bob", "Bob").await;
    let joined = bob
        .post(
            format!("/rooms/{room}/join"),
            json!({"adapter_type": "pull"}),
        )
        .await
        .created();
    assert_eq!(joined["member_kind"], "starchild_user");
    assert_eq!(joined["user_name"], "Bob");
    let key = bob.with_token(joined["member_token"].as_str().unwrap());
    let posted = key
        .post(format!("/rooms/{room}/messages"), json!({"content": "hi"}))
        .await
        .created();
    assert_eq!(posted["via"], "web");
}

async fn the_identity_of_a_person_posts_nothing_by_itself(setup: Setup) {
    let server = setup.shared().await;
    let alice = signed_in(&server, "u_alice", "Alice").await;
    let room = alice.creates_a_room().await;
    alice
        .post(format!("/rooms/{room}/messages"), json!({"content": "hi"}))
        .await
        .refused(401, "token_invalid");
}

/// A room key lets its holder take part in a room, and never become the person it is of.
async fn what_a_room_key_mints_is_no_person(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    let join = json!({"invite_code": alice.invites(&room).await, "adapter_type": "pull"});
    let joined = bob
        .post(format!("/rooms/{room}/join"), join)
        .await
        .created();
    let own = bob.with_token(joined["member_token"].as_str().unwrap());
    let minted = own.post_nothing("/agent-identity").await.created();
    assert_eq!(minted["user_id"], "u_bob");
    let mut holder = own.with_token(minted["identity_token"].as_str().unwrap());
    for _ in 0..2 {
        holder.get("/rooms").await.refused(401, "token_invalid");
        holder
            .patch(format!("/rooms/{room}"), json!({"name": "mine"}))
            .await
            .refused(401, "token_invalid");
        let fresh = holder.post_nothing("/agent-identity/refresh").await.ok();
        holder = holder.with_token(fresh["identity_token"].as_str().unwrap());
    }
}

async fn a_revoked_identity_manages_nothing(setup: Setup) {
    let server = setup.shared().await;
    let alice = signed_in(&server, "u_alice", "Alice").await;
    let jti = claims(alice.token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    alice.get("/rooms").await.ok();
    alice.delete(format!("/agent-identity/{jti}")).await.ok();
    alice.get("/rooms").await.refused(401, "identity_invalid");
}

async fn pages_of_other_origins_may_not_call(setup: Setup) {
    let server = setup.shared().await;
    let origin = "https://evil.example";
    let reply = server
        .anonymous()
        .get("/rooms/public")
        .header("origin", origin)
        .await;
    assert_eq!(reply.header("access-control-allow-origin"), None);
    let preflight = server
        .anonymous()
        .request(Method::OPTIONS, EXCHANGE)
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .await;
    assert_eq!(preflight.header("access-control-allow-origin"), None);
}

async fn pages_of_allowed_origins_may_call(setup: Setup) {
    let origins = r#"["https://web.example", "https://other.example"]"#;
    let server = setup.env("CORS__ALLOWED_ORIGINS", origins).start().await;
    let origin = "https://web.example";
    let preflight = server
        .anonymous()
        .request(Method::OPTIONS, EXCHANGE)
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        )
        .await;
    assert!(matches!(preflight.status, 200 | 204), "{preflight:?}");
    assert_eq!(
        preflight.header("access-control-allow-origin"),
        Some(origin)
    );
    let allowed = preflight.header("access-control-allow-methods").unwrap();
    assert!(
        allowed.contains("POST") && allowed.contains("PATCH"),
        "{allowed}"
    );
    let headers = preflight
        .header("access-control-allow-headers")
        .unwrap()
        .to_lowercase();
    for needed in [
        "authorization",
        "content-type",
        "idempotency-key",
        "last-event-id",
    ] {
        assert!(
            headers.contains(needed) || headers == "*",
            "{needed}: {headers}"
        );
    }
    // An answer that says no must be readable too, or the page cannot tell why.
    for path in ["/rooms/public", "/rooms", "/nowhere"] {
        let reply = server.anonymous().get(path).header("origin", origin).await;
        assert_eq!(
            reply.header("access-control-allow-origin"),
            Some(origin),
            "{path}"
        );
    }
    let other = server
        .anonymous()
        .get("/rooms/public")
        .header("origin", "https://evil.example");
    assert_eq!(other.await.header("access-control-allow-origin"), None);
}
