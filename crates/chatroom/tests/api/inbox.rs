//! Read positions and the inbox.

use crate::harness::{Caller, Engine, Events, Setup, both_engines, one_engine};
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_engines![
    a_read_position_goes_forward_and_no_further_than_the_room,
    an_inbox_counts_what_others_said_since,
    mentions_are_paged_newest_first_over_all_rooms,
    nobody_reads_anothers_inbox_or_moves_anothers_position,
    people_are_told_of_their_other_rooms_and_of_no_others,
    a_room_that_was_left_tells_nothing_more,
];
one_engine![
    whoever_signed_out_is_told_of_nothing,
    ones_other_streams_are_told_and_nobody_elses,
    what_is_no_position_is_refused_in_words,
];

async fn marks(caller: &Caller, room: &str, seq: i64) -> Value {
    let path = format!("/rooms/{room}/read");
    caller.put(path, json!({"seq": seq})).await.ok()
}

async fn inbox_of(caller: &Caller, room: &str) -> Value {
    let inbox = caller.get("/inbox").await.ok();
    let rooms = inbox["rooms"].as_array().unwrap().clone();
    let found = rooms.into_iter().find(|entry| entry["room_id"] == room);
    found.expect("the room in the inbox")
}

async fn a_read_position_goes_forward_and_no_further_than_the_room(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..3 {
        alice.says(&room, &format!("message {n}")).await;
    }
    let last = alice.latest_seq(&room).await;
    assert_eq!(marks(&alice, &room, last - 1).await["read_seq"], last - 1);
    assert_eq!(
        marks(&alice, &room, 1).await["read_seq"],
        last - 1,
        "never back"
    );
    let far = marks(&alice, &room, i64::MAX).await;
    assert_eq!(
        (&far["read_seq"], &far["last_seq"]),
        (&json!(last), &json!(last))
    );
    server.restart().await;
    assert_eq!(inbox_of(&alice.at(&server), &room).await["read_seq"], last);
}

