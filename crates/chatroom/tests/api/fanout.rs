//! The server calls agents: what they are told, and what becomes of their answers.

use crate::harness::{
    Caller, PushAgent, Setup, TestServer, both_engines, eventually, metric, one_engine,
};
use serde_json::{Value, json};

both_engines![
    an_answer_is_posted_in_the_agents_name,
    broken_text_is_no_danger,
    an_agent_is_told_all_but_its_own_words,
    messages_come_in_order_and_a_deleted_one_is_skipped,
    a_failed_call_is_tried_again,
    a_refused_key_is_stale_at_once_and_a_new_one_goes_on,
    the_fifth_failure_is_the_last,
    an_agent_that_is_gone_leaves_the_room,
    a_key_that_is_replaced_at_once_loses_no_message,
    a_new_key_after_a_long_time_skips_and_says_so,
    a_retry_survives_kill_9,
    sigterm_in_the_middle_of_a_call_ends_in_time_and_calls_again,
    ten_agents_that_always_answer_fall_silent,
    a_member_who_left_is_not_called,
];

one_engine![
    a_redirect_to_another_host_is_not_followed,
    a_stranger_cannot_point_the_server_at_its_own_network,
    silence_posts_nothing,
    an_agent_is_called_as_the_document_says,
    those_who_ask_see_an_answer_grow,
    at_the_default_depth_the_room_falls_silent_too,
    a_failing_agent_causes_no_message,
];

pub fn setup_quick(setup: Setup) -> Setup {
    setup.env("FANOUT__RETRY_SECONDS", "[0, 0, 0, 0, 0]")
}

/// A room of Alice's with Bob's agent in it.
pub async fn world(server: &TestServer, reply: &str) -> (Caller, String, PushAgent) {
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start(reply);
    agent.joins_as(&alice, &room, &server.user("u_bob")).await;
    (alice, room, agent)
}

/// Waits until somebody has answered this message; the answer.
pub async fn answer(caller: &Caller, room: &str, seq: i64) -> Value {
    eventually("an answer", async || {
        let path = format!("/rooms/{room}/messages?since={seq}&limit=200");
        let page = caller.get(path).await.ok();
        let mut messages = page["messages"].as_array().unwrap().iter();
        messages.find(|m| m["reply_to_seq"] == seq).cloned()
    })
    .await
}

pub async fn is_stale(caller: &Caller, room: &str, user: &str) -> Value {
    eventually("the member is stale", async || {
        let member = caller.sees_member(room, user).await?;
        (member["key_stale"] == true).then_some(member)
    })
    .await
}

async fn an_agent_is_called_as_the_document_says(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, agent) = world(&server, "silent").await;
    let data = json!({"content": "Launch is on Friday."});
    alice.patch(format!("/rooms/{room}/data"), data).await.ok();
    let container = json!({"container_id": "568359"});
    let path = format!("/rooms/{room}/members/u_bob/endpoint");
    server.user("u_bob").put(path, container).await.ok();
    let first = alice.says(&room, "Hello everyone").await;
    let second = alice
        .says_this(&room, json!({"content": "Anyone?", "reply_to_seq": first}))
        .await;
    agent.seqs(2).await;
    let calls = agent.calls().await;
    let call = &calls[1];
    assert_eq!(
        call["body"]["message"],
        format!("[{room}] u_alice (agent): Anyone?")
    );
    assert_eq!(call["body"]["thread_id"], format!("chatroom-{room}"));
    assert_eq!(call["body"]["channel"], "chatroom");
    assert_eq!(
        call["body"]["thread_metadata"],
        json!({"room_id": room, "seq": second, "sender_user_id": "u_alice", "via": "agent",
               "reply_to_seq": first, "reply_chain_depth": 1, "room_rules_version": 0})
    );
    assert_eq!(call["body"]["recipient"]["mentioned"], false);
    assert_eq!(call["body"]["room_data"], "Launch is on Friday.");
    let context = call["body"]["context"].as_array().unwrap();
    assert_eq!(context.last().unwrap()["content"], "Hello everyone");
    let headers = &call["headers"];
    assert_eq!(headers["authorization"], "Bearer sk_secret_of_the_agent");
    assert_eq!(headers["fly-force-instance-id"], "568359");
    assert_eq!(headers["x-delivery-id"], format!("{room}.{second}.u_bob"));
    alice.says(&room, "@bob, and you?").await;
    agent.seqs(3).await;
    let recipient = &agent.calls().await[2]["body"]["recipient"];
    assert_eq!(
        (&recipient["user_id"], &recipient["mentioned"]),
        (&json!("u_bob"), &json!(true)),
        "{recipient}"
    );
    metric(
        &server,
        "sc_chatroom_fanout_deliveries_total{outcome=\"silent\"} 3",
    )
    .await;
}

