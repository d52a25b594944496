//! Several nodes on one PostgreSQL, kept in step over NATS: to callers they are one server.

use crate::harness::{Engine, PushAgent, Setup, TestServer, eventually};
use serde_json::json;
use std::collections::BTreeSet;

fn setup() -> Setup {
    let Ok(bus) = std::env::var("SC_TEST_NATS_URL") else {
        panic!(
            "SC_TEST_NATS_URL is not set. Run `cargo xtask test`: it starts a NATS server and sets it"
        );
    };
    Setup::new(Engine::Postgres).env("BUS", &bus)
}

/// Two nodes of one server.
async fn two_nodes() -> (TestServer, TestServer) {
    let first = setup().start().await;
    let second = first.another_node().await;
    (first, second)
}

#[tokio::test]
async fn a_database_without_tables_gets_them_at_the_first_start() {
    let server = setup().on_an_empty_database().start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "the first message").await;
}

#[tokio::test]
async fn a_node_that_finds_its_tables_does_not_wait_for_others_to_make_theirs() {
    let first = setup().start().await;
    let _others = first.holds_migrations().await;
    let second = first.another_node().await;
    second.anonymous().get("/health").await.ok();
}

#[tokio::test]
async fn a_message_posted_on_one_node_reaches_readers_on_the_other() {
    let (one, two) = two_nodes().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.at(&two).listens(&room).await;
    let first = alice.says(&room, "from the first node").await;
    let told = events.expect("message").await;
    assert_eq!(
        (told["seq"].as_i64(), told["content"].as_str()),
        (Some(first), Some("from the first node"))
    );
    alice.at(&two).says(&room, "from the second").await;
    assert_eq!(events.expect("message").await["content"], "from the second");
}

#[tokio::test]
async fn posts_on_both_nodes_leave_no_gap_and_no_double() {
    let (one, two) = two_nodes().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.at(&two).listens(&room).await;
    let posting: Vec<_> = (0..40)
        .map(|n| {
            let (caller, room) = (alice.at(if n % 2 == 0 { &one } else { &two }), room.clone());
            tokio::spawn(async move { caller.says(&room, &format!("message {n}")).await })
        })
        .collect();
    let mut seqs = BTreeSet::new();
    for post in posting {
        assert!(seqs.insert(post.await.unwrap()), "a seq was given twice");
    }
    let last = *seqs.last().unwrap();
    assert_eq!(
        seqs.len() as i64,
        last - seqs.first().unwrap() + 1,
        "{seqs:?}"
    );
    for seq in seqs {
        assert_eq!(events.expect("message").await["seq"].as_i64(), Some(seq));
    }
}

