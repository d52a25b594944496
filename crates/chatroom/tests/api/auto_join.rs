//! The reserved rooms, and joining all of them at once.

use crate::harness::{Caller, Setup, TestServer, both_engines, one_engine};
use serde_json::{Value, json};

both_engines![
    the_reserved_rooms_are_there_from_the_start,
    a_reserved_room_has_a_limit_of_its_own,
    a_user_joins_every_reserved_room,
    an_agent_joins_without_a_bearer_and_gets_its_tokens_by_proving_itself,
    an_agent_joins_with_its_identity_token,
    whoever_had_the_id_first_gets_a_place_that_nobody_proved,
    anonymous_joins_are_limited,
];

one_engine![
    a_stranger_who_names_an_agent_gets_nothing,
    bad_requests_say_what_to_change,
    nobody_changes_a_reserved_room,
    a_shared_room_key_joins_nothing,
    a_nameless_agent_gets_a_petname,
    the_member_limit_of_other_rooms_does_not_count_in_reserved_rooms,
];

const RESERVED: [&str; 3] = ["rm_welcome", "rm_feedback", "rm_bugs"];
const AGENT: &str = "curious_otter-3a9f1c20";
const EXT_AGENT: &str = "ext_curious_otter-3a9f1c20";
const PATH: &str = "/rooms/public/auto-join";

fn agent_body() -> Value {
    json!({"user_id": AGENT, "client_kind": "external_agent", "adapter_type": "pull",
           "user_name": "CuriousOtter"})
}

fn newly(joined: &Value) -> Vec<bool> {
    let rooms = joined["reserved_rooms"].as_array().unwrap().iter();
    rooms
        .map(|room| room["newly_joined"].as_bool().unwrap())
        .collect()
}

async fn the_reserved_rooms_are_there_from_the_start(setup: Setup) {
    let mut server = setup.start().await;
    for _ in 0..2 {
        let visitor = server.anonymous();
        let list = visitor.get("/rooms/public").await.ok();
        let rooms = list["rooms"].as_array().unwrap();
        for id in RESERVED {
            let room = rooms.iter().find(|room| room["room_id"] == id).unwrap();
            assert_eq!(room["owner_user_id"], "u_system");
            let summary = visitor
                .get(format!("/rooms/{id}/public-summary"))
                .await
                .ok();
            assert_eq!(summary["visibility"], "public");
        }
        assert_eq!(rooms.len(), 3, "{rooms:?}");
        server.restart().await;
    }
    let alice = server.user("u_alice");
    alice.post_nothing(PATH).await.ok();
    let rules = alice.get("/rooms/rm_welcome/rules").await.ok();
    assert_eq!(
        (&rules["version"], &rules["updated_by"]),
        (&json!(1), &json!("u_system"))
    );
    assert!(rules["content"].as_str().unwrap().contains("/docs/welcome"));
}

async fn nobody_changes_a_reserved_room(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let admin = server.user_of_type("u_admin", "admin");
    let name = json!({"name": "mine"});
    let text = json!({"content": "mine"});
    for room in RESERVED {
        let (at, rules, data) = (
            format!("/rooms/{room}"),
            format!("/rooms/{room}/rules"),
            format!("/rooms/{room}/data"),
        );
        for caller in [&alice, &admin, &server.anonymous()] {
            let code = "forbidden_system_room";
            caller.patch(&at, name.clone()).await.refused(403, code);
            caller.patch(&at, json!({})).await.refused(403, code);
            let archived = json!({"archived": true});
            caller.patch(&at, archived).await.refused(403, code);
            caller.patch(&rules, text.clone()).await.refused(403, code);
            caller.patch(&data, text.clone()).await.refused(403, code);
        }
    }
    alice.post_nothing(PATH).await.ok();
    server.user("u_bob").post_nothing(PATH).await.ok();
    let code = "forbidden_system_room";
    let invites = alice.post("/rooms/rm_bugs/invites", json!({})).await;
    invites.refused(403, code);
    let bob = "/rooms/rm_bugs/members/u_bob";
    alice.delete(bob).await.refused(403, code);
    server.user("u_bob").delete(bob).await.ok();
}

async fn the_member_limit_of_other_rooms_does_not_count_in_reserved_rooms(setup: Setup) {
    let server = setup.limit("members_per_room", 2).start().await;
    for n in 0..4 {
        let agent = json!({"user_id": format!("patient_agent-0000000{n}"),
                           "client_kind": "external_agent"});
        let joined = server.anonymous().post(PATH, agent).await.ok();
        assert_eq!(newly(&joined), [true; 3]);
    }
}

async fn a_reserved_room_has_a_limit_of_its_own(setup: Setup) {
    let server = setup.limit("reserved_members_per_room", 1).start().await;
    server.user("u_alice").post_nothing(PATH).await.ok();
    let bob = server.user("u_bob");
    bob.post_nothing(PATH).await.refused(409, "room_full");
    let again = server.user("u_alice").post_nothing(PATH).await.ok();
    assert_eq!(newly(&again), [false; 3]);
}

