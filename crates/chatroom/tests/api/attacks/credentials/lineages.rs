//! An id is never proven by somebody else's invite.

use super::{OTTER, minted, refreshed, reissue, reissued};
use crate::harness::{Agent, Setup, TestServer, both_engines};
use serde_json::json;

both_engines![
    an_invite_of_the_same_owner_opens_no_other_room,
    whoever_was_first_keeps_an_unproven_place,
    a_latecomer_gets_a_place_of_its_own_with_its_bearer,
];

/// The owner invites a stranger, who says that it is an agent of another room of this owner.
async fn an_invite_of_the_same_owner_opens_no_other_room(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let (secret, lobby) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let victim = alice.lets_in(&secret, OTTER).await;
    let liar = alice.lets_in(&lobby, OTTER).await;
    assert_eq!(liar.id(), victim.id());
    let tokens = [
        liar.caller.clone(),
        liar.identity(),
        minted(&liar).await,
        refreshed(&liar.identity()).await,
    ];
    for token in tokens {
        let reply = token.post_nothing(reissue(&secret, victim.id())).await;
        reply.refused(403, "forbidden");
    }
    reissued(&victim.identity(), &secret, victim.id()).await;
}

/// Somebody takes the agent's id in a public room.
async fn pretender(server: &TestServer) -> Agent {
    let open = server.user("u_bob").creates_a_public_room().await;
    let path = format!("/rooms/{open}/auto-invite");
    let invite = server.anonymous().post_nothing(path).await.created();
    let code = invite["invite_code"].as_str().unwrap();
    server.anonymous().joins(&open, code, OTTER).await
}

/// A pretender in the same second as the agent is second all the same.
async fn whoever_was_first_keeps_an_unproven_place(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..6 {
        let id = format!("curious_otter-3a9f1c2{n}");
        let agent = alice.lets_in(&room, &id).await;
        let liar = alice.lets_in(&alice.creates_a_room().await, &id).await;
        let named = json!({"user_id": id, "client_kind": "external_agent"});
        let path = "/rooms/public/auto-join";
        server.anonymous().post(path, named).await.ok();
        let stolen = reissue("rm_welcome", agent.id());
        liar.identity()
            .post_nothing(&stolen)
            .await
            .refused(403, "forbidden");
        reissued(&agent.identity(), "rm_welcome", agent.id()).await;
        liar.identity()
            .post_nothing(&stolen)
            .await
            .refused(403, "forbidden");
    }
}

async fn a_latecomer_gets_a_place_of_its_own_with_its_bearer(setup: Setup) {
    let server = setup.start().await;
    let liar = pretender(&server).await;
    let alice = server.user("u_alice");
    let agent = alice.lets_in(&alice.creates_a_room().await, OTTER).await;
    let path = "/rooms/public/auto-join";
    agent.identity().post(path, json!({})).await.ok();
    for token in [&liar.caller, &liar.identity()] {
        let stolen = token.post_nothing(reissue("rm_welcome", agent.id())).await;
        stolen.refused(403, "forbidden");
    }
    let mine = reissued(&agent.identity(), "rm_welcome", agent.id()).await;
    mine.says("rm_welcome", "it is me").await;
}