async fn an_answer_is_posted_in_the_agents_name(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, _agent) = world(&server, "raw=data: Yes, @Alice\n\n").await;
    let seq = alice.says(&room, "Ready?").await;
    let reply = answer(&alice, &room, seq).await;
    assert_eq!(reply["content"], "Yes, @Alice");
    assert_eq!(reply["sender_user_id"], "u_bob");
    assert_eq!(reply["sender_user_name"], "Bob");
    assert_eq!(reply["via"], "agent");
    assert_eq!(reply["reply_chain_depth"], 1);
    let mentions = format!("/rooms/{room}/messages?mentions=me");
    let mentions = alice.get(mentions).await.ok();
    assert_eq!(mentions["messages"][0]["seq"], reply["seq"]);
}

async fn silence_posts_nothing(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = world(&server, "silent").await;
    let first = alice.says(&room, "one").await;
    agent.seqs(1).await;
    agent.replies("always").await;
    let second = alice.says(&room, "two").await;
    let reply = answer(&alice, &room, second).await;
    assert_eq!(reply["seq"].as_i64(), Some(second + 1));
    assert_eq!(second, first + 1, "nothing was posted in between");
}

async fn broken_text_is_no_danger(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = world(&server, "broken").await;
    let seq = alice.says(&room, "one").await;
    let reply = answer(&alice, &room, seq).await;
    assert!(reply["content"].as_str().unwrap().contains('\u{fffd}'));
    agent
        .replies("raw=data: {\"text\":\"a\\u0000b\"}\n\n")
        .await;
    let seq = alice.says(&room, "two").await;
    assert_eq!(answer(&alice, &room, seq).await["content"], "ab");
    let long = format!("raw=data: {}\n\n", "é".repeat(4000));
    agent.replies(&long).await;
    let seq = alice.says(&room, "three").await;
    let reply = answer(&alice, &room, seq).await;
    let text = reply["content"].as_str().unwrap();
    assert!(text.len() <= 4096 && text.ends_with("é…"));
}

async fn an_agent_is_told_all_but_its_own_words(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = world(&server, "silent").await;
    let bob = server.user("u_bob");
    bob.says(&room, "posted with the agent's own token").await;
    let viewer = bob.viewer(&room).await;
    let typed = viewer.says(&room, "typed by Bob").await;
    alice
        .patch(
            format!("/rooms/{room}/rules"),
            json!({"content": "Be kind."}),
        )
        .await
        .ok();
    let last = alice.says(&room, "from Alice").await;
    assert_eq!(agent.seqs(3).await, [typed, typed + 1, last]);
    let calls = agent.calls().await;
    assert_eq!(calls[1]["body"]["thread_metadata"]["via"], "system");
}

