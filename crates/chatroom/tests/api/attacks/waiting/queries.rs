//! Numbers have bounds, queries have a time limit, and the server ends when it is told to.

use super::rendering::crafted;
use crate::harness::{
    Caller, DEADLINE, Engine, Setup, TestServer, both_engines, eventually, stand_in,
};
use axum::{Router, routing::post};
use futures_util::future::join_all;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{io::AsyncWriteExt, net::TcpStream, sync::Notify};

both_engines!(
    counting_from_minus_infinity_stops_nobody,
    a_query_that_takes_too_long_is_ended_and_others_go_on,
    a_query_ends_when_its_caller_hangs_up,
    the_server_ends_in_time_whatever_runs,
);

/// Both the query and its caller are bounded: what is larger is refused at the door.
async fn counting_from_minus_infinity_stops_nobody(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let visitor = server.anonymous().seen_from_outside();
    let invite = visitor
        .post_nothing(format!("/rooms/{room}/auto-invite"))
        .await
        .created();
    let code = invite["invite_code"].as_str().unwrap();
    let visitor = visitor.joins(&room, code, "curious_visitor-0000abcd").await;
    let attack = format!("/rooms/{room}/messages?since=-9000000000000000000&sender_user_id=x");
    for reply in join_all((0..8).map(|_| visitor.get(&attack).into_future())).await {
        let words = reply.refused(400, "bad_request");
        assert!(words.contains("since"), "{words}");
    }
    alice.says(&room, "still here").await;
}

#[tokio::test]
async fn every_number_from_outside_has_bounds() {
    let server = Setup::new(crate::harness::Engine::Sqlite).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let (low, high) = (i64::MIN, i64::MAX);
    let mut reads = Vec::new();
    for number in [low, -1, 1 << 53, high] {
        reads.push(format!("/rooms/{room}/messages/{number}/thread"));
        reads.push(format!("/rooms/{room}/audit?since={number}"));
        reads.push(format!("/rooms/{room}/members?offset={number}"));
        reads.push(format!("/rooms/public?offset={number}"));
        reads.push(format!("/rooms/{room}/leaderboard?window={number}"));
        reads.push(format!("/rooms/{room}/me/score?window={number}"));
    }
    for number in ["-9223372036854775808", "-1", "9223372036854775808", "1e9"] {
        for parameter in ["since", "before"] {
            reads.push(format!("/rooms/{room}/messages?{parameter}={number}"));
        }
    }
    for list in ["messages", "audit", "members", "leaderboard"] {
        reads.push(format!("/rooms/{room}/{list}?limit={low}"));
    }
    reads.push(format!("/rooms/{room}/state?recent={low}"));
    for path in reads {
        let reply = alice.get(&path).await;
        assert_eq!(
            (reply.status, reply.error()),
            (400, "bad_request"),
            "{path}"
        );
    }
    let messages = format!("/rooms/{room}/messages");
    for field in ["reply_to_seq", "reply_chain_depth"] {
        for number in [low, -1, 1 << 53, high] {
            let reply = alice
                .post(&messages, json!({"content": "x", field: number}))
                .await;
            assert!(reply.refused(400, "bad_request").contains(field));
        }
    }
    for number in [low, -1, 1 << 53, high] {
        let at = format!("{messages}/{number}");
        let bodies = [
            alice.patch(&at, json!({"content": "x"})),
            alice.delete(&at),
            alice.post(format!("{at}/reactions"), json!({"emoji": "👍"})),
            alice.delete(format!("{at}/reactions/👍")),
            alice.post(
                format!("/rooms/{room}/invites"),
                json!({"ttl_seconds": number}),
            ),
            alice.post(
                format!("/rooms/{room}/invites"),
                json!({"max_uses": number}),
            ),
            alice.patch(
                format!("/rooms/{room}"),
                json!({"max_reply_chain_depth": number}),
            ),
        ];
        for request in bodies {
            request.await.refused(400, "bad_request");
        }
    }
    assert_eq!(alice.reads(&room, seq).await["content"], "hello");
}

/// From now on whoever reads messages waits for ever. It stands for every query that is slow for a
/// reason nobody thought of.
async fn make_reading_messages_endless(server: &TestServer) {
    server
        .run_sql(
            "ALTER TABLE messages RENAME TO kept; \
             CREATE VIEW messages AS WITH RECURSIVE endless (i) AS \
             (SELECT 1 UNION ALL SELECT i + 1 FROM endless) \
             SELECT kept.* FROM endless JOIN kept ON kept.seq = -endless.i",
            "ALTER TABLE messages RENAME TO kept; \
             CREATE VIEW messages AS SELECT kept.* FROM kept CROSS JOIN pg_sleep(3600)",
        )
        .await;
}