#[tokio::test]
async fn a_member_is_online_whichever_node_it_reads_from() {
    let (one, two) = two_nodes().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let events = alice.at(&two).listens(&room).await;
    let online = async || {
        let members = alice.get(format!("/rooms/{room}/members")).await.ok();
        members["members"][0]["online"].as_bool().unwrap()
    };
    eventually("the other node tells who reads there", async || {
        online().await.then_some(())
    })
    .await;
    drop(events);
    eventually("the other node tells that nobody does", async || {
        (!online().await).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_key_revoked_on_one_node_ends_its_streams_on_the_other() {
    let (one, two) = two_nodes().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let viewer = alice.viewer_with(&room, "view+post").await;
    let events = viewer.at(&two).listens(&room).await;
    alice.delete(format!("/rooms/{room}/room-keys")).await.ok();
    events.ended().await;
    viewer
        .at(&two)
        .get(format!("/rooms/{room}/messages"))
        .await
        .refused(401, "key_invalid");
}

#[tokio::test]
async fn a_limit_holds_over_both_nodes() {
    let one = setup().limit("agent_cooldown_seconds", 600).start().await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "first").await;
    let again = alice
        .at(&two)
        .post(
            format!("/rooms/{room}/messages"),
            serde_json::json!({"content": "second"}),
        )
        .await;
    again.refused(429, "agent_cooldown");
}

#[tokio::test]
async fn a_visitor_reads_no_more_by_asking_every_node() {
    let one = setup().limit("visitor_reads_per_minute", 10).start().await;
    let two = one.another_node().await;
    let room = one.user("u_alice").creates_a_public_room().await;
    let visitor = one.anonymous().seen_from_outside();
    for place in [format!("/rooms/{room}/messages"), "/leaderboard".into()] {
        let mut read = 0;
        for n in 0..30 {
            let reply = visitor
                .at(if n % 2 == 0 { &one } else { &two })
                .get(&place)
                .await;
            match reply.status {
                200 => read += 1,
                _ => {
                    assert!(reply.header("retry-after").is_some());
                    reply.refused(429, "rate_limited");
                }
            }
        }
        assert_eq!(read, 10, "{place}");
    }
    let other = visitor.at(&two).from("198.51.100.7");
    other.get("/leaderboard").await.ok();
}

#[tokio::test]
async fn one_node_calls_an_agent_and_another_takes_over_when_it_dies() {
    let mut one = setup().start().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("silent");
    agent.joins_as(&alice, &room, &one.user("u_bob")).await;
    let mut said = vec![alice.says(&room, "on the only node").await];
    agent.seqs(1).await;
    let two = one.another_node().await;
    for n in 0..10 {
        let caller = alice.at(if n % 2 == 0 { &two } else { &one });
        said.push(caller.says(&room, "and on the other").await);
    }
    assert_eq!(agent.seqs(said.len()).await, said, "each once, in order");
    agent.replies("hang").await;
    said.push(alice.says(&room, "the node dies in this call").await);
    agent.seqs(said.len()).await;
    one.kill9();
    agent.replies("always").await;
    let last = *said.last().unwrap();
    let alice = alice.at(&two);
    // What was answered with silence just before may be told again; an answer is posted once.
    let answers = eventually("the second node calls", async || {
        let page = format!("/rooms/{room}/messages?since={last}&limit=200");
        let page = alice.get(page).await.ok();
        let messages = page["messages"].as_array().unwrap().iter();
        let answers = messages.filter(|message| message["reply_to_seq"] == last);
        Some(answers.count()).filter(|answers| *answers > 0)
    })
    .await;
    assert_eq!(answers, 1);
}

#[tokio::test]
async fn an_answer_grows_before_readers_on_the_other_node() {
    let (one, two) = two_nodes().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("slow");
    agent.joins_as(&alice, &room, &one.user("u_bob")).await;
    let mut watching = alice.at(&two).listens_with(&room, "?deltas=1").await;
    // Which rooms are read elsewhere is told every other second.
    loop {
        let seq = alice.says(&room, "Hello").await;
        let mut grew = false;
        loop {
            let frame = watching.next().await;
            grew |= frame.event.as_deref() == Some("agent_delta");
            let Some(data) = frame
                .data
                .filter(|_| frame.event.as_deref() == Some("message"))
            else {
                continue;
            };
            let message: serde_json::Value = serde_json::from_str(&data).unwrap();
            if message["reply_to_seq"] == seq {
                break;
            }
        }
        if grew {
            return;
        }
    }
}

#[tokio::test]
async fn agents_are_seen_stopped_and_held_up_on_every_node() {
    let one = setup().limit("TYPING_PER_10_SECONDS", 40).start().await;
    let two = one.another_node().await;
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let otter = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    let seq = alice.says(&room, "Hello").await;
    let mut reading = alice.at(&two).listens(&room).await;
    let mut own = otter.at(&two).listens(&room).await;
    let path = format!("/rooms/{room}/typing");
    let thinking = json!({"state": "thinking", "reply_to_seq": seq});
    otter.post(&path, thinking.clone()).await.ok();
    assert_eq!(reading.ephemeral("agent_typing").await["state"], "thinking");
    // Stopped on the node that knows of it from the other one alone.
    let stop = format!("/rooms/{room}/members/{}/stop", otter.id());
    let stopped = alice.at(&two).post(&stop, json!({})).await.ok();
    assert_eq!(
        (&stopped["stopped"], &stopped["reply_to_seq"]),
        (&json!(true), &json!(seq))
    );
    assert_eq!(own.ephemeral("agent_stop").await["by_user_id"], "u_alice");
    assert_eq!(reading.ephemeral("agent_typing").await["reason"], "stopped");
    assert_eq!(otter.post(&path, thinking).await.ok()["stop"], true);

    // A flood over both nodes is no more than one over one, but for what is on its way.
    let mut passed = 0;
    for n in 0..120 {
        let node = if n % 2 == 0 { &one } else { &two };
        let body = json!({"state": "writing", "text": format!("{n}")});
        let reply = otter.at(node).post(&path, body).await;
        passed += usize::from(reply.status == 200);
    }
    assert!((20..=60).contains(&passed), "{passed} passed");

    // A call that one node makes is stopped on the other.
    let agent = PushAgent::start("hang");
    agent.joins_as(&alice, &room, &one.user("u_bob")).await;
    let asked = alice.says(&room, "And you?").await;
    agent.seqs(1).await;
    let stop = format!("/rooms/{room}/members/u_bob/stop");
    for node in [&one, &two] {
        eventually("both know that it is called", async || {
            let mut late = alice.at(node).listens(&room).await;
            let seen = late.ephemeral("agent_typing").await;
            (seen["user_id"] == "u_bob" && seen["reply_to_seq"] == asked).then_some(())
        })
        .await;
    }
    let mut stopped = 0;
    for node in [&one, &two] {
        let reply = alice
            .at(node)
            .post(&stop, json!({"reply_to_seq": asked}))
            .await
            .ok();
        stopped += usize::from(reply["stopped"] == true);
    }
    assert_eq!(stopped, 1, "once, whichever node it was asked of");
    agent.replies("hello").await;
    let next = alice.says(&room, "Go on").await;
    crate::fanout::answer(&alice, &room, next).await;
    assert_eq!(agent.seqs(2).await, [asked, next]);
}
