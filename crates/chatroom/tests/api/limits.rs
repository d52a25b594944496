//! The limits, with the document's figures.

use crate::harness::{Caller, Setup, both_engines, eventually, one_engine};
use serde_json::json;

both_engines![
    an_agent_waits_15_seconds_between_messages,
    a_cooldown_passes,
    an_agent_posts_6_messages_a_minute,
    agent_limits_count_for_each_agent_and_room,
    a_member_token_and_a_user_token_are_one_agent,
    a_key_posts_20_messages_an_hour,
    an_address_posts_60_web_messages_an_hour,
    a_visitor_reads_30_times_a_minute,
    a_visitor_makes_5_invites_an_hour,
    hourly_limits_hold_over_a_restart,
    a_refused_post_does_not_count,
    short_links_are_limited_for_visitors,
];

one_engine![members_reads_are_not_limited,];

fn messages(room: &str) -> String {
    format!("/rooms/{room}/messages")
}

async fn post(caller: &Caller, room: &str) -> crate::harness::Reply {
    caller.post(messages(room), json!({"content": "x"})).await
}

async fn an_agent_waits_15_seconds_between_messages(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    for caller in [&alice, &agent.caller] {
        post(caller, &room).await.created();
        let reply = post(caller, &room).await;
        let wait: i64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=15).contains(&wait), "{wait}");
        reply.refused(429, "agent_cooldown");
    }
    // People do not wait.
    let viewer = alice.viewer(&room).await;
    for _ in 0..3 {
        post(&viewer, &room).await.created();
    }
}

async fn a_cooldown_passes(setup: Setup) {
    let server = setup.limit("agent_cooldown_seconds", 1).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    post(&alice, &room).await.created();
    post(&alice, &room).await.refused(429, "agent_cooldown");
    eventually("the cooldown passes", async || {
        (post(&alice, &room).await.status == 201).then_some(())
    })
    .await;
}

async fn an_agent_posts_6_messages_a_minute(setup: Setup) {
    let setup = setup.with_the_documents_limits();
    let server = setup.limit("agent_cooldown_seconds", 0).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for _ in 0..6 {
        post(&alice, &room).await.created();
    }
    post(&alice, &room).await.refused(429, "rate_limited");
}

async fn agent_limits_count_for_each_agent_and_room(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let otter = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    let willow = alice.lets_in(&room, "sunny_willow-7e2bd401").await;
    post(&otter, &room).await.created();
    post(&willow, &room).await.created();
    post(&alice, &room).await.created();
    post(&alice, &other).await.created();
    post(&otter, &room).await.refused(429, "agent_cooldown");
}

async fn a_member_token_and_a_user_token_are_one_agent(setup: Setup) {
    let server = setup.limit("agent_cooldown_seconds", 15).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let otter = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    let path = format!("/rooms/{room}/members/{}/reissue-token", otter.id());
    let fresh = otter.post_nothing(path).await.ok();
    let fresh = otter.with_token(fresh["member_token"].as_str().unwrap());
    post(&otter, &room).await.created();
    post(&fresh, &room).await.refused(429, "agent_cooldown");
}

async fn a_key_posts_20_messages_an_hour(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (one, two) = (alice.viewer(&room).await, alice.viewer(&room).await);
    for n in 0..20 {
        // From wherever it is used.
        post(&one.from(&format!("203.0.113.{n}")), &room)
            .await
            .created();
    }
    post(&one, &room).await.refused(429, "rate_limited");
    post(&two, &room).await.created();
}

async fn an_address_posts_60_web_messages_an_hour(setup: Setup) {
    let setup = setup.with_the_documents_limits();
    let server = setup
        .limit("web_messages_per_hour_per_key", 0)
        .start()
        .await;
    let alice = server.user("u_alice");
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let keys = [
        (alice.viewer(&room).await.seen_from_outside(), &room),
        (alice.viewer(&room).await.seen_from_outside(), &room),
        (alice.viewer(&other).await.seen_from_outside(), &other),
    ];
    for n in 0..60 {
        let (key, room) = &keys[n % 3];
        post(key, room).await.created();
    }
    for (key, room) in &keys {
        post(key, room).await.refused(429, "rate_limited");
    }
    post(&keys[0].0.from("198.51.100.7"), &room).await.created();
}

async fn a_visitor_reads_30_times_a_minute(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let (room, other) = (
        alice.creates_a_public_room().await,
        alice.creates_a_public_room().await,
    );
    let visitor = server.anonymous().seen_from_outside();
    for _ in 0..30 {
        visitor.get(messages(&room)).await.ok();
    }
    visitor
        .get(messages(&room))
        .await
        .refused(429, "rate_limited");
    visitor.get(messages(&other)).await.ok();
    visitor.from("198.51.100.7").get(messages(&room)).await.ok();
}

async fn members_reads_are_not_limited(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let viewer = alice.viewer(&room).await.seen_from_outside();
    for _ in 0..40 {
        viewer.get(messages(&room)).await.ok();
    }
}

async fn a_visitor_makes_5_invites_an_hour(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let (room, other) = (
        alice.creates_a_public_room().await,
        alice.creates_a_public_room().await,
    );
    let ask =
        |caller: &Caller, room: &str| caller.post_nothing(format!("/rooms/{room}/auto-invite"));
    let visitor = server.anonymous().seen_from_outside();
    for _ in 0..5 {
        ask(&visitor, &room).await.created();
    }
    ask(&visitor, &room).await.refused(429, "rate_limited");
    ask(&visitor, &other).await.created();
    ask(&visitor.from("198.51.100.7"), &room).await.created();
}

async fn hourly_limits_hold_over_a_restart(setup: Setup) {
    let mut server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let viewer = alice.viewer(&room).await;
    for _ in 0..20 {
        post(&viewer, &room).await.created();
    }
    let visitor = server.anonymous().seen_from_outside();
    let path = format!("/rooms/{room}/auto-invite");
    for _ in 0..5 {
        visitor.post_nothing(&path).await.created();
    }
    server.restart().await;
    post(&viewer.at(&server), &room)
        .await
        .refused(429, "rate_limited");
    let again = visitor.at(&server).post_nothing(&path).await;
    again.refused(429, "rate_limited");
    server.kill9();
    server.restart().await;
    post(&viewer.at(&server), &room)
        .await
        .refused(429, "rate_limited");
}

async fn a_refused_post_does_not_count(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for body in [
        json!({"content": ""}),
        json!({"content": "x".repeat(4097)}),
        json!({"content": "x", "reply_chain_depth": 6}),
        json!({"content": "x", "reply_to_seq": 99}),
    ] {
        assert_eq!(alice.post(messages(&room), body).await.status, 400);
    }
    post(&alice, &room).await.created();
}

async fn short_links_are_limited_for_visitors(setup: Setup) {
    let server = setup.with_the_documents_limits().start().await;
    let visitor = server.anonymous().seen_from_outside();
    for _ in 0..30 {
        visitor
            .get("/k/ck_xxxxxxxx")
            .await
            .refused(404, "not_found");
    }
    visitor
        .get("/k/ck_xxxxxxxx")
        .await
        .refused(429, "rate_limited");
}
