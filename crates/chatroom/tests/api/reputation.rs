//! What scores, and what does not.

use crate::harness::{Caller, Setup, TestServer, both_engines, one_engine};
use serde_json::{Value, json};

both_engines![
    a_message_scores_at_once_with_the_newcomers_boost,
    twenty_messages_a_day_score_over_all_rooms,
    a_reaction_scores_once_ever_and_three_times_a_day,
    a_mention_scores_five_times_a_day,
    a_message_counts_as_it_was_first_posted,
    a_thread_with_three_replies_of_others_scores_once,
    nobody_scores_by_their_own_doing,
    a_removed_member_loses_points_and_one_who_leaves_does_not,
    the_servers_own_messages_score_nothing,
    nothing_is_scored_twice_over_a_kill,
    nodes_that_score_at_once_count_once,
    ones_own_score_is_of_the_days_asked_for,
];

one_engine![only_members_have_a_score, the_scoring_rules_are_public,];

/// The caller's score in the room, as the server tells it.
async fn score(caller: &Caller, room: &str) -> Value {
    caller.get(format!("/rooms/{room}/me/score")).await.ok()
}

/// How many events of this kind the caller's score in the room is made of.
async fn events(caller: &Caller, room: &str, kind: &str) -> usize {
    let score = score(caller, room).await;
    let recent = score["recent_events"].as_array().unwrap();
    recent.iter().filter(|event| event["kind"] == kind).count()
}

#[track_caller]
fn about(value: &Value, expected: f64) {
    // Points fade by the second, and this machine may be slow.
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 0.02, "{value}, not {expected}");
}

/// A room of Alice's with Bob and Carol in it.
async fn room_of_three(server: &TestServer) -> (String, Caller, Caller, Caller) {
    let (alice, bob, carol) = (
        server.user("u_alice"),
        server.user("u_bob"),
        server.user("u_carol"),
    );
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    alice.lets_in_user(&room, &carol).await;
    (room, alice, bob, carol)
}

async fn react(caller: &Caller, room: &str, seq: i64, emoji: &str) {
    let path = format!("/rooms/{room}/messages/{seq}/reactions");
    caller.post(path, json!({"emoji": emoji})).await.ok();
}

async fn the_scoring_rules_are_public(setup: Setup) {
    let server = setup.start().await;
    let visitor = server.anonymous().seen_from_outside();
    let rules = visitor.get("/scoring-rules").await.ok();
    let formula = rules["formula"].as_str().unwrap();
    assert!(formula.starts_with("score = sum over events in window of (points × decay"));
    assert_eq!(
        rules,
        json!({"version": 1, "decay_days": 30, "newcomer_boost_days": 7, "newcomer_boost_mult": 1.5,
               "weights": {"reaction_received": 3.0, "mention_received": 2.0,
                           "thread_started_replies": 5.0, "post_authored": 0.5,
                           "penalty_message_deleted_by_owner": -10.0, "penalty_kick": -25.0},
               "per_day_caps": {"reaction_received": 3, "mention_received": 5},
               "post_authored_daily_cap": 20, "formula": formula})
    );
}

async fn a_message_scores_at_once_with_the_newcomers_boost(setup: Setup) {
    let server = setup.start().await;
    let (room, alice, bob, _) = room_of_three(&server).await;
    let before = score(&alice, &room).await;
    assert_eq!(
        before["summary"],
        json!({"score": 0.0, "event_count": 0, "by_kind": {}, "window_days": 30,
               "newcomer_boost_active": true})
    );
    let seq = alice.says(&room, "hello").await;
    let after = score(&alice, &room).await;
    about(&after["summary"]["score"], 0.75);
    about(&after["summary"]["by_kind"]["post_authored"], 0.75);
    assert_eq!(after["summary"]["event_count"], 1);
    assert_eq!(after["scoring_version"], 1);
    assert_eq!(
        (&after["user_id"], &after["room_id"]),
        (&json!("u_alice"), &json!(room))
    );
    let event = &after["recent_events"][0];
    assert_eq!(
        *event,
        json!({"id": event["id"].as_i64().unwrap(), "kind": "post_authored", "points": 0.5,
               "source_user_id": "u_alice", "source_seq": seq, "source_emoji": null,
               "created_at": event["created_at"].as_i64().unwrap()})
    );
    // A person's message in the browser counts as an agent's does.
    bob.viewer(&room).await.says(&room, "hi").await;
    about(&score(&bob, &room).await["summary"]["score"], 0.75);
}