async fn messages_come_in_order_and_a_deleted_one_is_skipped(setup: Setup) {
    let server = setup_quick(setup).start().await;
    let (alice, room, agent) = world(&server, "status=500").await;
    let first = alice.says(&room, "0").await;
    agent.seqs(1).await;
    let path = format!("/rooms/{room}/messages");
    let gone = alice.says(&room, "taken back").await;
    alice.delete(format!("{path}/{gone}")).await.ok();
    for n in 1..30 {
        alice.says(&room, &n.to_string()).await;
    }
    is_stale(&alice, &room, "u_bob").await;
    let failed = agent.calls().await.len();
    agent.replies("silent").await;
    let endpoint = format!("/rooms/{room}/members/u_bob/endpoint");
    let key = json!({"akm_key": "sk_new"});
    server.user("u_bob").put(endpoint, key).await.ok();
    let seqs = agent.seqs(failed + 30).await;
    let expected: Vec<i64> = (first..=first + 30).filter(|seq| *seq != gone).collect();
    assert_eq!(seqs[failed..], expected);
}

async fn a_failed_call_is_tried_again(setup: Setup) {
    let server = setup_quick(setup).start().await;
    for failure in [
        "status=503",
        "status=429",
        "status=404",
        "reset",
        "raw=event: error\ndata: {}\n\n",
    ] {
        let (alice, room, agent) = world(&server, failure).await;
        let setting = format!("/rooms/{room}/members/u_bob/endpoint");
        let seq = alice.says(&room, "Hello").await;
        agent.seqs(1).await;
        agent.replies("always").await;
        // It may have failed five times before it was told to answer.
        let key = json!({"akm_key": "sk_new"});
        server.user("u_bob").put(setting, key).await.ok();
        let reply = answer(&alice, &room, seq).await;
        assert_eq!(reply["content"], format!("An answer to {seq}"), "{failure}");
        let delivery = |call: &Value| call["headers"]["x-delivery-id"].clone();
        let calls = agent.calls().await;
        assert!(calls.len() > 1);
        assert!(
            calls
                .iter()
                .all(|call| delivery(call) == delivery(&calls[0]))
        );
        let member = alice.sees_member(&room, "u_bob").await.unwrap();
        assert_eq!(member.get("last_error"), None);
    }
}

async fn a_refused_key_is_stale_at_once_and_a_new_one_goes_on(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = world(&server, "status=401").await;
    let mut events = alice.listens(&room).await;
    let seq = alice.says(&room, "Hello").await;
    events.expect("message").await;
    let told = events.expect("member_updated").await;
    assert_eq!(told["user_id"], "u_bob");
    assert_eq!(told["key_stale"], true);
    assert!(told["reason"].as_str().unwrap().contains("401"));
    let member = alice.sees_member(&room, "u_bob").await.unwrap();
    assert_eq!(member["key_stale"], true);
    assert!(member["last_error"].as_str().unwrap().contains("401"));
    alice.says(&room, "Still there?").await;
    assert_eq!(agent.calls().await.len(), 1, "no retry, and no other call");
    agent.replies("always").await;
    let endpoint = format!("/rooms/{room}/members/u_bob/endpoint");
    let bob = server.user("u_bob");
    bob.put(endpoint, json!({"akm_key": "sk_new"})).await.ok();
    answer(&alice, &room, seq).await;
    answer(&alice, &room, seq + 1).await;
    let calls = agent.calls().await;
    assert_eq!(calls[1]["headers"]["authorization"], "Bearer sk_new");
}

async fn the_fifth_failure_is_the_last(setup: Setup) {
    let server = setup_quick(setup).start().await;
    let (alice, room, agent) = world(&server, "status=500").await;
    alice.says(&room, "Hello").await;
    let member = is_stale(&alice, &room, "u_bob").await;
    assert!(member["last_error"].as_str().unwrap().contains("500"));
    assert_eq!(agent.calls().await.len(), 5);
}

async fn an_agent_that_is_gone_leaves_the_room(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, _agent) = world(&server, "status=410").await;
    let seq = alice.says(&room, "Hello").await;
    eventually("the member is gone", async || {
        alice
            .sees_member(&room, "u_bob")
            .await
            .is_none()
            .then_some(())
    })
    .await;
    assert_eq!(
        alice.reads(&room, seq + 1).await["content"],
        "u_bob left the room"
    );
}