async fn an_inbox_counts_what_others_said_since(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let quiet = alice.creates_a_room().await;
    let room = alice.creates_a_room().await;
    alice.says(&room, "before anybody came").await;
    alice.lets_in_user(&room, &bob).await;
    let fresh = inbox_of(&bob, &room).await;
    assert_eq!(
        (&fresh["unread"], &fresh["mentions"]),
        (&json!(0), &json!(0)),
        "{fresh}"
    );
    alice.says(&room, "hello").await;
    let told = alice.says(&room, "@Bob, have you seen this?").await;
    bob.says(&room, "one's own words are not unread, @Bob")
        .await;
    let waiting = inbox_of(&bob, &room).await;
    assert_eq!(
        (&waiting["unread"], &waiting["mentions"]),
        (&json!(2), &json!(1)),
        "{waiting}"
    );
    assert_eq!(waiting["last_message"]["sender_user_id"], "u_bob");
    // A text that is deleted is neither counted nor shown.
    let deleted = alice.says(&room, "@Bob a secret").await;
    alice
        .delete(format!("/rooms/{room}/messages/{deleted}"))
        .await
        .ok();
    let waiting = inbox_of(&bob, &room).await;
    assert_eq!(
        (&waiting["unread"], &waiting["mentions"]),
        (&json!(2), &json!(1)),
        "{waiting}"
    );
    assert_eq!(waiting["last_message"]["preview"], "");
    marks(&bob, &room, told).await;
    let read = inbox_of(&bob, &room).await;
    assert_eq!(
        (&read["unread"], &read["mentions"]),
        (&json!(0), &json!(0)),
        "{read}"
    );
    // By activity: what was said last comes first, for alice too.
    let inbox = alice.get("/inbox").await.ok();
    let order: Vec<&str> = inbox["rooms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["room_id"].as_str().unwrap())
        .collect();
    assert_eq!(order.len(), 2);
    assert!(order.contains(&quiet.as_str()));
    let active = |n: usize| inbox["rooms"][n]["active_at"].as_i64().unwrap();
    assert!(active(0) >= active(1));
}

async fn mentions_are_paged_newest_first_over_all_rooms(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let mut rooms = Vec::new();
    for _ in 0..2 {
        let room = alice.creates_a_room().await;
        alice.lets_in_user(&room, &bob).await;
        rooms.push(room);
    }
    for n in 0..5 {
        alice.says(&rooms[n % 2], &format!("@bob number {n}")).await;
    }
    let mut seen = Vec::new();
    let mut path = "/inbox?limit=2".to_owned();
    loop {
        let page = bob.get(&path).await.ok();
        for mention in page["mentions"].as_array().unwrap() {
            assert_eq!(mention["unread"], true);
            seen.push(mention["preview"].as_str().unwrap().to_owned());
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/inbox?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    seen.sort();
    let all: Vec<String> = (0..5).map(|n| format!("@bob number {n}")).collect();
    assert_eq!(seen, all, "each once");
    // Whoever has left is told of nothing.
    bob.delete(format!("/rooms/{}/members/u_bob", rooms[0]))
        .await
        .ok();
    let left = bob.get("/inbox").await.ok();
    assert_eq!(left["mentions"].as_array().unwrap().len(), 2);
    assert_eq!(left["rooms"].as_array().unwrap().len(), 1);
}

async fn nobody_reads_anothers_inbox_or_moves_anothers_position(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let seq = alice.says(&room, "@bob, only for you").await;
    marks(&alice, &room, seq).await;
    let path = format!("/rooms/{room}/read");
    let everything = json!({"seq": seq});
    // A stranger, and whoever was given a key of Bob's.
    let mallory = server.user("u_mallory");
    mallory
        .put(&path, everything.clone())
        .await
        .refused(403, "not_a_member");
    let inbox = mallory.get("/inbox").await.ok();
    assert_eq!(
        (&inbox["rooms"], &inbox["mentions"]),
        (&json!([]), &json!([]))
    );
    let shared = bob.viewer(&room).await;
    shared
        .put(&path, everything.clone())
        .await
        .refused(403, "key_scope_insufficient");
    shared.get("/inbox").await.refused(401, "token_invalid");
    // A position is the caller's own, whatever else the body says.
    let claimed = json!({"seq": seq, "user_id": "u_bob"});
    alice.put(&path, claimed).await.ok();
    let waiting = inbox_of(&bob, &room).await;
    assert_eq!(
        (&waiting["unread"], &waiting["mentions"]),
        (&json!(1), &json!(1)),
        "{waiting}"
    );
    // A cursor into somebody else's mentions shows one's own.
    let cursor = format!("/inbox?cursor=99999999999.{room}.99");
    assert_eq!(mallory.get(cursor).await.ok()["mentions"], json!([]));
}

/// The next event of this kind, `read` or `thread_read`; others are passed over.
pub async fn next_position(events: &mut Events, kind: &str) -> Value {
    loop {
        let frame = events.next().await;
        if frame.event.as_deref() == Some(kind) {
            assert_eq!(frame.id, None, "it has no place");
            return serde_json::from_str(&frame.data.unwrap()).unwrap();
        }
    }
}

async fn ones_other_streams_are_told_and_nobody_elses(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    alice.lets_in_user(&room, &bob).await;
    let seq = alice.latest_seq(&room).await;
    // Alice's own stream of another room, a stream of Bob's, and one with a key that Alice gave away.
    let mut own = alice.listens_with(&other, "?deltas=1").await;
    let mut bobs = bob.listens_with(&room, "?deltas=1").await;
    let given_away = alice.viewer(&other).await;
    let mut guests = given_away.listens_with(&other, "?deltas=1").await;
    marks(&alice, &room, seq).await;
    let told = next_position(&mut own, "read").await;
    assert_eq!(
        (&told["room_id"], &told["read_seq"]),
        (&json!(room), &json!(seq))
    );
    alice.says(&room, "to bob").await;
    alice.says(&other, "to guests").await;
    assert_eq!(bobs.next().await.event.as_deref(), Some("message"));
    assert_eq!(guests.next().await.event.as_deref(), Some("message"));
}

#[tokio::test]
async fn a_position_is_told_on_the_other_node() {
    let bus = std::env::var("SC_TEST_NATS_URL").expect("cargo xtask test sets SC_TEST_NATS_URL");
    let one = Setup::new(Engine::Postgres).env("BUS", &bus).start().await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut elsewhere = alice.at(&two).listens_with(&room, "?deltas=1").await;
    let seq = alice.says(&room, "hello").await;
    marks(&alice, &room, seq).await;
    assert_eq!(next_position(&mut elsewhere, "read").await["read_seq"], seq);
}

/// The rooms of the next `inbox` event.
async fn next_moved(events: &mut Events) -> Vec<String> {
    let mut told = events.ephemeral("inbox").await;
    serde_json::from_value(told["room_ids"].take()).unwrap()
}

/// Reads until this room has moved; the other rooms that were told of until then.
async fn moved_until(events: &mut Events, room: &str) -> BTreeSet<String> {
    let mut others = BTreeSet::new();
    loop {
        let told = next_moved(events).await;
        let found = told.iter().any(|one| one == room);
        others.extend(told.into_iter().filter(|one| one != room));
        if found {
            return others;
        }
    }
}

async fn people_are_told_of_their_other_rooms_and_of_no_others(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let (shared, private) = (alice.creates_a_room().await, alice.creates_a_room().await);
    alice.lets_in_user(&shared, &bob).await;
    let (here, last) = (bob.creates_a_room().await, bob.creates_a_room().await);
    let mut bobs = bob.listens_with(&here, "?deltas=1").await;
    // One that did not ask, and one with a key that Bob gave away.
    let mut plain = bob.listens(&here).await;
    let mut guests = bob
        .viewer(&here)
        .await
        .listens_with(&here, "?deltas=1")
        .await;

    alice.says(&private, "not for bob").await;
    alice.says(&shared, "@bob, look").await;
    let before = moved_until(&mut bobs, &shared).await;
    assert!(!before.contains(&private), "{before:?}");
    // The room that the stream is of tells for itself.
    bob.says(&here, "here").await;
    bob.says(&last, "and there").await;
    let before = moved_until(&mut bobs, &last).await;
    assert!(
        !before.contains(&private) && !before.contains(&here),
        "{before:?}"
    );
    for other in [&mut plain, &mut guests] {
        let frame = other.next().await;
        assert_eq!(frame.event.as_deref(), Some("message"), "{frame:?}");
    }
}

async fn a_room_that_was_left_tells_nothing_more(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let here = bob.creates_a_room().await;
    let mut bobs = bob.listens_with(&here, "?deltas=1").await;
    let mut rooms = Vec::new();
    for _ in 0..3 {
        let room = alice.creates_a_room().await;
        alice.lets_in_user(&room, &bob).await;
        moved_until(&mut bobs, &room).await;
        rooms.push(room);
    }
    let [left, removed, kept] = &rooms[..] else {
        unreachable!("three rooms")
    };
    bob.delete(format!("/rooms/{left}/members/u_bob"))
        .await
        .ok();
    alice
        .delete(format!("/rooms/{removed}/members/u_bob"))
        .await
        .ok();
    // What was on its way is told before this.
    alice.says(kept, "one").await;
    moved_until(&mut bobs, kept).await;
    for room in &rooms {
        alice.says(room, "@bob, can you hear me?").await;
    }
    assert_eq!(moved_until(&mut bobs, kept).await, BTreeSet::new());
}

async fn whoever_signed_out_is_told_of_nothing(setup: Setup) {
    let server = setup.start().await;
    let person = server.user_of_type("u_ann", "access").seen_from_outside();
    let traded = person.post_nothing("/auth/exchange").await.created();
    let ann = person.with_token(traded["identity_token"].as_str().unwrap());
    let (here, other) = (ann.creates_a_room().await, ann.creates_a_room().await);
    let path = format!("/rooms/{here}/members/u_ann/reissue-token");
    let key = ann.post_nothing(path).await.ok();
    let page = ann.with_token(key["member_token"].as_str().unwrap());
    let mut events = page.listens_with(&here, "?deltas=1").await;
    server.user("u_ann").says(&other, "hello").await;
    assert_eq!(next_moved(&mut events).await, [other]);
    ann.delete("/auth/sessions").await.ok();
    events.ended().await;
}

#[tokio::test]
async fn other_rooms_are_told_of_on_the_other_node() {
    let bus = std::env::var("SC_TEST_NATS_URL").expect("cargo xtask test sets SC_TEST_NATS_URL");
    let one = Setup::new(Engine::Postgres).env("BUS", &bus).start().await;
    let two = one.another_node().await;
    let (alice, bob) = (one.user("u_alice"), one.user("u_bob"));
    let (here, shared) = (bob.creates_a_room().await, alice.creates_a_room().await);
    let mut elsewhere = bob.at(&two).listens_with(&here, "?deltas=1").await;
    alice.lets_in_user(&shared, &bob).await;
    moved_until(&mut elsewhere, &shared).await;
    alice.says(&shared, "@bob, look").await;
    assert_eq!(next_moved(&mut elsewhere).await, [shared]);
}

async fn what_is_no_position_is_refused_in_words(setup: Setup) {
    let server = setup.limit("read_marks_per_minute", 8).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/read");
    for bad in [
        json!({}),
        json!({"seq": -1}),
        json!({"seq": "1"}),
        json!({"seq": 1.5}),
        json!({"seq": null}),
    ] {
        alice.put(&path, bad).await.refused(400, "bad_request");
    }
    for bad in ["x", "1", "1.2.3", "1.rm_a", "-.rm_a.1", "1.rm_a.1.1"] {
        alice
            .get(format!("/inbox?cursor={bad}"))
            .await
            .refused(400, "bad_request");
    }
    alice
        .get("/inbox?limit=0")
        .await
        .refused(400, "bad_request");
    for _ in 0..3 {
        marks(&alice, &room, 0).await;
    }
    alice
        .put(&path, json!({"seq": 0}))
        .await
        .refused(429, "rate_limited");
}
