//! An agent that lost every token gets its place back with the owner's consent to that member.

use super::{OTTER, holds, jti, reissue, reissued};
use crate::harness::{Caller, Setup, both_engines};
use serde_json::{Value, json};

both_engines![
    the_owner_lets_a_member_have_new_tokens,
    consent_is_to_one_member_and_once,
];

fn recovery(room: &str, user: &str) -> String {
    format!("/rooms/{room}/members/{user}/recovery")
}

async fn redeems(caller: &Caller, room: &str, code: &str, body: Value) -> crate::harness::Reply {
    let mut join = json!({"invite_code": code, "adapter_type": "pull", "user_id": OTTER});
    let fields = body.as_object().unwrap().clone();
    join.as_object_mut().unwrap().extend(fields);
    caller.post(format!("/rooms/{room}/join"), join).await
}

async fn the_owner_lets_a_member_have_new_tokens(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, OTTER).await;
    let path = format!("/rooms/{room}/members/{}/endpoint", agent.id());
    let push = json!({"agent_endpoint": "https://old.example", "akm_key": "sk_old"});
    agent.put(path, push).await.ok();
    let old_stream = agent.listens(&room).await;

    let allowed = alice
        .post_nothing(recovery(&room, agent.id()))
        .await
        .created();
    let code = allowed["invite_code"].as_str().unwrap();
    let short = format!("/i/{}", allowed["short_code"].as_str().unwrap());
    assert_eq!(server.anonymous().get(short).await.text(), code);
    let joined = redeems(&server.anonymous(), &room, code, json!({})).await;
    let joined = joined.created();
    assert_eq!(joined["user_id"], agent.id());
    let back = agent.with_token(joined["member_token"].as_str().unwrap());
    back.says(&room, "here again").await;
    let identity = agent.with_token(joined["identity_token"].as_str().unwrap());
    reissued(&identity, &room, agent.id()).await;

    // Whoever had the place before has it no longer, and is not called in its name.
    old_stream.ended().await;
    assert!(!holds(&agent, &room).await);
    let old = agent.identity().post_nothing(reissue(&room, agent.id()));
    old.await.refused(403, "forbidden");
    let member = alice.sees_member(&room, agent.id()).await.unwrap();
    assert_eq!(
        (&member["has_agent_endpoint"], &member["has_akm_key"]),
        (&json!(false), &json!(false))
    );
    let actions: Vec<String> = alice.audits(&room).await.into_iter().map(|a| a.1).collect();
    assert!(actions.contains(&"recovery_allowed".into()));
    assert!(actions.contains(&"member_recovered".into()));
}

async fn consent_is_to_one_member_and_once(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let agent = alice.lets_in(&room, OTTER).await;
    alice.lets_in(&other, OTTER).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;

    let path = recovery(&room, agent.id());
    bob.post_nothing(&path).await.refused(403, "forbidden");
    agent
        .post_nothing(&path)
        .await
        .refused(401, "token_invalid");
    server
        .anonymous()
        .post_nothing(&path)
        .await
        .refused(401, "missing_bearer");
    for key in [
        alice.viewer(&room).await,
        alice.viewer_with(&room, "view").await,
    ] {
        key.post_nothing(&path).await.refused(401, "token_invalid");
    }
    let signed_in = alice.post_nothing(recovery(&room, "u_bob")).await;
    signed_in.refused(403, "forbidden");
    let missing = alice.post_nothing(recovery(&room, "ext_nobody-00000000"));
    missing.await.refused(404, "not_found");

    let code = async || {
        let allowed = alice.post_nothing(&path).await.created();
        allowed["invite_code"].as_str().unwrap().to_owned()
    };
    let nobody = server.anonymous();
    let first = code().await;
    let invalid = "invite_invalid";
    for wrong in [
        json!({"user_id": "sunny_willow-7e2bd401"}),
        json!({"user_id": null}),
    ] {
        let reply = redeems(&nobody, &room, &first, wrong).await;
        reply.refused(400, invalid);
    }
    let reply = redeems(&nobody, &other, &first, json!({})).await;
    reply.refused(400, invalid);
    let reply = redeems(&server.user("u_eve"), &room, &first, json!({})).await;
    reply.refused(400, invalid);
    let push =
        json!({"adapter_type": "clawd", "agent_endpoint": "https://x.example", "akm_key": "k"});
    let reply = redeems(&nobody, &room, &first, push).await;
    reply.refused(400, "bad_request");
    assert!(holds(&agent, &room).await, "nothing has happened yet");

    redeems(&nobody, &room, &first, json!({})).await.created();
    let reply = redeems(&nobody, &room, &first, json!({})).await;
    reply.refused(400, invalid);
    // The new place reaches no other room of the same id.
    let second = code().await;
    let joined = redeems(&nobody, &room, &second, json!({})).await.created();
    let identity = agent.with_token(joined["identity_token"].as_str().unwrap());
    let reply = identity.post_nothing(reissue(&other, agent.id())).await;
    reply.refused(403, "forbidden");

    // A consent is an invite, and is taken back like one.
    let third = code().await;
    let revoked = alice.with_token(third.strip_prefix("inv_").unwrap());
    let path = format!("/rooms/{room}/invites/{}", jti(&revoked));
    alice.delete(path).await.ok();
    let reply = redeems(&nobody, &room, &third, json!({})).await;
    reply.refused(400, invalid);

    // In a reserved room there is no owner: the operator may.
    let operator = server.user_of_type("u_operator", "admin");
    agent
        .post("/rooms/public/auto-join", json!({}))
        .await
        .refused(401, "key_invalid");
    identity
        .post("/rooms/public/auto-join", json!({}))
        .await
        .ok();
    let path = recovery("rm_welcome", agent.id());
    let refused = alice.post_nothing(&path).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let allowed = operator.post_nothing(&path).await.created();
    let code = allowed["invite_code"].as_str().unwrap();
    let joined = redeems(&nobody, "rm_welcome", code, json!({})).await;
    joined.created();
}
