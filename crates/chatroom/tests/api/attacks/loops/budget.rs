//! The exchanges between agents that a room allows without a person's word.

use crate::harness::{
    Agent, Caller, PushAgent, Setup, TestServer, both_engines, eventually, metric,
};
use serde_json::{Value, json};

both_engines![
    six_agents_that_always_answer_fall_silent_and_a_person_lets_them_go_on,
    agents_that_hide_what_they_answer_fall_silent,
    who_claims_to_be_human_is_no_person,
    the_owner_sets_the_budget_and_refills_it,
    depth_does_not_depend_on_what_an_agent_says,
    agents_do_not_go_on_in_edits,
];

fn messages(room: &str) -> String {
    format!("/rooms/{room}/messages")
}

/// Every notice that the agents pause.
async fn notices(caller: &Caller, room: &str) -> Vec<Value> {
    let page = caller.get(format!("{}?limit=200", messages(room))).await;
    let page = page.ok()["messages"].as_array().unwrap().clone();
    let pauses = |message: &Value| {
        let content = message["content"].as_str().unwrap();
        message["via"] == "system" && content.contains("so they pause")
    };
    page.into_iter().filter(pauses).collect()
}

async fn left(caller: &Caller, room: &str) -> Value {
    let me = caller.get(format!("/rooms/{room}/me")).await.ok();
    me["room"]["agent_exchanges_left"].clone()
}

/// Two agents that post for themselves.
async fn two_agents(server: &TestServer) -> (Caller, String, Agent, Agent) {
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let one = alice.lets_in(&room, "curious_otter-3a9f1c20").await;
    let two = alice.lets_in(&room, "patient_puffin-7e2bd401").await;
    (alice, room, one, two)
}

/// The two speak in turns until one is refused; how often they spoke, and the refusal.
async fn talk(room: &str, one: &Caller, two: &Caller) -> (usize, crate::harness::Reply) {
    for n in 0.. {
        let speaker = if n % 2 == 0 { one } else { two };
        let content = json!({"content": format!("word {n}")});
        let reply = speaker.post(messages(room), content).await;
        if reply.status != 201 {
            return (n, reply);
        }
        assert!(n < 100, "the agents go on for ever");
    }
    unreachable!()
}

async fn six_agents_that_always_answer_fall_silent_and_a_person_lets_them_go_on(setup: Setup) {
    let setup = setup.limit("agent_exchanges_without_person", 20);
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let deep = json!({"max_reply_chain_depth": 50});
    alice.patch(format!("/rooms/{room}"), deep).await.ok();
    let agent = PushAgent::start("always");
    for n in 0..6 {
        let user = server.user(&format!("u_agent{n}"));
        agent.joins_as(&alice, &room, &user).await;
    }
    let person = alice.viewer(&room).await;
    let mut calls = 0;
    for round in 1..=2 {
        let seq = person.says(&room, "Discuss.").await;
        eventually("the room shows that the agents pause", async || {
            (notices(&alice, &room).await.len() == round).then_some(())
        })
        .await;
        metric(&server, "sc_chatroom_fanout_lanes_busy 0").await;
        // The first answer follows a person's word; 20 follow or answer another agent's; the notice.
        // At the end each may still have to answer the person, alone.
        let last = alice.latest_seq(&room).await;
        assert!((seq + 22..=seq + 27).contains(&last), "{seq} {last}");
        assert_eq!(left(&alice, &room).await, 0);
        let made = agent.calls().await.len();
        assert!(
            made - calls <= 27 + 5,
            "at most one call in hand is in vain for each other agent"
        );
        calls = made;
    }
    assert_eq!(notices(&alice, &room).await.len(), 2, "one for each time");
}

async fn agents_that_hide_what_they_answer_fall_silent(setup: Setup) {
    let setup = setup.limit("agent_exchanges_without_person", 6);
    let server = setup.start().await;
    let (alice, room, one, two) = two_agents(&server).await;
    let (spoke, refusal) = talk(&room, &one, &two).await;
    assert_eq!(spoke, 7);
    let words = refusal.refused(429, "rate_limited");
    assert!(words.contains("a person writes"), "{words}");
    assert!(words.contains("agent_exchanges_without_person"), "{words}");
    let told = notices(&alice, &room).await;
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["type"], &told[0]["sender_user_id"]),
        (&json!("system"), &json!("u_system"))
    );
    for speaker in [&two, &one, &two] {
        // Whoever spoke last may go on alone: that is a feed, and nobody answers it.
        let status = speaker
            .post(messages(&room), json!({"content": "again"}))
            .await
            .status;
        assert_eq!(status, if speaker.id() == one.id() { 201 } else { 429 });
    }
    // The owner's container token is the owner's agent.
    alice
        .post(messages(&room), json!({"content": "me too"}))
        .await
        .refused(429, "rate_limited");
    assert_eq!(notices(&alice, &room).await.len(), 1, "once");
    let person = alice.viewer(&room).await;
    person.says(&room, "Go on").await;
    assert_eq!(left(&alice, &room).await, 6);
    assert_eq!(talk(&room, &one, &two).await.0, 7);
    // A person who signed in is one with the token itself, too.
    server
        .user_of_type("u_alice", "access")
        .says(&room, "Go on")
        .await;
    assert_eq!(talk(&room, &one, &two).await.0, 7);
    assert_eq!(notices(&alice, &room).await.len(), 3);
}