async fn a_failing_agent_causes_no_message(setup: Setup) {
    let server = setup_quick(setup).start().await;
    let (alice, room, _agent) = world(&server, "status=500").await;
    let watcher = PushAgent::start("always");
    watcher
        .joins_as(&alice, &room, &server.user("u_carol"))
        .await;
    let before = alice.latest_seq(&room).await;
    let seq = alice.says(&room, "Hello").await;
    is_stale(&alice, &room, "u_bob").await;
    answer(&alice, &room, seq).await;
    assert_eq!(
        alice.latest_seq(&room).await,
        before + 2,
        "hers and the answer"
    );
}

async fn a_retry_survives_kill_9(setup: Setup) {
    let setup = setup.env("FANOUT__RETRY_SECONDS", "[3, 3, 3]");
    let mut server = setup.start().await;
    let (alice, room, agent) = world(&server, "status=500").await;
    let seq = alice.says(&room, "Hello").await;
    eventually("the failure is noted", async || {
        let member = alice.sees_member(&room, "u_bob").await.unwrap();
        member.get("last_error").is_some().then_some(())
    })
    .await;
    server.kill9();
    agent.replies("always").await;
    server.restart().await;
    let alice = alice.at(&server);
    assert_eq!(answer(&alice, &room, seq).await["sender_user_id"], "u_bob");
    assert_eq!(alice.latest_seq(&room).await, seq + 1);
}

pub async fn sigkill_between_call_and_answer_loses_nothing_and_doubles_nothing(setup: Setup) {
    let mut server = setup.start().await;
    let (alice, room, agent) = world(&server, "hang").await;
    let first = alice.says(&room, "one").await;
    let second = alice.says(&room, "two").await;
    agent.seqs(1).await;
    server.kill9();
    agent.replies("always").await;
    server.restart().await;
    let alice = alice.at(&server);
    answer(&alice, &room, first).await;
    answer(&alice, &room, second).await;
    // Again, at no particular moment.
    for _ in 0..3 {
        let seq = alice.at(&server).says(&room, "more").await;
        agent.seqs(2).await;
        server.kill9();
        server.restart().await;
        answer(&alice.at(&server), &room, seq).await;
    }
    let alice = alice.at(&server);
    let page = alice
        .get(format!("/rooms/{room}/messages?limit=200"))
        .await
        .ok();
    let mut answered: Vec<i64> = page["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["reply_to_seq"].as_i64())
        .collect();
    let answers = answered.len();
    answered.sort_unstable();
    answered.dedup();
    assert_eq!((answered.len(), answers), (5, 5), "one answer each");
}

async fn sigterm_in_the_middle_of_a_call_ends_in_time_and_calls_again(setup: Setup) {
    let mut server = setup.env("SHUTDOWN_SECONDS", "1").start().await;
    let (alice, room, agent) = world(&server, "hang").await;
    let seq = alice.says(&room, "Hello").await;
    agent.seqs(1).await;
    assert!(server.terminate().await.success());
    agent.replies("always").await;
    server.restart().await;
    answer(&alice.at(&server), &room, seq).await;
}

async fn a_member_who_left_is_not_called(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = world(&server, "silent").await;
    alice.says(&room, "Hello").await;
    agent.seqs(1).await;
    alice
        .delete(format!("/rooms/{room}/members/u_bob"))
        .await
        .ok();
    alice.says(&room, "Is he gone?").await;
    let watcher = PushAgent::start("silent");
    watcher
        .joins_as(&alice, &room, &server.user("u_carol"))
        .await;
    alice.says(&room, "He is").await;
    watcher.seqs(1).await;
    assert_eq!(agent.calls().await.len(), 1);
}

/// Alice's message stands at depth 0 and each of ten agents answers it: 10 messages at depth 1.
/// Each of those is answered by the other nine: 90 at depth 2, which is as deep as the room
/// allows. Nobody is called for those: 101 in all.
async fn ten_agents_that_always_answer_fall_silent(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let depth = json!({"max_reply_chain_depth": 2});
    alice.patch(format!("/rooms/{room}"), depth).await.ok();
    let agent = PushAgent::start("silent");
    for n in 0..10 {
        let user = server.user(&format!("u_agent{n}"));
        agent.joins_as(&alice, &room, &user).await;
    }
    agent.replies("always").await;
    let seq = alice.says(&room, "Discuss.").await;
    metric(
        &server,
        // 90 messages at the deepest, each of no use to nine.
        "sc_chatroom_fanout_deliveries_total{outcome=\"too_deep\"} 810",
    )
    .await;
    metric(
        &server,
        "sc_chatroom_fanout_deliveries_total{outcome=\"answered\"} 100",
    )
    .await;
    assert_eq!(alice.latest_seq(&room).await, seq + 100);
    let me = alice.get(format!("/rooms/{room}/me")).await.ok();
    assert_eq!(me["room"]["max_reply_chain_depth"], 2);
}

/// Three agents, each answered by the other two: 3, 6, 12, 24 and 48 answers at depths 1 to 5.
/// With n agents it is n + n(n-1) + n(n-1)² + …; with ten agents, 73,810.
async fn at_the_default_depth_the_room_falls_silent_too(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, agent) = world(&server, "silent").await;
    for user in ["u_carol", "u_dave"] {
        agent.joins_as(&alice, &room, &server.user(user)).await;
    }
    agent.replies("always").await;
    let seq = alice.says(&room, "Discuss.").await;
    metric(
        &server,
        "sc_chatroom_fanout_deliveries_total{outcome=\"too_deep\"} 96",
    )
    .await;
    assert_eq!(alice.latest_seq(&room).await, seq + 93);
    assert_eq!(
        alice.reads(&room, seq + 93).await["reply_chain_depth"],
        5,
        "the last word is the deepest"
    );
}

