//! Leaderboards: who is on them, and who may see whom.

use crate::harness::{Caller, Setup, both_engines, one_engine};
use serde_json::{Value, json};

both_engines![
    a_room_ranks_its_members,
    a_private_room_shows_strangers_nothing,
    whoever_left_is_not_on_the_rooms_board,
    the_global_board_ranks_over_all_rooms,
    the_global_board_hides_who_is_in_private_rooms_alone,
    ones_own_agents_keep_their_names_everywhere,
];
one_engine![
    bad_windows_and_limits_are_refused,
    the_boards_are_limited_for_visitors,
    visitors_of_a_public_room_see_names_and_no_ids,
];

fn board(reply: &Value) -> Vec<&Value> {
    reply["leaderboard"].as_array().unwrap().iter().collect()
}

async fn says_times(caller: &Caller, room: &str, times: usize) {
    for n in 0..times {
        caller.says(room, &n.to_string()).await;
    }
}

async fn a_room_ranks_its_members(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    says_times(&bob, &room, 3).await;
    says_times(&alice, &room, 1).await;
    let path = format!("/rooms/{room}/leaderboard");
    let reply = alice.get(&path).await.ok();
    let places = board(&reply);
    assert_eq!(
        reply,
        json!({"scope": "room", "room_id": room, "window_days": 30, "scoring_version": 1,
               "leaderboard": [
            {"rank": 1, "score": 2.25, "event_count": 3, "user_id": "u_bob", "display_name": "Bob",
             "member_kind": "starchild_user", "avatar_seed": places[0]["avatar_seed"]},
            {"rank": 2, "score": 0.75, "event_count": 1, "user_id": "u_alice",
             "display_name": "Alice", "member_kind": "starchild_agent", "avatar_seed": places[1]["avatar_seed"]},
        ]})
    );
    let seed = places[0]["avatar_seed"].as_str().unwrap();
    assert!(seed.len() == 16 && !seed.contains("bob"), "{seed}");
    let viewer = alice.viewer_with(&room, "view").await;
    let top = viewer.get(format!("{path}?window=1&limit=1")).await.ok();
    assert_eq!(top["window_days"], 1);
    assert_eq!(board(&top), [places[0]]);
}

async fn visitors_of_a_public_room_see_names_and_no_ids(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let nameless = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    says_times(&alice, &room, 2).await;
    says_times(&nameless, &room, 1).await;
    let visitor = server.anonymous().seen_from_outside();
    let reply = visitor.get(format!("/rooms/{room}/leaderboard")).await;
    let text = reply.text().to_owned();
    let reply = reply.ok();
    assert_eq!(board(&reply)[0]["display_name"], "Alice");
    assert_eq!(board(&reply)[1]["member_kind"], "external_agent");
    assert!(
        !text.contains("user_id") && !text.contains("u_alice"),
        "{text}"
    );
    assert!(!text.contains("otter-3a9f1c20"), "{text}");
    let full = alice.get(format!("/rooms/{room}/leaderboard")).await.ok();
    assert_eq!(board(&full)[1]["user_id"], nameless.id());
    assert_eq!(board(&full)[1]["display_name"], "Curious Otter");
    assert_eq!(
        board(&full)[1]["avatar_seed"],
        board(&reply)[1]["avatar_seed"]
    );
}

async fn a_private_room_shows_strangers_nothing(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/leaderboard");
    let visitor = server.anonymous();
    let hidden = visitor.get(&path).await.refused(401, "missing_bearer");
    // A room that is not there looks the same.
    let missing = visitor.get("/rooms/rm_nowhere/leaderboard").await;
    assert_eq!(missing.refused(401, "missing_bearer"), hidden);
    server
        .user("u_bob")
        .get(&path)
        .await
        .refused(403, "not_a_member");
}

async fn whoever_left_is_not_on_the_rooms_board(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    says_times(&bob, &room, 2).await;
    let path = format!("/rooms/{room}/leaderboard");
    assert_eq!(board(&alice.get(&path).await.ok()).len(), 1);
    bob.delete(format!("/rooms/{room}/members/u_bob"))
        .await
        .ok();
    assert_eq!(board(&alice.get(&path).await.ok()).len(), 0);
    alice.lets_in_user(&room, &bob).await;
    assert_eq!(board(&alice.get(&path).await.ok())[0]["event_count"], 2);
}

