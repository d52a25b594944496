//! Which calls are made to agents: one for each message, by one node, paced, and none in vain.

use crate::harness::{Caller, Engine, PushAgent, Setup, both_engines, eventually, metric};
use serde_json::{Value, json};

both_engines![
    answers_are_paced_over_a_restart_and_none_is_lost,
    nobody_is_called_in_an_archived_room,
    nobody_is_called_for_a_message_that_cannot_be_answered,
    those_who_come_and_go_wake_nobody,
    an_answer_that_cannot_be_kept_yet_is_not_asked_for_again,
];

/// The answers to these messages, oldest first.
async fn answers(caller: &Caller, room: &str) -> Vec<i64> {
    let page = caller
        .get(format!("/rooms/{room}/messages?limit=200"))
        .await
        .ok();
    let messages = page["messages"].as_array().unwrap().iter();
    messages
        .filter_map(|message| message["reply_to_seq"].as_i64())
        .collect()
}

async fn answered(caller: &Caller, room: &str, seqs: &[i64]) {
    eventually("the answers", async || {
        (answers(caller, room).await == seqs).then_some(())
    })
    .await;
}

async fn answers_are_paced_over_a_restart_and_none_is_lost(setup: Setup) {
    let setup = setup.limit("agent_replies_per_minute", 3);
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (agent, watcher) = (PushAgent::start("always"), PushAgent::start("silent"));
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    watcher
        .joins_as(&alice, &room, &server.user("u_carol"))
        .await;
    let mut said = Vec::new();
    for _ in 0..5 {
        said.push(alice.says(&room, "Well?").await);
    }
    answered(&alice, &room, &said[..3]).await;
    // Whoever is silent is not paced: all five, and the three answers.
    watcher.seqs(8).await;
    assert_eq!(
        agent.calls().await.len(),
        3,
        "no call before the answer may be posted"
    );
    server.restart().await;
    let alice = alice.at(&server);
    said.push(alice.says(&room, "And now?").await);
    watcher.seqs(9).await;
    assert_eq!(
        agent.calls().await.len(),
        3,
        "the minute goes on over a restart"
    );
    assert_eq!(server.terminate().await.code(), Some(0));
    let earlier = "UPDATE deliveries SET replies_since_ms = replies_since_ms - 60000";
    server.run_sql(earlier, earlier).await;
    server.restart().await;
    answered(&alice.at(&server), &room, &said).await;
}

async fn nobody_is_called_in_an_archived_room(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let (room, other) = (alice.creates_a_room().await, alice.creates_a_room().await);
    let agent = PushAgent::start("status=503");
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    agent.joins_as(&alice, &other, &server.user("u_bob")).await;
    let seq = alice.says(&room, "Hello").await;
    agent.seqs(1).await;
    let archive = async |alice: &Caller, archived: bool| {
        let body = json!({"archived": archived});
        alice.patch(format!("/rooms/{room}"), body).await.ok();
    };
    archive(&alice, true).await;
    agent.replies("always").await;
    let before = agent.calls().await.len();
    // After a restart every lane that is behind is looked at.
    server.restart().await;
    let alice = alice.at(&server);
    let elsewhere = alice.says(&other, "Hello").await;
    answered(&alice, &other, &[elsewhere]).await;
    assert_eq!(agent.calls().await.len(), before + 1);
    archive(&alice, false).await;
    answered(&alice, &room, &[seq]).await;
}

async fn nobody_is_called_for_a_message_that_cannot_be_answered(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let depth = json!({"max_reply_chain_depth": 1});
    alice.patch(format!("/rooms/{room}"), depth).await.ok();
    let (one, two) = (PushAgent::start("always"), PushAgent::start("always"));
    one.joins_as(&alice, &room, &server.user("u_bob")).await;
    two.joins_as(&alice, &room, &server.user("u_carol")).await;
    alice.says(&room, "Discuss.").await;
    metric(
        &server,
        "sc_chatroom_fanout_deliveries_total{outcome=\"too_deep\"} 2",
    )
    .await;
    metric(&server, "sc_chatroom_fanout_lanes_busy 0").await;
    for agent in [&one, &two] {
        assert_eq!(agent.calls().await.len(), 1);
    }
}

async fn those_who_come_and_go_wake_nobody(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("silent");
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    let visitor = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    let leave = format!("/rooms/{room}/members/{}", visitor.id());
    visitor.delete(leave).await.ok();
    // The document sends a change of the rules through the fan-out.
    let rules = json!({"content": "Be concise."});
    alice
        .patch(format!("/rooms/{room}/rules"), rules)
        .await
        .ok();
    let told = alice.latest_seq(&room).await;
    assert_eq!(agent.seqs(1).await, [told]);
    metric(&server, "sc_chatroom_fanout_lanes_busy 0").await;
    assert_eq!(agent.calls().await.len(), 1);
}

async fn an_answer_that_cannot_be_kept_yet_is_not_asked_for_again(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("always");
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    // From now on the database takes messages, but no answers.
    server
        .run_sql(
            "CREATE TRIGGER refuse BEFORE INSERT ON messages WHEN NEW.reply_to_seq IS NOT NULL \
             BEGIN SELECT RAISE(ABORT, 'refused'); END",
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'refused'; END $$; \
             CREATE TRIGGER refuse BEFORE INSERT ON messages FOR EACH ROW \
             WHEN (NEW.reply_to_seq IS NOT NULL) EXECUTE FUNCTION refuse()",
        )
        .await;
    let seq = alice.says(&room, "Well?").await;
    eventually("the answer is tried again", async || {
        let tries = server.log().matches("cannot go on with an agent").count();
        (tries >= 3).then_some(())
    })
    .await;
    assert_eq!(agent.calls().await.len(), 1);
    let accept = ["DROP TRIGGER refuse", "DROP TRIGGER refuse ON messages"];
    server.run_sql(accept[0], accept[1]).await;
    answered(&alice, &room, &[seq]).await;
    assert_eq!(
        agent.calls().await.len(),
        1,
        "the answer in hand was posted"
    );
}

#[tokio::test]
async fn one_node_calls_an_agent_for_a_message() {
    let bus = std::env::var("SC_TEST_NATS_URL").expect("SC_TEST_NATS_URL");
    let one = Setup::new(Engine::Postgres).env("BUS", &bus).start().await;
    let nodes = [&one, &one.another_node().await, &one.another_node().await];
    let alice = one.user("u_alice");
    let agent = PushAgent::start("silent");
    let mut rooms = Vec::new();
    for _ in 0..30 {
        let room = alice.creates_a_room().await;
        agent.joins_as(&alice, &room, &one.user("u_bob")).await;
        rooms.push(room);
    }
    // Nobody has claimed these lanes yet: every node may.
    for (n, room) in rooms.iter().enumerate() {
        alice.at(nodes[n % 3]).says(room, "the first message").await;
    }
    agent.seqs(30).await;
    for node in nodes {
        metric(node, "sc_chatroom_fanout_lanes_busy 0").await;
    }
    let room_of = |call: &Value| call["body"]["thread_metadata"]["room_id"].to_string();
    let mut called: Vec<String> = agent.calls().await.iter().map(room_of).collect();
    called.sort();
    let calls = called.len();
    called.dedup();
    assert_eq!((calls, called.len()), (30, 30), "each once");
}