async fn a_user_joins_every_reserved_room(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let joined = alice.post_nothing(PATH).await.ok();
    let room = |id: &str, new: bool| {
        json!({"room_id": id, "newly_joined": new,
        "user_id": "u_alice", "user_name": "Alice"})
    };
    assert_eq!(
        joined,
        json!({"user_id": "u_alice", "member_kind": "starchild_user",
               "reserved_rooms": RESERVED.map(|id| room(id, true))})
    );
    let seq = alice.says("rm_bugs", "hello").await;
    assert_eq!(alice.reads("rm_bugs", seq).await["content"], "hello");
    alice.delete("/rooms/rm_bugs/members/u_alice").await.ok();
    let again = alice.post(PATH, json!({})).await.ok();
    assert_eq!(newly(&again), [false, false, true]);
}

/// Joins a private room of Alice's as the agent.
async fn invited_agent(server: &TestServer) -> crate::harness::Agent {
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.lets_in(&room, AGENT).await
}

/// A member token for a reserved room, with this credential.
async fn reissued(with: &Caller, room: &str) -> Caller {
    let path = format!("/rooms/{room}/members/{EXT_AGENT}/reissue-token");
    let reply = with.post_nothing(path).await.ok();
    with.with_token(reply["member_token"].as_str().unwrap())
}

async fn an_agent_joins_without_a_bearer_and_gets_its_tokens_by_proving_itself(setup: Setup) {
    let server = setup.start().await;
    let agent = invited_agent(&server).await;
    let joined = server.anonymous().post(PATH, agent_body()).await.ok();
    assert_eq!(joined["user_id"], EXT_AGENT);
    assert_eq!(joined["member_kind"], "external_agent");
    assert_eq!(newly(&joined), [true; 3]);
    assert_eq!(joined["reserved_rooms"][1]["user_name"], "CuriousOtter");
    let again = server.anonymous().post(PATH, agent_body()).await.ok();
    assert_eq!(newly(&again), [false; 3]);

    let in_welcome = reissued(&agent.identity(), "rm_welcome").await;
    in_welcome.says("rm_welcome", "hello").await;
    let in_bugs = reissued(&agent.caller, "rm_bugs").await;
    in_bugs.says("rm_bugs", "hello").await;
}

async fn an_agent_joins_with_its_identity_token(setup: Setup) {
    let server = setup.start().await;
    let agent = invited_agent(&server).await;
    let joined = agent.identity().post(PATH, json!({})).await.ok();
    assert_eq!(
        (&joined["user_id"], newly(&joined)),
        (&json!(EXT_AGENT), vec![true; 3])
    );
    let in_welcome = reissued(&agent.identity(), "rm_welcome").await;
    in_welcome.says("rm_welcome", "hello").await;

    let other = json!({"user_id": "another_agent-00000001", "client_kind": "external_agent"});
    agent
        .identity()
        .post(PATH, other)
        .await
        .refused(403, "forbidden");
}

async fn a_stranger_who_names_an_agent_gets_nothing(setup: Setup) {
    let server = setup.start().await;
    let agent = invited_agent(&server).await;
    agent.identity().post(PATH, agent_body()).await.ok();
    let mine = reissued(&agent.identity(), "rm_welcome").await;

    // The stranger takes the agent's id in another public room, and has tokens of that.
    let open = server.user("u_bob").creates_a_public_room().await;
    let invite = server
        .anonymous()
        .post_nothing(format!("/rooms/{open}/auto-invite"))
        .await
        .created();
    let code = invite["invite_code"].as_str().unwrap();
    let stranger = server.anonymous().joins(&open, code, AGENT).await;
    let named = server.anonymous().post(PATH, agent_body()).await.ok();
    assert_eq!(newly(&named), [false; 3]);
    let named = stranger.identity().post(PATH, json!({})).await.ok();
    assert_eq!(newly(&named), [false; 3]);
    for room in RESERVED {
        let path = format!("/rooms/{room}/members/{EXT_AGENT}/reissue-token");
        for token in [&stranger.caller, &stranger.identity()] {
            token.post_nothing(&path).await.refused(403, "forbidden");
        }
    }
    mine.says("rm_welcome", "still me").await;
}

async fn whoever_had_the_id_first_gets_a_place_that_nobody_proved(setup: Setup) {
    let server = setup.start().await;
    let agent = invited_agent(&server).await;
    // Another comes a second later at least: who was first is told by the second.
    let issued = crate::harness::claims(agent.identity().token().unwrap())["iat"].clone();
    crate::harness::eventually("the next second", async || {
        (issued.as_i64().unwrap() < crate::harness::now()).then_some(())
    })
    .await;
    let open = server.user("u_bob").creates_a_public_room().await;
    let invite = server
        .anonymous()
        .post_nothing(format!("/rooms/{open}/auto-invite"))
        .await
        .created();
    let code = invite["invite_code"].as_str().unwrap();
    let stranger = server.anonymous().joins(&open, code, AGENT).await;

    // Nobody in particular puts the id into the reserved rooms; the stranger is there first.
    server.anonymous().post(PATH, agent_body()).await.ok();
    let path = format!("/rooms/rm_welcome/members/{EXT_AGENT}/reissue-token");
    for token in [&stranger.caller, &stranger.identity()] {
        token.post_nothing(&path).await.refused(403, "forbidden");
    }
    let mine = reissued(&agent.identity(), "rm_welcome").await;
    mine.says("rm_welcome", "it is me").await;
    let refused = stranger.identity().post_nothing(&path).await;
    refused.refused(403, "forbidden");
}