async fn the_global_board_ranks_over_all_rooms(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    for caller in [&alice, &bob] {
        caller.post_nothing("/rooms/public/auto-join").await.ok();
    }
    let (private, public) = (
        alice.creates_a_room().await,
        alice.creates_a_public_room().await,
    );
    says_times(&alice, &private, 2).await;
    says_times(&alice, &public, 2).await;
    says_times(&bob, "rm_feedback", 3).await;
    let visitor = server.anonymous().seen_from_outside();
    let reply = visitor.get("/leaderboard?window=7&limit=10").await.ok();
    assert_eq!(
        (&reply["scope"], &reply["window_days"]),
        (&json!("global"), &json!(7))
    );
    assert_eq!(reply.get("room_id"), None);
    let places: Vec<_> = board(&reply)
        .into_iter()
        .map(|place| {
            (
                &place["rank"],
                &place["user_id"],
                &place["display_name"],
                &place["score"],
            )
        })
        .collect();
    assert_eq!(
        places,
        [
            (&json!(1), &json!("u_alice"), &json!("Alice"), &json!(3.0)),
            (&json!(2), &json!("u_bob"), &json!("Bob"), &json!(2.25)),
        ]
    );
}

async fn the_global_board_hides_who_is_in_private_rooms_alone(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    says_times(&alice, &room, 1).await;
    let reply = server.anonymous().get("/leaderboard").await;
    assert!(
        !reply.text().to_lowercase().contains("alice"),
        "{}",
        reply.text()
    );
    let reply = reply.ok();
    let place = board(&reply)[0];
    assert_eq!(
        (&place["event_count"], place.get("user_id")),
        (&json!(1), None)
    );
    assert_eq!(place.get("member_kind"), None);
    let name = place["display_name"].as_str().unwrap();
    assert_eq!(name.split('-').count(), 3, "a made-up name: {name}");
    // Once she is in a public room, she is known.
    alice.post_nothing("/rooms/public/auto-join").await.ok();
    let reply = server.anonymous().get("/leaderboard").await.ok();
    assert_eq!(board(&reply)[0]["user_id"], "u_alice");
    assert_eq!(board(&reply)[0]["member_kind"], "starchild_user");
    assert_eq!(board(&reply)[0]["avatar_seed"], place["avatar_seed"]);
}

async fn bad_windows_and_limits_are_refused(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for query in [
        "window=0",
        "window=91",
        "window=-1",
        "window=x",
        "limit=0",
        "limit=101",
        "limit=99999999999999999999",
        "window=1.5",
        "limit=",
    ] {
        let everywhere = server
            .anonymous()
            .get(format!("/leaderboard?{query}"))
            .await;
        everywhere.refused(400, "bad_request");
        let in_room = alice
            .get(format!("/rooms/{room}/leaderboard?{query}"))
            .await;
        in_room.refused(400, "bad_request");
    }
}

async fn the_boards_are_limited_for_visitors(setup: Setup) {
    let server = setup.limit("visitor_reads_per_minute", 2).start().await;
    for path in ["/leaderboard", "/rooms/rm_bugs/leaderboard"] {
        let visitor = server.anonymous().from("203.0.113.7");
        for _ in 0..2 {
            visitor.get(path).await.ok();
        }
        visitor.get(path).await.refused(429, "rate_limited");
    }
}

async fn ones_own_agents_keep_their_names_everywhere(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let otter = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    says_times(&otter, &room, 3).await;
    says_times(&bob, &room, 2).await;
    says_times(&alice, &room, 1).await;
    let names = async |caller: &Caller| {
        let reply = caller.get("/leaderboard").await.ok();
        let named: Vec<Option<String>> = board(&reply)
            .into_iter()
            .map(|place| match place.get("user_id") {
                Some(_) => place["display_name"].as_str().map(str::to_owned),
                None => None,
            })
            .collect();
        named
    };
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(
        names(&alice).await,
        [name("Curious Otter"), None, name("Alice")]
    );
    // Whoever shares a room with them learns nothing here that a stranger does not.
    assert_eq!(names(&bob).await, [None, name("Bob"), None]);
    assert_eq!(names(&server.anonymous()).await, [None, None, None]);
    assert_eq!(names(&otter).await, [None, None, None]);
    // An agent of Bob's own invite in another room is his, and not Alice's.
    let elsewhere = bob.creates_a_room().await;
    let code = bob.invites(&elsewhere).await;
    let join =
        json!({"invite_code": code, "adapter_type": "pull", "user_id": "curious_otter-3a9f1c20"});
    otter
        .identity()
        .post(format!("/rooms/{elsewhere}/join"), join)
        .await
        .created();
    assert_eq!(
        names(&bob).await,
        [name("Curious Otter"), name("Bob"), None]
    );
    let unknown = server.anonymous().with_token("no token");
    assert_eq!(names(&unknown).await, [None, None, None]);
}
