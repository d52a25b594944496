//! Threads that are read apart from their room.

use crate::{
    harness::{Caller, Engine, Setup, both_engines, one_engine},
    inbox::next_position,
};
use serde_json::{Value, json};

both_engines![
    a_thread_that_was_opened_has_its_own_position,
    the_whole_thread_is_read_at_once,
    positions_are_bounded_and_go_with_their_member,
];
one_engine![
    a_position_in_a_thread_is_ones_own,
    what_is_no_position_in_a_thread_is_refused,
    ones_other_streams_are_told_of_a_thread_and_nobody_elses,
];

/// Positions that are kept for a member of a room.
const MOST_OPENED: i64 = 200;

fn path(room: &str, message: i64) -> String {
    format!("/rooms/{room}/messages/{message}/thread/read")
}

async fn marks(caller: &Caller, room: &str, message: i64, seq: i64) -> Value {
    let position = json!({"seq": seq});
    caller.put(path(room, message), position).await.ok()
}

async fn answers(caller: &Caller, room: &str, to: i64, content: &str) -> i64 {
    let answer = json!({"content": content, "reply_to_seq": to});
    caller.says_this(room, answer).await
}

/// What the answers to a message are to somebody who has read the room up to `after`.
async fn answered(caller: &Caller, room: &str, message: i64, after: i64) -> Value {
    let since = message - 1;
    let path = format!("/rooms/{room}/messages?since={since}&limit=1&answers={after}");
    caller.get(path).await.ok()["messages"][0]["answers"].clone()
}

/// The position that the thread's panel is shown with.
async fn position(caller: &Caller, room: &str, message: i64) -> Value {
    let path = format!("/rooms/{room}/messages/{message}/thread");
    caller.get(path).await.ok()["read_seq"].clone()
}

async fn a_thread_that_was_opened_has_its_own_position(setup: Setup) {
    let mut server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_public_room().await;
    alice.lets_in_user(&room, &bob).await;
    let opened = alice.says(&room, "opened").await;
    let other = alice.says(&room, "never opened").await;
    let first = answers(&bob, &room, opened, "one").await;
    assert_eq!(position(&alice, &room, opened).await, Value::Null);
    let told = marks(&alice, &room, opened, first).await;
    assert_eq!(
        told,
        json!({"room_id": room, "root_seq": opened, "read_seq": first})
    );
    for to in [opened, other] {
        answers(&bob, &room, to, "two").await;
        answers(&alice, &room, to, "my own").await;
    }
    let last = alice.latest_seq(&room).await;
    alice
        .put(format!("/rooms/{room}/read"), json!({"seq": last}))
        .await
        .ok();
    // Whoever has read the room has read what they did not open, and nothing more of what they did.
    let mine = answered(&alice, &room, opened, last).await;
    assert_eq!(
        (&mine["count"], &mine["unread"], &mine["read_seq"]),
        (&json!(3), &json!(1), &json!(first)),
        "{mine}"
    );
    let not_opened = answered(&alice, &room, other, last).await;
    assert_eq!(not_opened["unread"], 0);
    assert_eq!(not_opened.get("read_seq"), None);
    // One's position is nobody else's.
    for other in [&bob, &server.anonymous()] {
        let theirs = answered(other, &room, opened, last).await;
        assert_eq!(
            (&theirs["unread"], theirs.get("read_seq")),
            (&json!(0), None)
        );
        assert_eq!(position(other, &room, opened).await, Value::Null);
    }
    // It goes forward only, no further than the room, and outlives the server.
    assert_eq!(marks(&alice, &room, opened, 1).await["read_seq"], first);
    assert_eq!(
        marks(&alice, &room, opened, 9_007_199_254_740_991).await["read_seq"],
        last
    );
    server.restart().await;
    let (alice, bob) = (alice.at(&server), bob.at(&server));
    assert_eq!(position(&alice, &room, opened).await, last);
    assert_eq!(answered(&alice, &room, opened, 0).await["unread"], 0);
    answers(&bob, &room, opened, "three").await;
    assert_eq!(answered(&alice, &room, opened, 0).await["unread"], 1);
}

async fn the_whole_thread_is_read_at_once(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let root = alice.says(&room, "root").await;
    let branch = answers(&bob, &room, root, "branch").await;
    let leaf = answers(&bob, &room, branch, "leaf").await;
    // Opened at any of its messages, a thread is the same one.
    assert_eq!(marks(&alice, &room, leaf, branch).await["root_seq"], root);
    for message in [root, branch, leaf] {
        assert_eq!(position(&alice, &room, message).await, branch);
    }
    let unread = async |message| answered(&alice, &room, message, leaf).await["unread"].clone();
    assert_eq!(
        (unread(root).await, unread(branch).await),
        (json!(0), json!(1))
    );
    marks(&alice, &room, root, leaf).await;
    assert_eq!(unread(branch).await, 0);
}

