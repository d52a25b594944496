//! What holds when the network between a node and its database or its bus fails.

use crate::harness::{Caller, DEADLINE, Engine, Proxy, Reply, Setup, TestServer, eventually};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What a stalled node may cost the others.
const BOUND: Duration = Duration::from_secs(5);

async fn post(caller: &Caller, room: &str) -> u16 {
    let body = json!({"content": "hello"});
    let posted = caller.post(format!("/rooms/{room}/messages"), body).await;
    posted.status
}

/// A node, and another one on the same database, behind a network that fails.
async fn two_nodes() -> (TestServer, TestServer, Proxy) {
    let one = Setup::new(Engine::Postgres).start().await;
    let proxy = Proxy::to(&one.database_address()).await;
    let two = one.another_node_through(&proxy).await;
    (one, two, proxy)
}

#[tokio::test]
async fn a_node_whose_database_went_silent_costs_the_others_little() {
    let (one, two, network) = two_nodes().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let there = alice.at(&two);
    let posting: Vec<_> = (0..8)
        .map(|_| {
            let (there, room) = (there.clone(), room.clone());
            tokio::spawn(async move {
                loop {
                    let body = json!({"content": "x"});
                    let post = there.post(format!("/rooms/{room}/messages"), body);
                    let _ = post.attempt().await;
                }
            })
        })
        .collect();
    fall_silent_inside_a_transaction(&one, &network).await;
    let silent = Instant::now();
    while post(&alice, &room).await != 201 {
        assert!(silent.elapsed() < BOUND, "the room is still held");
    }
    assert!(silent.elapsed() < BOUND, "{:?}", silent.elapsed());
    posting.iter().for_each(|posting| posting.abort());

    // Its own callers are told, too, whether they write or read.
    let path = format!("/rooms/{room}/messages");
    for answer in [
        there.post(&path, json!({"content": "x"})).attempt(),
        there.get(&path).attempt(),
    ] {
        let answer = tokio::time::timeout(DEADLINE, answer).await;
        let answer = answer.expect("it is answered").unwrap();
        assert!(answer.header("retry-after").is_some());
        answer.refused(503, "unavailable");
    }
    network.clears_up();
    eventually("the node works again", async || {
        (post(&there, &room).await == 201).then_some(())
    })
    .await;
    there.get(&path).await.ok();
}

/// Silences the network at a moment at which the node behind it holds locks.
async fn fall_silent_inside_a_transaction(one: &TestServer, network: &Proxy) {
    for _ in 0..200 {
        network.falls_silent();
        if one.idle_transactions().await > 0 {
            return;
        }
        network.clears_up();
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    panic!("the node was never inside a transaction");
}

/// Does something whose commit is not answered, until that has happened.
async fn with_a_lost_answer(network: &Proxy, room: &str, act: impl AsyncFn() -> Reply) {
    network.loses_commits_of(room);
    let answer = act().await;
    network.clears_up();
    answer.refused(503, "unavailable");
}

#[tokio::test]
async fn what_is_committed_is_told_when_the_answer_to_the_commit_was_lost() {
    let (one, two, network) = two_nodes().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let there = alice.at(&two);
    let mut here = alice.listens(&room).await;
    let mut events = there.listens(&room).await;
    let path = format!("/rooms/{room}/messages");

    let body = json!({"content": "a message"});
    let posting = || {
        there
            .post(&path, body.clone())
            .header("Idempotency-Key", "once")
    };
    with_a_lost_answer(&network, &room, async || posting().await).await;
    for events in [&mut events, &mut here] {
        assert_eq!(events.expect("message").await["content"], "a message");
    }
    // Whoever asks again is told what became of it.
    let posted = posting().await.created();
    let seq = posted["seq"].as_i64().unwrap();
    assert_eq!(alice.latest_seq(&room).await, seq, "it is there once");

    let edit = json!({"content": "edited"});
    let message = format!("{path}/{seq}");
    with_a_lost_answer(&network, &room, async || {
        there.patch(&message, edit.clone()).await
    })
    .await;
    for events in [&mut events, &mut here] {
        let told: Value = events.expect("message_edited").await;
        assert_eq!(told["seq"], seq);
    }

    let viewer = alice.viewer(&room).await;
    let (reads_there, reads_here) = (
        viewer.at(&two).listens(&room).await,
        viewer.listens(&room).await,
    );
    let keys = format!("/rooms/{room}/room-keys");
    with_a_lost_answer(&network, &room, async || there.delete(&keys).await).await;
    reads_there.ended().await;
    reads_here.ended().await;
}

#[tokio::test]
async fn a_bus_that_goes_away_midway_costs_neither_messages_nor_revocations() {
    let bus = std::env::var("SC_TEST_NATS_URL").expect("`cargo xtask test` sets it");
    let network = Proxy::to(bus.trim_start_matches("nats://")).await;
    let way = format!("nats://{}", network.address());
    let one = Setup::new(Engine::Postgres).env("BUS", &way).start().await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.at(&two).listens(&room).await;
    alice.says(&room, "with a bus").await;
    assert_eq!(events.expect("message").await["content"], "with a bus");

    for away in [Proxy::cuts, Proxy::falls_silent] {
        let viewer = alice.viewer(&room).await.at(&two).listens(&room).await;
        away(&network);
        alice.says(&room, "without").await;
        assert_eq!(events.expect("message").await["content"], "without");
        alice.delete(format!("/rooms/{room}/room-keys")).await.ok();
        viewer.ended().await;
        network.clears_up();
        alice.says(&room, "with a bus again").await;
        let told = events.expect("message").await;
        assert_eq!(told["content"], "with a bus again");
    }
}