/// A room whose messages take for ever to read, and its owner.
async fn room_that_is_slow_to_read(server: &TestServer) -> (Caller, String) {
    let alice = server.user("u_alice").from("10.0.0.1");
    let room = alice.creates_a_room().await;
    alice.says(&room, "hello").await;
    make_reading_messages_endless(server).await;
    (alice, format!("/rooms/{room}/messages"))
}

async fn a_query_that_takes_too_long_is_ended_and_others_go_on(setup: Setup) {
    let server = setup.env("QUERY_SECONDS", "1").start().await;
    let (alice, slow) = room_that_is_slow_to_read(&server).await;
    let attack = tokio::spawn(join_all((0..8).map(|_| alice.get(&slow).into_future())));
    eventually("the readers are busy", || async {
        let busy = alice.get("/rooms").attempt();
        tokio::time::timeout(Duration::from_millis(200), busy)
            .await
            .is_err()
            .then_some(())
    })
    .await;
    let bob = server.user("u_bob").from("10.0.0.2");
    bob.get("/rooms").await.ok();
    assert!(!attack.is_finished(), "bob waited for alice's queries");
    for reply in attack.await.unwrap() {
        assert!(reply.header("retry-after").is_some());
        reply.refused(503, "unavailable");
    }
    let metrics = alice.get("/metrics").await;
    let mut lines = metrics.text().lines();
    let counted = lines.find_map(|line| line.strip_prefix("sc_chatroom_queries_timed_out_total "));
    assert!(counted.unwrap().parse::<u32>().unwrap() >= 4, "{counted:?}");
    assert!(
        server.log().contains("query=\"chatroom::store::messages:"),
        "{}",
        server.log()
    );
    alice.get("/rooms").await.ok();
}

async fn a_query_ends_when_its_caller_hangs_up(setup: Setup) {
    let server = setup.env("QUERY_SECONDS", "3000").start().await;
    let (alice, slow) = room_that_is_slow_to_read(&server).await;
    for _ in 0..4 {
        let abandoned = join_all((0..8).map(|_| alice.get(&slow).attempt()));
        let answered = tokio::time::timeout(Duration::from_millis(300), abandoned).await;
        assert!(answered.is_err(), "it was not slow");
    }
    let again = tokio::time::timeout(DEADLINE, alice.get("/rooms").into_future());
    again.await.expect("the readers are free again").ok();
    // The server's own look at the log, every 30 s, may be one.
    eventually("the queries have ended", || async {
        (server.running_queries().await <= 1).then_some(())
    })
    .await;
}

async fn the_server_ends_in_time_whatever_runs(setup: Setup) {
    let setup = setup
        .env("QUERY_SECONDS", "3000")
        .env("SHUTDOWN_SECONDS", "1");
    let mut server = setup.start().await;
    let (alice, slow) = room_that_is_slow_to_read(&server).await;
    let other = alice.creates_a_room().await;
    let _stream = alice.listens(&other).await;
    let mut stalled = TcpStream::connect(server.base_url().strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let head = "POST /rooms HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    stalled.write_all(head.as_bytes()).await.unwrap();
    let attack = tokio::spawn(join_all((0..8).map(|_| alice.get(&slow).attempt())));
    eventually("the queries run", || async {
        (server.running_queries().await >= 4).then_some(())
    })
    .await;
    let status = server.terminate().await;
    assert!(status.success(), "{status}");
    attack.await.unwrap();
}

#[tokio::test]
async fn the_server_ends_in_time_while_an_agent_answers_and_a_page_is_rendered() {
    let called = Arc::new(Notify::new());
    let calls = called.clone();
    let agent = Router::new().route(
        "/chat/stream",
        post(async move || {
            calls.notify_one();
            std::future::pending::<String>().await
        }),
    );
    let agent = stand_in(agent).await;
    let setup = Setup::new(Engine::Sqlite).env("SHUTDOWN_SECONDS", "3");
    let mut server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    let body = json!({"invite_code": alice.invites(&room).await, "agent_endpoint": agent,
                      "akm_key": "sk_secret_of_bob"});
    bob.post(format!("/rooms/{room}/join"), body)
        .await
        .created();
    for n in 0..50 {
        alice.says(&room, &crafted(n)).await;
    }
    let page = format!("/rooms/{room}/messages?render=html");
    let rendering = tokio::spawn(join_all((0..4).map(|_| alice.get(&page).attempt())));
    called.notified().await;
    let status = server.terminate().await;
    assert!(status.success(), "{status}");
    rendering.await.unwrap();
}