/// The new key comes while the server has not yet put the refused call away.
async fn a_key_that_is_replaced_at_once_loses_no_message(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, _agent) = world(&server, "once").await;
    let bob = server.user("u_bob");
    let mut events = alice.listens(&room).await;
    let endpoint = format!("/rooms/{room}/members/u_bob/endpoint");
    let seq = alice.says(&room, "The first key is good once").await;
    answer(&alice, &room, seq).await;
    for n in 0..15 {
        let seq = alice.says(&room, "Hello").await;
        loop {
            let (event, _, data) = events.event().await;
            if event == "member_updated" && data["key_stale"] == true {
                break;
            }
        }
        let key = json!({"akm_key": format!("sk_{n}")});
        bob.put(&endpoint, key).await.ok();
        answer(&alice, &room, seq).await;
    }
}

async fn a_new_key_after_a_long_time_skips_and_says_so(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, agent) = world(&server, "status=401").await;
    let first = alice.says(&room, "0").await;
    is_stale(&alice, &room, "u_bob").await;
    for n in 1..=230 {
        alice.says(&room, &n.to_string()).await;
    }
    let head = alice.latest_seq(&room).await;
    agent.replies("silent").await;
    let endpoint = format!("/rooms/{room}/members/u_bob/endpoint");
    let bob = server.user("u_bob");
    let key = json!({"akm_key": "sk_new"});
    let reply = bob.put(&endpoint, key.clone()).await.ok();
    assert_eq!(reply["skipped_messages"], 31);
    let told = agent.seqs(201).await;
    let newest: Vec<i64> = (first + 31..=head).collect();
    assert_eq!(told[1..], newest);

    let audit = alice.get(format!("/rooms/{room}/audit")).await.ok();
    let line = audit["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&line["action"], &line["actor"], &line["target"]),
        (&json!("backlog_skipped"), &json!("u_bob"), &json!("u_bob"))
    );
    assert_eq!(
        line["detail"],
        json!({"from_seq": first, "to_seq": first + 30, "messages": 31})
    );
    let log = server.log();
    assert!(log.contains("not told of these"), "{log}");
    // Nothing is said where nothing is skipped.
    let reply = bob.put(&endpoint, key).await.ok();
    assert_eq!(reply.get("skipped_messages"), None);
}

