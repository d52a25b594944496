//! Identity tokens, and getting a lost room key back with one.

use crate::harness::{
    Agent, Caller, Setup, SharedServer, agent_id, both_engines, claims, forged, now, one_engine,
};
use serde_json::json;

both_engines![
    an_identity_is_refreshed_and_the_old_one_stays,
    an_identity_is_revoked_by_its_jti,
    an_identity_revokes_itself,
    an_identity_gets_a_lost_key_back,
    a_key_of_another_room_gets_a_lost_key_back,
    a_key_is_reissued_to_its_own_member_alone,
    a_revoked_identity_reissues_nothing,
    a_known_agent_proves_itself_when_it_joins_elsewhere,
    minting_is_limited_to_one_a_minute_for_each_credential,
    minting_at_once_is_no_way_around_the_limit,
];

one_engine![
    an_identity_of_somebody_else_is_not_mine_to_revoke,
    an_identity_opens_no_room_by_itself,
    only_a_room_key_mints_an_identity,
    only_an_identity_refreshes,
    reissuing_does_not_join,
    reissuing_needs_a_key_or_an_identity,
    a_room_key_mints_an_identity,
    a_stranger_under_a_members_id_gets_nothing,
];

const NINETY_DAYS: i64 = 90 * 24 * 3600;

fn reissue(room: &str, user: &str) -> String {
    format!("/rooms/{room}/members/{user}/reissue-token")
}

async fn a_room_key_mints_an_identity(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let minted = agent
        .seen_from_outside()
        .post_nothing("/agent-identity")
        .await
        .created();
    assert_eq!(minted["user_id"], agent.id());
    assert!((minted["expires_at"].as_i64().unwrap() - now() - NINETY_DAYS).abs() < 60);
    let token = minted["identity_token"].as_str().unwrap();
    assert_ne!(token, agent.joined["identity_token"], "a new one each time");
    for identity in [agent.with_token(token), agent.identity()] {
        identity.post_nothing("/agent-identity/refresh").await.ok();
    }
}

async fn only_a_room_key_mints_an_identity(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let path = "/agent-identity";
    alice.post_nothing(path).await.refused(401, "key_invalid");
    agent
        .identity()
        .post_nothing(path)
        .await
        .refused(401, "key_invalid");
    server
        .anonymous()
        .post_nothing(path)
        .await
        .refused(401, "missing_bearer");
    for token in forged(agent.token().unwrap()) {
        let reply = agent.with_token(&token).post_nothing(path).await;
        assert_eq!(reply.status, 401, "{}", reply.text());
    }
    alice
        .delete(format!("/rooms/{room}/members/{}", agent.id()))
        .await
        .ok();
    agent.post_nothing(path).await.refused(401, "key_invalid");
}

async fn an_identity_is_refreshed_and_the_old_one_stays(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let fresh = agent
        .identity()
        .post_nothing("/agent-identity/refresh")
        .await
        .ok();
    assert_eq!(fresh["user_id"], agent.id());
    assert!((fresh["expires_at"].as_i64().unwrap() - now() - NINETY_DAYS).abs() < 60);
    let fresh = agent.with_token(fresh["identity_token"].as_str().unwrap());
    for identity in [&agent.identity(), &fresh] {
        identity.post_nothing(reissue(&room, agent.id())).await.ok();
    }
}

async fn only_an_identity_refreshes(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let path = "/agent-identity/refresh";
    for wrong in [&alice, &agent.caller] {
        wrong
            .post_nothing(path)
            .await
            .refused(401, "identity_invalid");
    }
    server
        .anonymous()
        .post_nothing(path)
        .await
        .refused(401, "missing_bearer");
    for token in forged(agent.identity().token().unwrap()) {
        let reply = agent.with_token(&token).post_nothing(path).await;
        reply.refused(401, "identity_invalid");
    }
}