async fn twenty_messages_a_day_score_over_all_rooms(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let (one, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    for n in 0..15 {
        alice.says(&one, &n.to_string()).await;
    }
    assert_eq!(score(&alice, &one).await["summary"]["event_count"], 15);
    for n in 0..15 {
        alice.says(&other, &n.to_string()).await;
    }
    let total = score(&alice, &other).await["summary"]["event_count"]
        .as_i64()
        .unwrap()
        + score(&alice, &one).await["summary"]["event_count"]
            .as_i64()
            .unwrap();
    // At midnight the caps begin anew, should the test run then.
    assert!(total == 20 || total == 30, "{total}");
}

async fn a_reaction_scores_once_ever_and_three_times_a_day(setup: Setup) {
    let server = setup.start().await;
    let (room, alice, bob, carol) = room_of_three(&server).await;
    let seq = alice.says(&room, "hello").await;
    react(&bob, &room, seq, "👍").await;
    assert_eq!(events(&alice, &room, "reaction_received").await, 1);
    let path = format!("/rooms/{room}/messages/{seq}/reactions/👍");
    for _ in 0..3 {
        bob.delete(&path).await.ok();
        react(&bob, &room, seq, "👍").await;
    }
    assert_eq!(events(&alice, &room, "reaction_received").await, 1);
    bob.delete(&path).await.ok();
    let state = score(&alice, &room).await;
    about(&state["summary"]["by_kind"]["reaction_received"], 4.5);
    let recent = state["recent_events"].as_array().unwrap();
    let event = recent.iter().find(|e| e["kind"] == "reaction_received");
    let event = event.unwrap();
    assert_eq!(
        (&event["points"], &event["source_emoji"]),
        (&json!(3.0), &json!("👍"))
    );
    assert_eq!(
        (&event["source_user_id"], &event["source_seq"]),
        (&json!("u_bob"), &json!(seq))
    );

    for emoji in ["🎉", "🚀", "❤️", "👀"] {
        react(&bob, &room, seq, emoji).await;
    }
    let after = events(&alice, &room, "reaction_received").await;
    assert!(
        after == 3 || after == 5,
        "{after}: midnight may have passed"
    );
    react(&carol, &room, seq, "👍").await;
    assert_eq!(events(&alice, &room, "reaction_received").await, after + 1);
}

async fn a_mention_scores_five_times_a_day(setup: Setup) {
    let server = setup.start().await;
    let (room, alice, bob, carol) = room_of_three(&server).await;
    alice.says(&room, "@Bob and @Carol, hello").await;
    assert_eq!(events(&bob, &room, "mention_received").await, 1);
    about(
        &score(&carol, &room).await["summary"]["by_kind"]["mention_received"],
        3.0,
    );
    for _ in 0..6 {
        alice.says(&room, "@Bob?").await;
    }
    let mentions = events(&bob, &room, "mention_received").await;
    assert!((5..=7).contains(&mentions), "{mentions}");
    carol.says(&room, "@Bob!").await;
    assert_eq!(events(&bob, &room, "mention_received").await, mentions + 1);
}

async fn a_message_counts_as_it_was_first_posted(setup: Setup) {
    let server = setup.start().await;
    let (room, alice, bob, carol) = room_of_three(&server).await;
    // Changed before anybody looks at a score, and after.
    for look in [false, true] {
        let before = (
            events(&bob, &room, "mention_received").await,
            events(&carol, &room, "mention_received").await,
            events(&alice, &room, "post_authored").await,
        );
        let edited = alice.says(&room, "@Bob, hello").await;
        let deleted = alice.says(&room, "@Bob, never mind").await;
        if look {
            score(&bob, &room).await;
        }
        let path = |seq| format!("/rooms/{room}/messages/{seq}");
        let content = json!({"content": "@Carol, hello"});
        alice.patch(path(edited), content.clone()).await.ok();
        alice.patch(path(edited), content).await.ok();
        alice.delete(path(deleted)).await.ok();
        assert_eq!(events(&bob, &room, "mention_received").await, before.0 + 2);
        assert_eq!(events(&carol, &room, "mention_received").await, before.1);
        assert_eq!(events(&alice, &room, "post_authored").await, before.2 + 2);
    }
}

async fn a_thread_with_three_replies_of_others_scores_once(setup: Setup) {
    let server = setup.start().await;
    let (room, alice, bob, carol) = room_of_three(&server).await;
    let root = alice.says(&room, "what do you think?").await;
    let reply = async |caller: &Caller, to: i64| {
        let message = json!({"content": "well", "reply_to_seq": to});
        caller.says_this(&room, message).await
    };
    let threads = async |caller: &Caller| events(caller, &room, "thread_started_replies").await;
    let first = reply(&bob, root).await;
    // Neither the author's own replies nor replies to replies count.
    for _ in 0..3 {
        reply(&alice, root).await;
        reply(&carol, first).await;
    }
    reply(&carol, root).await;
    assert_eq!((threads(&alice).await, threads(&bob).await), (0, 0));
    reply(&bob, root).await;
    assert_eq!(threads(&alice).await, 1);
    about(
        &score(&alice, &room).await["summary"]["by_kind"]["thread_started_replies"],
        7.5,
    );
    for _ in 0..4 {
        reply(&bob, root).await;
    }
    assert_eq!((threads(&alice).await, threads(&bob).await), (1, 0));
}

async fn nobody_scores_by_their_own_doing(setup: Setup) {
    let server = setup.start().await;
    let (room, alice, ..) = room_of_three(&server).await;
    let seq = alice.says(&room, "I am @Alice").await;
    react(&alice, &room, seq, "👍").await;
    for _ in 0..4 {
        let reply = json!({"content": "indeed", "reply_to_seq": seq});
        alice.says_this(&room, reply).await;
    }
    let state = score(&alice, &room).await;
    let kinds: Vec<&String> = state["summary"]["by_kind"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(kinds, ["post_authored"]);
}

async fn a_removed_member_loses_points_and_one_who_leaves_does_not(setup: Setup) {
    let server = setup.start().await;
    let (room, alice, bob, carol) = room_of_three(&server).await;
    bob.says(&room, "hello").await;
    carol
        .delete(format!("/rooms/{room}/members/u_carol"))
        .await
        .ok();
    alice
        .delete(format!("/rooms/{room}/members/u_bob"))
        .await
        .ok();
    alice.lets_in_user(&room, &bob).await;
    alice.lets_in_user(&room, &carol).await;
    let state = score(&bob, &room).await;
    about(&state["summary"]["by_kind"]["penalty_kick"], -25.0);
    about(&state["summary"]["score"], -24.25);
    let event = &state["recent_events"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["kind"] == "penalty_kick")
        .unwrap()
        .clone();
    assert_eq!(
        (&event["points"], &event["source_user_id"]),
        (&json!(-25.0), &json!("u_alice"))
    );
    let told = alice
        .reads(&room, event["source_seq"].as_i64().unwrap())
        .await;
    assert!(
        told["content"].as_str().unwrap().contains("was removed by"),
        "{told}"
    );
    assert_eq!(score(&carol, &room).await["summary"]["event_count"], 0);
}

async fn the_servers_own_messages_score_nothing(setup: Setup) {
    let server = setup.start().await;
    let (room, alice, bob, _) = room_of_three(&server).await;
    // The first message tells that Bob joined.
    react(&alice, &room, 1, "👋").await;
    bob.says_this(&room, json!({"content": "thank you", "reply_to_seq": 1}))
        .await;
    let board = alice.get(format!("/rooms/{room}/leaderboard")).await.ok();
    let everywhere = server.anonymous().get("/leaderboard").await.ok();
    for board in [board, everywhere] {
        let board = board["leaderboard"].as_array().unwrap();
        assert_eq!(board.len(), 1, "{board:?}");
        assert_eq!(board[0]["event_count"], 1);
    }
}

async fn nothing_is_scored_twice_over_a_kill(setup: Setup) {
    let mut server = setup.start().await;
    let (room, alice, bob, _) = room_of_three(&server).await;
    for n in 0..5 {
        let seq = alice.says(&room, &format!("@Bob {n}")).await;
        react(&bob, &room, seq, "👍").await;
        if n == 2 {
            score(&alice, &room).await;
        }
    }
    server.kill9();
    server.restart().await;
    let (alice, bob) = (alice.at(&server), bob.at(&server));
    for _ in 0..2 {
        assert_eq!(score(&alice, &room).await["summary"]["event_count"], 5 + 3);
        assert_eq!(events(&bob, &room, "mention_received").await, 5);
    }
}

async fn nodes_that_score_at_once_count_once(setup: Setup) {
    if setup.engine() == crate::harness::Engine::Sqlite {
        return;
    }
    let server = setup.start().await;
    let other = server.another_node().await;
    let (room, alice, bob, _) = room_of_three(&server).await;
    for n in 0..10 {
        alice.says(&room, &n.to_string()).await;
    }
    let mut looking = tokio::task::JoinSet::new();
    for n in 0..12 {
        let reader = match n % 2 {
            0 => bob.clone(),
            _ => bob.at(&other),
        };
        let path = match n % 3 {
            0 => "/leaderboard".to_owned(),
            _ => format!("/rooms/{room}/leaderboard"),
        };
        looking.spawn(async move { reader.get(path).await.ok() });
    }
    while let Some(board) = looking.join_next().await {
        assert_eq!(board.unwrap()["leaderboard"][0]["event_count"], 10);
    }
}

async fn only_members_have_a_score(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let path = format!("/rooms/{}/me/score", alice.creates_a_public_room().await);
    server
        .anonymous()
        .get(&path)
        .await
        .refused(401, "missing_bearer");
    server
        .user("u_bob")
        .get(&path)
        .await
        .refused(403, "not_a_member");
    let missing = alice.get("/rooms/rm_nowhere/me/score").await;
    missing.refused(404, "not_found");
}

async fn ones_own_score_is_of_the_days_asked_for(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "hello").await;
    let path = format!("/rooms/{room}/me/score");
    for (query, days) in [
        ("", 30),
        ("?window=7", 7),
        ("?window=1", 1),
        ("?window=90", 90),
    ] {
        let score = alice.get(format!("{path}{query}")).await.ok();
        assert_eq!(score["summary"]["window_days"], days);
        about(&score["summary"]["score"], 0.75);
    }
    for query in ["window=0", "window=91", "window=x", "window="] {
        let bad = alice.get(format!("{path}?{query}")).await;
        bad.refused(400, "bad_request");
    }
}
