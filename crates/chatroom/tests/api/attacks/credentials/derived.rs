//! What is revoked takes along what was made with it.

use super::{holds, identity_ended, jti, minted, refreshed, reissued, signed_in};
use crate::harness::{Engine, Setup, TestServer, agent_id, both_engines};
use serde_json::json;

both_engines![
    an_identity_takes_along_what_was_made_with_it,
    whoever_ends_an_older_identity_goes_on,
    a_sign_in_takes_along_its_keys_and_links,
    a_removed_members_key_takes_along_what_was_made_with_it,
    what_is_made_while_its_source_is_revoked_does_not_escape,
];

async fn an_identity_takes_along_what_was_made_with_it(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let (one, two) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let agent = alice.lets_in(&one, &agent_id("curious_otter")).await;
    let code = alice.invites(&two).await;
    let in_two = agent.identity().joins(&two, &code, agent.id()).await;
    let me = agent.id();

    let key = reissued(&agent.identity(), &two, me).await;
    let from_key = minted(&key).await;
    let deeper = refreshed(&from_key).await;
    let deepest = reissued(&deeper, &one, me).await;
    let streams = [key.listens(&two).await, deepest.listens(&one).await];
    assert!(holds(&in_two, &two).await && holds(&deepest, &one).await);

    let identity = agent.identity();
    let path = format!("/agent-identity/{}", jti(&identity));
    identity.delete(path).await.ok();
    for stream in streams {
        stream.ended().await;
    }
    for (key, room) in [(&key, &two), (&deepest, &one), (&in_two.caller, &two)] {
        assert!(!holds(key, room).await);
        let posted = key.post(
            format!("/rooms/{room}/messages"),
            json!({"content": "still here?"}),
        );
        posted.await.refused(401, "key_invalid");
    }
    for token in [&identity, &from_key, &deeper, &in_two.identity()] {
        identity_ended(token).await;
    }
    // What the agent got beside it, when it joined, was not made with it.
    assert!(holds(&agent, &one).await);
}

/// Somebody copied the agent's identity token. The agent refreshes its own and ends the old one.
async fn whoever_ends_an_older_identity_goes_on(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let stolen = agent.identity();
    let thief = refreshed(&stolen).await;
    let thiefs_key = reissued(&thief, &room, agent.id()).await;
    let thiefs_stream = thiefs_key.listens(&room).await;

    let between = refreshed(&agent.identity()).await;
    let mine = refreshed(&between).await;
    let my_key = reissued(&mine, &room, agent.id()).await;
    let mut my_stream = my_key.listens(&room).await;
    mine.delete(format!("/agent-identity/{}", jti(&stolen)))
        .await
        .ok();

    thiefs_stream.ended().await;
    assert!(!holds(&thiefs_key, &room).await);
    for token in [&stolen, &thief, &between] {
        identity_ended(token).await;
    }
    refreshed(&mine).await;
    let seq = my_key.says(&room, "it is me").await;
    assert_eq!(my_stream.expect("message").await["seq"], seq);
}

async fn a_sign_in_takes_along_its_keys_and_links(setup: Setup) {
    let server = setup.shared().await;
    let person = signed_in(&server, "u_alice").await;
    let room = person.creates_a_room().await;
    let own = reissued(&person, &room, "u_alice").await;
    let shared = person.viewer_with(&room, "view").await;
    let public = server.user("u_bob").creates_a_public_room().await;
    let join = json!({"adapter_type": "pull"});
    let joined = person.post(format!("/rooms/{public}/join"), join).await;
    let joined = super::with(&person, joined, "member_token");
    let streams = [
        own.listens(&room).await,
        shared.listens(&room).await,
        joined.listens(&public).await,
    ];
    let path = format!("/agent-identity/{}", jti(&person));
    person.delete(path).await.ok();
    for stream in streams {
        stream.ended().await;
    }
    for (key, room) in [(own, &room), (shared, &room), (joined, &public)] {
        assert!(!holds(&key, room).await);
    }
}

async fn a_removed_members_key_takes_along_what_was_made_with_it(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let (one, two) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let agent = alice.lets_in(&one, &agent_id("curious_otter")).await;
    let code = alice.invites(&two).await;
    let in_two = agent.identity().joins(&two, &code, agent.id()).await;
    let from_key = minted(&agent).await;
    let key = reissued(&agent, &two, agent.id()).await;
    let stream = key.listens(&two).await;
    alice
        .delete(format!("/rooms/{one}/members/{}", agent.id()))
        .await
        .ok();
    stream.ended().await;
    identity_ended(&from_key).await;
    assert!(!holds(&key, &two).await);
    // Being removed from one room is no reason to lose another.
    assert!(holds(&in_two, &two).await);
    reissued(&agent.identity(), &two, agent.id()).await;
}

async fn what_is_made_while_its_source_is_revoked_does_not_escape(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    for _ in 0..5 {
        let source = refreshed(&agent.identity()).await;
        let below = refreshed(&source).await;
        let path = super::reissue(&room, agent.id());
        let minting = (0..4).map(|_| {
            let (below, path) = (below.clone(), path.clone());
            tokio::spawn(async move { below.post_nothing(path).await })
        });
        let minting: Vec<_> = minting.collect();
        let ended = source.delete(format!("/agent-identity/{}", jti(&source)));
        ended.await.ok();
        for reply in minting {
            let reply = reply.await.unwrap();
            if reply.status == 200 {
                let key = super::with(&below, reply, "member_token");
                assert!(!holds(&key, &room).await, "a key outlives its source");
            }
        }
    }
}

#[tokio::test]
async fn what_was_derived_ends_on_every_node() {
    let bus = std::env::var("SC_TEST_NATS_URL")
        .expect("SC_TEST_NATS_URL; run `cargo xtask test`, which sets it");
    let one: TestServer = Setup::new(Engine::Postgres).env("BUS", &bus).start().await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let identity = refreshed(&agent.identity()).await;
    let key = reissued(&identity, &room, agent.id()).await.at(&two);
    let stream = key.listens(&room).await;
    let path = format!("/agent-identity/{}", jti(&identity));
    agent.identity().delete(path).await.ok();
    stream.ended().await;
    assert!(!holds(&key, &room).await);
}
