//! A node that stalls costs the others little, and says so itself.

use crate::harness::{Caller, Engine, Setup, TestServer};
use serde_json::json;
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// What a stalled node may cost the others.
const BOUND: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_room_that_is_held_keeps_no_other_room_waiting() {
    let server = Setup::new(Engine::Postgres).start().await;
    let alice = server.user("u_alice");
    let (held, free) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let holder = server.holds_room(&held).await;
    let asked = Instant::now();
    let waiting = tokio::spawn({
        let (alice, held) = (alice.clone(), held.clone());
        async move { post(&alice, &held).await }
    });
    for _ in 0..20 {
        assert_eq!(post(&alice, &free).await, 201);
    }
    assert!(asked.elapsed() < BOUND, "{:?}", asked.elapsed());
    assert_eq!(
        waiting.await.unwrap(),
        503,
        "it is told, and not left waiting"
    );
    drop(holder);
    assert_eq!(post(&alice, &held).await, 201);
}

#[tokio::test]
async fn a_room_that_is_held_for_a_moment_takes_its_posts() {
    let server = Setup::new(Engine::Postgres).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let holder = server.holds_room(&room).await;
    let mut posting = Vec::new();
    for n in 0..10 {
        let (alice, room) = (alice.clone(), room.clone());
        posting.push(tokio::spawn(async move {
            alice.says(&room, &format!("message {n}")).await
        }));
    }
    // Long enough for the posts to be put aside.
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(holder);
    let mut seqs = BTreeSet::new();
    for post in posting {
        seqs.insert(post.await.unwrap());
    }
    assert_eq!(seqs, (1..=10).collect());
}

#[tokio::test]
async fn a_stopped_node_gives_its_rooms_back() {
    let one = Setup::new(Engine::Postgres).start().await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let posting: Vec<_> = (0..8)
        .map(|_| {
            let (alice, room) = (alice.clone(), room.clone());
            tokio::spawn(async move {
                loop {
                    let body = json!({"content": "x"});
                    let post = alice.post(format!("/rooms/{room}/messages"), body);
                    let _ = post.attempt().await;
                }
            })
        })
        .collect();
    stop_inside_a_transaction(&one).await;
    let stopped = Instant::now();
    let there = alice.at(&two);
    while post(&there, &room).await != 201 {
        assert!(stopped.elapsed() < BOUND, "the room is still held");
    }
    assert!(stopped.elapsed() < BOUND, "{:?}", stopped.elapsed());
    posting.iter().for_each(|posting| posting.abort());
}

/// Stops a busy node at a moment at which it holds locks.
async fn stop_inside_a_transaction(node: &TestServer) {
    for _ in 0..200 {
        node.freeze();
        if node.idle_transactions().await > 0 {
            return;
        }
        node.thaw();
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    panic!("the node was never inside a transaction");
}

async fn post(caller: &Caller, room: &str) -> u16 {
    let body = json!({"content": "hello"});
    let posted = caller.post(format!("/rooms/{room}/messages"), body).await;
    if posted.status == 503 {
        assert!(posted.header("retry-after").is_some());
    }
    posted.status
}