async fn positions_are_bounded_and_go_with_their_member(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let first = bob.latest_seq(&room).await + 1;
    let threads: Vec<i64> = (first..=first + MOST_OPENED).collect();
    for _ in &threads {
        alice.says(&room, "a thread").await;
    }
    for seq in &threads {
        marks(&bob, &room, *seq, *seq).await;
    }
    let kept = "SELECT COUNT(*) FROM thread_reads";
    assert_eq!(server.count(kept).await, MOST_OPENED);
    assert_eq!(position(&bob, &room, threads[0]).await, Value::Null);
    assert_eq!(position(&bob, &room, threads[1]).await, threads[1]);
    bob.delete(format!("/rooms/{room}/members/u_bob"))
        .await
        .ok();
    assert_eq!(server.count(kept).await, 0);
}

async fn a_position_in_a_thread_is_ones_own(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_public_room().await;
    alice.lets_in_user(&room, &bob).await;
    let root = alice.says(&room, "root").await;
    let answer = answers(&alice, &room, root, "for bob").await;
    marks(&bob, &room, root, root).await;
    let (path, everything) = (
        path(&room, root),
        json!({"seq": answer, "user_id": "u_bob"}),
    );
    let mallory = server.user("u_mallory");
    mallory
        .put(&path, everything.clone())
        .await
        .refused(403, "not_a_member");
    server
        .anonymous()
        .put(&path, everything.clone())
        .await
        .refused(401, "missing_bearer");
    for scope in ["view", "view+post"] {
        let shared = bob.viewer_with(&room, scope).await;
        shared
            .put(&path, everything.clone())
            .await
            .refused(403, "key_scope_insufficient");
        assert_eq!(position(&shared, &room, root).await, Value::Null);
        let seen = answered(&shared, &room, root, answer).await;
        assert_eq!((&seen["unread"], seen.get("read_seq")), (&json!(0), None));
    }
    alice.put(&path, everything).await.ok();
    assert_eq!(position(&bob, &room, root).await, root);
    // A guest has one, with the token that is theirs alone.
    let guest = alice.lets_in_a_person(&room, "guest").await;
    marks(&guest, &room, root, answer).await;
    assert_eq!(position(&guest, &room, root).await, answer);
    // The thread of another room is none of this one, whatever its number.
    let elsewhere = alice.creates_a_room().await;
    for n in 0..20 {
        alice.says(&elsewhere, &format!("message {n}")).await;
    }
    let far = alice.latest_seq(&elsewhere).await;
    bob.put(self::path(&elsewhere, far), json!({"seq": 1}))
        .await
        .refused(403, "not_a_member");
    bob.put(self::path(&room, far), json!({"seq": 1}))
        .await
        .refused(404, "not_found");
}

async fn what_is_no_position_in_a_thread_is_refused(setup: Setup) {
    let server = setup.limit("read_marks_per_minute", 12).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let root = alice.says(&room, "root").await;
    let path = path(&room, root);
    for bad in [
        json!({}),
        json!({"seq": -1}),
        json!({"seq": "1"}),
        json!({"seq": 1.5}),
        json!({"seq": null}),
    ] {
        alice.put(&path, bad).await.refused(400, "bad_request");
    }
    for bad in ["-1", "x", "99999999999999999999"] {
        let path = format!("/rooms/{room}/messages/{bad}/thread/read");
        alice
            .put(path, json!({"seq": 1}))
            .await
            .refused(400, "bad_request");
    }
    let nowhere = self::path(&room, 9_007_199_254_740_991);
    alice
        .put(nowhere, json!({"seq": 1}))
        .await
        .refused(404, "not_found");
    for _ in 0..3 {
        marks(&alice, &room, root, i64::MAX).await;
    }
    alice
        .put(&path, json!({"seq": 0}))
        .await
        .refused(429, "rate_limited");
}

async fn ones_other_streams_are_told_of_a_thread_and_nobody_elses(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let root = alice.says(&room, "root").await;
    let mut own = alice.listens_with(&room, "?deltas=1").await;
    let mut bobs = bob.listens_with(&room, "?deltas=1").await;
    let position = marks(&alice, &room, root, root).await;
    // What changes nothing is not told.
    marks(&alice, &room, root, 0).await;
    assert_eq!(next_position(&mut own, "thread_read").await, position);
    alice.says(&room, "to both").await;
    assert_eq!(own.next().await.event.as_deref(), Some("message"));
    assert_eq!(bobs.next().await.event.as_deref(), Some("message"));
}

#[tokio::test]
async fn a_position_in_a_thread_is_told_on_the_other_node() {
    let bus = std::env::var("SC_TEST_NATS_URL").expect("cargo xtask test sets SC_TEST_NATS_URL");
    let one = Setup::new(Engine::Postgres).env("BUS", &bus).start().await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut elsewhere = alice.at(&two).listens_with(&room, "?deltas=1").await;
    let root = alice.says(&room, "root").await;
    marks(&alice, &room, root, root).await;
    assert_eq!(
        next_position(&mut elsewhere, "thread_read").await["read_seq"],
        root
    );
    assert_eq!(position(&alice.at(&two), &room, root).await, root);
}