async fn a_stranger_cannot_point_the_server_at_its_own_network(setup: Setup) {
    let server = setup_quick(setup).start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = PushAgent::start("always");
    let port = agent.url().rsplit_once(':').unwrap().1;
    let hosts = [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "[::1]",
    ];
    for (n, host) in hosts.iter().enumerate() {
        let body = json!({"invite_code": alice.invites(&room).await, "adapter_type": "clawd",
                          "client_kind": "external_agent", "user_id": format!("forger_no-{n:08x}"),
                          "agent_endpoint": format!("http://{host}:{port}"), "akm_key": "sk_x"});
        server
            .anonymous()
            .post(format!("/rooms/{room}/join"), body)
            .await
            .created();
    }
    alice.says(&room, "Hello").await;
    for n in 0..hosts.len() {
        let user = format!("ext_forger_no-{n:08x}");
        let member = is_stale(&alice, &room, &user).await;
        let why = member["last_error"].as_str().unwrap();
        assert!(why.contains("not one that this server calls"), "{why}");
    }
    assert_eq!(agent.calls().await.len(), 0);
    let body = json!({"agent_endpoint": "http://name:secret@agent.example"});
    let path = format!("/rooms/{room}/members/u_alice/endpoint");
    alice.put(path, body).await.refused(400, "bad_request");
}

async fn a_redirect_to_another_host_is_not_followed(setup: Setup) {
    let server = setup_quick(setup).start().await;
    let elsewhere = PushAgent::start("always");
    let (_, port) = elsewhere.url().rsplit_once(':').unwrap();
    for target in [
        elsewhere.url().to_owned(),
        format!("http://localhost:{port}"),
    ] {
        let (alice, room, _agent) = world(&server, &format!("redirect={target}/chat/stream")).await;
        alice.says(&room, "Hello").await;
        let member = is_stale(&alice, &room, "u_bob").await;
        assert!(member["last_error"].as_str().unwrap().contains("307"));
    }
    assert_eq!(elsewhere.calls().await.len(), 0);
}

async fn those_who_ask_see_an_answer_grow(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, _agent) = world(&server, "slow").await;
    let mut plain = alice.listens(&room).await;
    let mut watching = alice.listens_with(&room, "?deltas=1").await;
    let seq = alice.says(&room, "Hello").await;
    watching.expect("message").await;
    let mut seen = Vec::new();
    let reply = loop {
        let frame = watching.next().await;
        let Some(data) = frame.data else { continue };
        let data: Value = serde_json::from_str(&data).unwrap();
        let kind = frame.event.unwrap();
        if kind == "message" {
            break data;
        }
        assert_eq!(frame.id, None, "not in the log");
        assert_eq!(
            (&data["user_id"], &data["reply_to_seq"]),
            (&json!("u_bob"), &json!(seq))
        );
        seen.push((kind, data));
    };
    assert_eq!(reply["content"], "The first half and the second");
    assert_eq!(seen[0].0, "agent_typing");
    assert_eq!(seen[0].1["state"], "thinking");
    assert_eq!(seen[1].1["state"], "writing");
    assert_eq!(seen[2].0, "agent_delta");
    assert_eq!(seen[2].1["text"], "The first half");
    assert_eq!(seen.last().unwrap().1["typing"], false);
    plain.expect("message").await;
    assert_eq!(plain.expect("message").await["seq"], reply["seq"]);
}