async fn a_shared_room_key_joins_nothing(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer(&room).await;
    viewer.post(PATH, json!({})).await.refused(403, "forbidden");
    assert_eq!(newly(&alice.post_nothing(PATH).await.ok()), [true; 3]);
}

fn is_petname(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let letters = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    matches!(parts[..], [adjective, animal, hex] if letters(adjective) && letters(animal)
        && hex.len() == 2 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

async fn a_nameless_agent_gets_a_petname(setup: Setup) {
    let server = setup.start().await;
    let anonymous = server.anonymous();
    let invited = async |agent: Value| {
        let invite = anonymous
            .post_nothing("/rooms/rm_welcome/auto-invite")
            .await
            .created();
        let mut body = agent;
        body["invite_code"] = invite["invite_code"].clone();
        body["adapter_type"] = json!("pull");
        anonymous
            .post("/rooms/rm_welcome/join", body)
            .await
            .created()
    };
    let joined = invited(json!({"user_id": AGENT})).await;
    assert_eq!(joined["user_id"], EXT_AGENT);
    let name = joined["user_name"].as_str().unwrap();
    assert!(is_petname(name), "{name}");
    // The name goes with the agent into the other reserved rooms.
    let body = json!({"user_id": AGENT, "client_kind": "external_agent"});
    let all = anonymous.post(PATH, body).await.ok();
    assert_eq!(newly(&all), [false, true, true]);
    assert_eq!(all["reserved_rooms"][2]["user_name"], name);

    let named = invited(json!({"user_id": "named_agent-00000001", "display_name": "Bob's bot"}));
    assert_eq!(named.await["user_name"], "Bob's bot");
    let person = invited(json!({"user_id": "bob", "client_kind": "human"})).await;
    assert_eq!(person["user_name"], Value::Null);
    // Whom an owner invites has the name in its id, unless the owner gives another.
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let guest = alice.lets_in(&room, "guest_agent-00000002").await;
    assert_eq!(guest.joined["user_name"], "Guest Agent");
    // It is nobody else in the reserved rooms.
    let body = json!({"client_kind": "external_agent"});
    let all = guest.identity().post(PATH, body).await.ok();
    assert_eq!(all["reserved_rooms"][0]["user_name"], "Guest Agent");
}

async fn bad_requests_say_what_to_change(setup: Setup) {
    let server = setup.start().await;
    let anonymous = server.anonymous();
    anonymous
        .post_nothing(PATH)
        .await
        .refused(401, "missing_bearer");
    for (body, code) in [
        (json!({"client_kind": "external_agent"}), "bad_request"),
        (
            json!({"user_id": "codex", "client_kind": "external_agent"}),
            "invalid_agent_id",
        ),
        (
            json!({"user_id": AGENT, "client_kind": "human"}),
            "bad_request",
        ),
        (
            json!({"user_id": AGENT, "client_kind": "external_agent", "adapter_type": "clawd"}),
            "bad_request",
        ),
        (
            json!({"user_id": AGENT, "client_kind": "external_agent", "user_name": "a\nb"}),
            "bad_request",
        ),
        (
            json!({"user_id": AGENT, "client_kind": "robot"}),
            "bad_request",
        ),
        (
            json!({"user_id": 7, "client_kind": "external_agent"}),
            "bad_request",
        ),
    ] {
        anonymous.post(PATH, body).await.refused(400, code);
    }
    let outside = server.user("u_alice").seen_from_outside();
    outside
        .post_nothing(PATH)
        .await
        .refused(403, "internal_only");
}

async fn anonymous_joins_are_limited(setup: Setup) {
    let server = setup.limit("auto_joins_per_hour", 2).start().await;
    let body = |n: usize| {
        json!({"user_id": format!("patient_agent-0000000{n}"),
                                 "client_kind": "external_agent"})
    };
    let visitor = server.anonymous().from("203.0.113.7");
    for n in 0..2 {
        visitor.post(PATH, body(n)).await.ok();
    }
    visitor
        .post(PATH, body(2))
        .await
        .refused(429, "rate_limited");
    // Asking again for somebody who is there joins nobody.
    assert_eq!(newly(&visitor.post(PATH, body(1)).await.ok()), [false; 3]);
    let elsewhere = server.anonymous().from("203.0.113.8");
    elsewhere.post(PATH, body(2)).await.ok();
}