async fn who_claims_to_be_human_is_no_person(setup: Setup) {
    let setup = setup.limit("agent_exchanges_without_person", 4);
    let server = setup.start().await;
    let (alice, room, one, _) = two_agents(&server).await;
    let claims = alice.lets_in_a_person(&room, "bob").await;
    let (spoke, refusal) = talk(&room, &one, &claims).await;
    assert_eq!(spoke, 5);
    refusal.refused(429, "rate_limited");
}

async fn the_owner_sets_the_budget_and_refills_it(setup: Setup) {
    let setup = setup.limit("agent_exchanges_without_person", 60);
    let server = setup.start().await;
    let (alice, room, one, two) = two_agents(&server).await;
    let path = format!("/rooms/{room}");
    let me = alice.get(format!("{path}/me")).await.ok();
    assert_eq!(me["room"]["agent_exchanges_without_person"], 60);
    let set = async |limit: Value| {
        let body = json!({"agent_exchanges_without_person": limit});
        alice.patch(&path, body).await
    };
    for bad in [json!(-1), json!(10_001), json!("many")] {
        set(bad).await.refused(400, "bad_request");
    }
    let limit = json!({"agent_exchanges_without_person": 2});
    one.patch(&path, limit)
        .await
        .refused(403, "key_scope_insufficient");
    set(json!(2)).await.ok();
    assert_eq!(talk(&room, &one, &two).await.0, 3);
    set(json!(2)).await.ok();
    assert_eq!(left(&alice, &room).await, 2, "the owner's act refills it");
    set(json!(0)).await.ok();
    let room_view = alice.get(&path).await.ok();
    assert_eq!(room_view["agent_exchanges_without_person"], 0);
    assert_eq!(
        room_view["agent_exchanges_left"],
        Value::Null,
        "none are counted"
    );
    for n in 0..10 {
        let speaker = if n % 2 == 0 { &one } else { &two };
        speaker.says(&room, "on and on").await;
    }
    set(Value::Null).await.ok();
    assert_eq!(
        alice.get(&path).await.ok()["agent_exchanges_without_person"],
        60
    );
    let changed = |(_, action, _): &(String, String, Value)| action == "exchange_limit_changed";
    assert_eq!(
        alice
            .audits(&room)
            .await
            .iter()
            .filter(|line| changed(line))
            .count(),
        4
    );
}

async fn depth_does_not_depend_on_what_an_agent_says(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, one, two) = two_agents(&server).await;
    let person = alice.viewer(&room).await;
    let seq = person.says(&room, &format!("@{} begin", one.id())).await;
    for depth in 1..=5 {
        let (speaker, other) = if depth % 2 == 1 {
            (&one, &two)
        } else {
            (&two, &one)
        };
        let said = speaker
            .says(&room, &format!("your turn, @{}", other.id()))
            .await;
        let message = alice.reads(&room, said).await;
        assert_eq!(message["reply_chain_depth"], depth);
        assert_eq!(
            message["reply_to_seq"],
            Value::Null,
            "nobody is made to say more than they did"
        );
    }
    let body = json!({"content": "and so on"});
    let words = two
        .post(messages(&room), body)
        .await
        .refused(400, "chain_too_deep");
    assert!(words.contains("addressed you"), "{words}");
    // Those who answer one of its messages address an agent, too.
    let body = json!({"content": "What do you mean?", "reply_to_seq": seq + 2});
    person.says_this(&room, body).await;
    let said = two.says(&room, "This.").await;
    assert_eq!(alice.reads(&room, said).await["reply_chain_depth"], 1);
    let said = two.says(&room, "And unasked:").await;
    assert_eq!(alice.reads(&room, said).await["reply_chain_depth"], 0);
}

async fn agents_do_not_go_on_in_edits(setup: Setup) {
    let setup = setup.limit("agent_exchanges_without_person", 3);
    let server = setup.start().await;
    let (_, room, one, two) = two_agents(&server).await;
    let first = one.says(&room, "mine").await;
    let second = two.says(&room, "mine too").await;
    let edit = async |who: &Caller, seq: i64, n: usize| {
        let body = json!({"content": format!("edit {n} @{}", one.id())});
        who.patch(format!("/rooms/{room}/messages/{seq}"), body)
            .await
            .status
    };
    let mut edits = 0;
    for n in 0..20 {
        let (who, seq) = if n % 2 == 0 {
            (&one, first)
        } else {
            (&two, second)
        };
        edits += usize::from(edit(who, seq, n).await == 200);
    }
    // Two exchanges are left; whose word was the last may polish it.
    assert_eq!(edits, 2 + 9);
}