async fn an_identity_is_revoked_by_its_jti(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let minted = agent.post_nothing("/agent-identity").await.created();
    let trusted = agent.with_token(minted["identity_token"].as_str().unwrap());
    let jti = claims(agent.identity().token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/agent-identity/{jti}");
    assert_eq!(trusted.delete(&path).await.ok(), json!({"revoked": jti}));
    trusted.delete(&path).await.refused(404, "not_found");
    trusted
        .delete("/agent-identity/nosuchjti")
        .await
        .refused(404, "not_found");
    let dead = agent.identity();
    dead.post_nothing("/agent-identity/refresh")
        .await
        .refused(401, "identity_invalid");
    trusted.post_nothing("/agent-identity/refresh").await.ok();
}

async fn an_identity_revokes_itself(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let identity = agent.identity();
    let jti = claims(identity.token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    identity.delete(format!("/agent-identity/{jti}")).await.ok();
    identity
        .delete(format!("/agent-identity/{jti}"))
        .await
        .refused(401, "identity_invalid");
}

async fn an_identity_of_somebody_else_is_not_mine_to_revoke(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let otter = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let willow = alice.lets_in(&room, &agent_id("sunny_willow")).await;
    let jti = claims(willow.identity().token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/agent-identity/{jti}");
    otter
        .identity()
        .delete(&path)
        .await
        .refused(403, "forbidden");
    for wrong in [&alice, &willow.caller] {
        wrong.delete(&path).await.refused(401, "identity_invalid");
    }
    server
        .anonymous()
        .delete(&path)
        .await
        .refused(401, "missing_bearer");
    willow
        .identity()
        .post_nothing("/agent-identity/refresh")
        .await
        .ok();
}

async fn an_identity_opens_no_room_by_itself(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let identity = agent.identity();
    for path in ["", "/messages", "/members", "/me", "/stream", "/rules"] {
        let reply = identity.get(format!("/rooms/{room}{path}")).await;
        reply.refused(401, "token_invalid");
    }
    let post = identity
        .post(format!("/rooms/{room}/messages"), json!({"content": "x"}))
        .await;
    post.refused(401, "token_invalid");
    identity.get("/rooms").await.refused(401, "token_invalid");
}

async fn an_identity_gets_a_lost_key_back(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let reply = agent
        .identity()
        .seen_from_outside()
        .post_nothing(reissue(&room, agent.id()))
        .await;
    let reply = reply.ok();
    assert_eq!(
        (&reply["scope"], &reply["auth_used"]),
        (&json!("view+post"), &json!("agent_identity"))
    );
    assert!((reply["expires_at"].as_i64().unwrap() - now() - 7 * 24 * 3600).abs() < 60);
    let fresh = agent.with_token(reply["member_token"].as_str().unwrap());
    let posted = fresh
        .post(
            format!("/rooms/{room}/messages"),
            json!({"content": "back"}),
        )
        .await;
    assert_eq!(
        posted.created()["via"],
        "agent",
        "as the member it was before"
    );
    agent.says(&room, "the old key holds too").await;
}

async fn a_key_of_another_room_gets_a_lost_key_back(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let (one, two) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let in_one = alice.lets_in(&one, &agent_id("curious_otter")).await;
    let code = alice.invites(&two).await;
    let in_two = in_one.joins(&two, &code, in_one.id()).await;
    let crossings: [(&Caller, &str, &str); 4] = [
        (&in_one, &two, "room_key"),
        (&in_two, &one, "room_key"),
        (&in_one.identity(), &two, "agent_identity"),
        (&in_two.identity(), &one, "agent_identity"),
    ];
    for (bearer, room, used) in crossings {
        let reply = bearer.post_nothing(reissue(room, in_one.id())).await.ok();
        assert_eq!(reply["auth_used"], used);
        let fresh = bearer.with_token(reply["member_token"].as_str().unwrap());
        assert_eq!(
            fresh.get(format!("/rooms/{room}/me")).await.ok()["user_id"],
            in_one.id()
        );
    }
}

async fn a_key_is_reissued_to_its_own_member_alone(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let otter = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let willow = alice.lets_in(&room, &agent_id("sunny_willow")).await;
    for bearer in [&otter.caller, &otter.identity()] {
        bearer
            .post_nothing(reissue(&room, willow.id()))
            .await
            .refused(403, "forbidden");
        bearer
            .post_nothing(reissue(&room, "u_alice"))
            .await
            .refused(403, "forbidden");
    }
}

async fn reissuing_does_not_join(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let (one, two) = (
        alice.creates_a_room().await,
        alice.creates_a_public_room().await,
    );
    let agent = alice.lets_in(&one, &agent_id("curious_otter")).await;
    for bearer in [&agent.caller, &agent.identity()] {
        bearer
            .post_nothing(reissue(&two, agent.id()))
            .await
            .refused(404, "not_found");
        bearer
            .post_nothing(reissue("rm_nosuch", agent.id()))
            .await
            .refused(404, "not_found");
    }
    assert_eq!(alice.sees_member(&two, agent.id()).await, None);
}

async fn reissuing_needs_a_key_or_an_identity(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let path = reissue(&room, agent.id());
    server
        .anonymous()
        .post_nothing(&path)
        .await
        .refused(401, "missing_bearer");
    alice.post_nothing(&path).await.refused(401, "key_invalid");
    let rubbish = server.anonymous().with_token("rubbish");
    let reply = rubbish.post_nothing(&path).await;
    assert_eq!(reply.status, 401, "{}", reply.text());
    for token in forged(agent.token().unwrap()) {
        let reply = agent.with_token(&token).post_nothing(&path).await;
        assert_eq!(reply.status, 401, "{}", reply.text());
    }
    alice
        .delete(format!("/rooms/{room}/members/{}", agent.id()))
        .await
        .ok();
    agent.post_nothing(&path).await.refused(401, "key_invalid");
}

async fn a_revoked_identity_reissues_nothing(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let identity = agent.identity();
    let jti = claims(identity.token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    identity.delete(format!("/agent-identity/{jti}")).await.ok();
    let reply = identity.post_nothing(reissue(&room, agent.id())).await;
    reply.refused(401, "identity_invalid");
}

/// The victim is in alice's private room; mallory owns a public room, where anybody may join under
/// any external id.
async fn impersonated(setup: Setup) -> (SharedServer, String, Agent, Agent) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let private = alice.creates_a_room().await;
    let victim = alice.lets_in(&private, &agent_id("curious_otter")).await;
    let public = server.user("u_mallory").creates_a_public_room().await;
    let visitor = server.anonymous().seen_from_outside();
    let invite = visitor
        .post_nothing(format!("/rooms/{public}/auto-invite"))
        .await
        .created();
    let code = invite["invite_code"].as_str().unwrap();
    let stranger = visitor.joins(&public, code, victim.id()).await;
    assert_eq!(stranger.id(), victim.id());
    (server, private, victim, stranger)
}

async fn a_stranger_under_a_members_id_gets_nothing(setup: Setup) {
    let (_server, private, victim, stranger) = impersonated(setup).await;
    let path = reissue(&private, victim.id());
    for bearer in [&stranger.caller, &stranger.identity()] {
        bearer.post_nothing(&path).await.refused(403, "forbidden");
    }
    let minted = stranger.post_nothing("/agent-identity").await.created();
    let minted = stranger.with_token(minted["identity_token"].as_str().unwrap());
    minted.post_nothing(&path).await.refused(403, "forbidden");
    let refreshed = stranger
        .identity()
        .post_nothing("/agent-identity/refresh")
        .await
        .ok();
    let refreshed = stranger.with_token(refreshed["identity_token"].as_str().unwrap());
    refreshed
        .post_nothing(&path)
        .await
        .refused(403, "forbidden");
    let jti = claims(victim.identity().token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    let revoked = stranger
        .identity()
        .delete(format!("/agent-identity/{jti}"))
        .await;
    revoked.refused(403, "forbidden");
    victim.identity().post_nothing(&path).await.ok();
}

async fn a_known_agent_proves_itself_when_it_joins_elsewhere(setup: Setup) {
    let server = setup.shared().await;
    let (alice, mallory) = (server.user("u_alice"), server.user("u_bob"));
    let home = alice.creates_a_room().await;
    let agent = alice.lets_in(&home, &agent_id("curious_otter")).await;
    for bearer in [agent.identity(), agent.caller.clone()] {
        let elsewhere = mallory.creates_a_room().await;
        let code = mallory.invites(&elsewhere).await;
        let there = bearer.joins(&elsewhere, &code, agent.id()).await;
        assert_eq!(there.id(), agent.id());
        there.post_nothing(reissue(&home, agent.id())).await.ok();
        agent
            .identity()
            .post_nothing(reissue(&elsewhere, agent.id()))
            .await
            .ok();
    }
}

async fn minting_is_limited_to_one_a_minute_for_each_credential(setup: Setup) {
    let mut server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let calls = [
        (agent.caller.clone(), "/agent-identity".to_owned(), 201),
        (agent.identity(), "/agent-identity/refresh".to_owned(), 200),
    ];
    for (caller, path, status) in &calls {
        assert_eq!(caller.post_nothing(path).await.status, *status);
        caller.post_nothing(path).await.refused(429, "rate_limited");
    }
    let other = alice.lets_in(&room, &agent_id("sunny_willow")).await;
    let path = reissue(&room, other.id());
    other.identity().post_nothing(&path).await.ok();
    other
        .identity()
        .post_nothing(&path)
        .await
        .refused(429, "rate_limited");
    other.post_nothing(&path).await.ok();
    other.post_nothing(&path).await.refused(429, "rate_limited");

    server.restart().await;
    let reply = other.at(&server).post_nothing(&path).await;
    reply.refused(429, "rate_limited");
}

async fn minting_at_once_is_no_way_around_the_limit(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let calls = [
        (agent.caller.clone(), "/agent-identity".to_owned()),
        (agent.identity(), "/agent-identity/refresh".to_owned()),
        (agent.identity(), reissue(&room, agent.id())),
        (
            server.user_of_type("u_alice", "access"),
            "/auth/exchange".to_owned(),
        ),
    ];
    for (caller, path) in calls {
        let minted = (0..8).map(|_| tokio::spawn(caller.post_nothing(&path).into_future()));
        let mut count = 0;
        for reply in minted.collect::<Vec<_>>() {
            let reply = reply.await.unwrap();
            match reply.status {
                200 | 201 => count += 1,
                _ => drop(reply.refused(429, "rate_limited")),
            }
        }
        assert_eq!(count, 1, "{path}");
    }
}
