//! A clock that is set back an hour: what was stored before lies an hour in the future then.

use crate::harness::{Engine, PushAgent, Setup, both_engines, eventually};

const HOUR_MS: i64 = 3_600_000;

both_engines![
    a_retry_does_not_wait_for_the_clock_to_catch_up,
    pacing_does_not_wait_for_the_clock_to_catch_up,
];

async fn a_retry_does_not_wait_for_the_clock_to_catch_up(setup: Setup) {
    let mut server = setup
        .env("FANOUT__RETRY_SECONDS", "[30, 30, 30]")
        .start()
        .await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("status=503");
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    let seq = alice.says(&room, "Hello").await;
    let path = format!("/rooms/{room}/members");
    eventually("the failure is noted", async || {
        let members = alice.get(&path).await.ok();
        members.to_string().contains("503").then_some(())
    })
    .await;
    server.kill9();
    let later = format!("UPDATE deliveries SET due_ms = due_ms + {HOUR_MS}");
    server.run_sql(&later, &later).await;
    agent.replies("always").await;
    server.restart().await;
    let alice = alice.at(&server);
    eventually("the agent is called", async || {
        let answer = alice.latest_seq(&room).await;
        (answer > seq).then_some(())
    })
    .await;
}

async fn pacing_does_not_wait_for_the_clock_to_catch_up(setup: Setup) {
    let mut server = setup.limit("agent_replies_per_minute", 1).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("always");
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    let seq = alice.says(&room, "Hello").await;
    eventually("an answer", async || {
        (alice.latest_seq(&room).await > seq).then_some(())
    })
    .await;
    server.kill9();
    let later = format!("UPDATE deliveries SET replies_since_ms = replies_since_ms + {HOUR_MS}");
    server.run_sql(&later, &later).await;
    server.restart().await;
    let alice = alice.at(&server);
    let seq = alice.says(&room, "Hello again").await;
    eventually("another answer", async || {
        (alice.latest_seq(&room).await > seq).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_dead_nodes_lease_does_not_lie_in_the_future() {
    let mut server = Setup::new(Engine::Postgres).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("silent");
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    alice.says(&room, "claims the lane").await;
    agent.seqs(1).await;
    server.kill9();
    let later = format!("UPDATE fanout_nodes SET lease_until_ms = lease_until_ms + {HOUR_MS}");
    server.run_sql(&later, &later).await;
    server.restart().await;
    alice.at(&server).says(&room, "Hello").await;
    agent.seqs(2).await;
}
