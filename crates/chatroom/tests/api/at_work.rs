//! Agents at work: seen, stopped, asked again, allowed and paid for.

use crate::harness::{
    Agent, Caller, Setup, TestServer, agent_id, both_engines, eventually, one_engine,
};
use serde_json::{Value, json};

one_engine![
    what_a_member_does_is_seen_by_readers_and_by_those_who_come_later,
    a_state_ends_with_the_message_and_with_the_membership,
    a_person_is_seen_to_type_and_keeps_their_words,
    an_agent_that_is_called_thinks_and_then_writes,
    what_an_answer_cost_is_read_from_an_agents_stream,
];

both_engines![
    a_call_that_is_stopped_is_over_and_posts_nothing,
    an_agent_that_reads_is_told_to_stop_over_a_restart_too,
    a_message_is_answered_anew,
    a_consent_is_asked_seen_and_decided_once,
    a_consent_survives_a_restart_expires_and_goes_with_its_agent,
    an_answer_that_is_stopped_takes_its_questions_back_and_no_others,
    what_an_answer_cost_stays_with_it_and_is_summed_up,
    a_policy_decides_what_wakes_an_agent,
    a_budget_that_is_used_up_is_told_once,
];

/// A person who signed in.
pub async fn signed_in(server: &TestServer, user: &str) -> Caller {
    let person = server.user_of_type(user, "access");
    let traded = person.post_nothing("/auth/exchange").await.created();
    person.with_token(traded["identity_token"].as_str().unwrap())
}

/// A room of Alice's with an agent that she invited.
pub async fn room_with_agent(server: &TestServer) -> (Caller, String, Agent) {
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let otter = alice.lets_in(&room, &agent_id("curious_otter")).await;
    (alice, room, otter)
}

/// Posts what the caller does.
pub async fn types(caller: &Caller, room: &str, body: Value) -> Value {
    let path = format!("/rooms/{room}/typing");
    caller.post(path, body).await.ok()
}

async fn what_a_member_does_is_seen_by_readers_and_by_those_who_come_later(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let seq = alice.says(&room, "What is the weather?").await;
    let mut plain = alice.listens(&room).await;
    let mut watching = alice.listens_with(&room, "?deltas=1").await;
    let told = types(
        &otter,
        &room,
        json!({"state": "thinking", "reply_to_seq": seq, "activity": "web_search"}),
    )
    .await;
    assert_eq!(told, json!({"ok": true, "stop": false}));
    let seen = plain.ephemeral("agent_typing").await;
    assert_eq!(seen["user_id"], otter.id());
    assert_eq!(
        (&seen["state"], &seen["activity"], &seen["typing"]),
        (&json!("thinking"), &json!("web_search"), &json!(true))
    );
    assert_eq!(
        (&seen["role_class"], &seen["reply_to_seq"]),
        (&json!("agent"), &json!(seq))
    );
    let since = seen["since"].as_i64().unwrap();
    assert!(
        (0..=5).contains(&(crate::harness::now() - since)),
        "{since}"
    );

    let writing = json!({"state": "writing", "reply_to_seq": seq, "text": "It **rai"});
    types(&otter, &room, writing).await;
    assert_eq!(watching.ephemeral("agent_delta").await["text"], "It **rai");
    let seen = plain.ephemeral("agent_typing").await;
    assert_eq!(
        (&seen["state"], &seen["since"]),
        (&json!("writing"), &json!(since))
    );

    let mut late = alice.listens_with(&room, "?deltas=1").await;
    assert_eq!(late.ephemeral("agent_typing").await["state"], "writing");
    assert_eq!(late.ephemeral("agent_delta").await["text"], "It **rai");

    types(&otter, &room, json!({"state": "idle"})).await;
    let seen = plain.ephemeral("agent_typing").await;
    assert_eq!(
        (&seen["typing"], &seen["reason"], &seen["reply_to_seq"]),
        (&json!(false), &json!("done"), &json!(seq))
    );
    // Nothing of it is in the log.
    assert_eq!(alice.latest_seq(&room).await, seq);
    let after = alice.says(&room, "Never mind").await;
    assert_eq!(plain.expect("message").await["seq"], after);
}

async fn a_state_ends_with_the_message_and_with_the_membership(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let seq = alice.says(&room, "Well?").await;
    let mut reading = alice.listens(&room).await;
    types(
        &otter,
        &room,
        json!({"state": "thinking", "reply_to_seq": seq}),
    )
    .await;
    reading.ephemeral("agent_typing").await;
    otter
        .says_this(&room, json!({"content": "Well.", "reply_to_seq": seq}))
        .await;
    assert_eq!(reading.ephemeral("agent_typing").await["reason"], "posted");
    types(&otter, &room, json!({"state": "thinking"})).await;
    reading.ephemeral("agent_typing").await;
    alice
        .delete(format!("/rooms/{room}/members/{}", otter.id()))
        .await
        .ok();
    assert_eq!(reading.ephemeral("agent_typing").await["reason"], "left");
    let path = format!("/rooms/{room}/typing");
    otter
        .post(path, json!({"state": "thinking"}))
        .await
        .refused(401, "key_invalid");

    // Nobody works for ever: what is not said again is over after a while.
    let heron = alice.lets_in(&room, "quiet_heron-7e2bd401").await;
    types(&heron, &room, json!({"state": "thinking"})).await;
    reading.ephemeral("agent_typing").await;
    assert_eq!(reading.ephemeral("agent_typing").await["reason"], "silent");
}

async fn a_person_is_seen_to_type_and_keeps_their_words(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let mut reading = otter.listens(&room).await;
    let person = signed_in(&server, "u_alice").await;
    types(&person, &room, json!({"state": "writing"})).await;
    let seen = reading.ephemeral("agent_typing").await;
    assert_eq!(
        (&seen["role_class"], &seen["user_id"]),
        (&json!("human"), &json!("u_alice"))
    );
    let guest = alice.lets_in_a_person(&room, "grace").await;
    types(&guest, &room, json!({"state": "writing"})).await;
    assert_eq!(
        reading.ephemeral("agent_typing").await["role_class"],
        "human"
    );
    let path = format!("/rooms/{room}/typing");
    let words = json!({"state": "writing", "text": "My sec"});
    person.post(path, words).await.refused(400, "bad_request");
}

async fn an_agent_that_is_called_thinks_and_then_writes(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, _agent) = crate::fanout::world(&server, "slow").await;
    let mut reading = alice.listens(&room).await;
    let seq = alice.says(&room, "Hello").await;
    for (state, typing) in [("thinking", true), ("writing", true), ("idle", false)] {
        let seen = reading.ephemeral("agent_typing").await;
        assert_eq!(
            (&seen["state"], &seen["typing"]),
            (&json!(state), &json!(typing))
        );
        assert_eq!(
            (&seen["user_id"], &seen["reply_to_seq"]),
            (&json!("u_bob"), &json!(seq))
        );
    }
}

async fn a_call_that_is_stopped_is_over_and_posts_nothing(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = crate::fanout::world(&server, "hang").await;
    let carol = server.user("u_carol");
    alice.lets_in_user(&room, &carol).await;
    let mut reading = alice.listens(&room).await;
    let seq = carol.says(&room, "Hello").await;
    assert_eq!(reading.ephemeral("agent_typing").await["state"], "thinking");
    // A call that is stopped on its way does not reach the agent.
    agent.seqs(1).await;
    // Whoever asked may stop it.
    let path = format!("/rooms/{room}/members/u_bob/stop");
    let stopped = carol.post(&path, json!({"reply_to_seq": seq})).await.ok();
    assert_eq!(
        stopped,
        json!({"ok": true, "stopped": true, "reply_to_seq": seq})
    );
    let seen = reading.ephemeral("agent_typing").await;
    assert_eq!(
        (&seen["typing"], &seen["reason"], &seen["by_user_id"]),
        (&json!(false), &json!("stopped"), &json!("u_carol"))
    );
    // It goes on with the next message, unpunished, and is not called for this one again.
    agent.replies("hello").await;
    let next = alice.says(&room, "And now?").await;
    crate::fanout::answer(&alice, &room, next).await;
    assert_eq!(agent.seqs(2).await, [seq, next]);
    let bob = alice.sees_member(&room, "u_bob").await.unwrap();
    assert_eq!(
        (&bob["key_stale"], &bob["last_error"]),
        (&json!(false), &Value::Null)
    );
    let again = alice.post(&path, json!({"reply_to_seq": seq})).await.ok();
    assert_eq!(again["stopped"], false, "there is nothing to stop any more");
}

async fn an_agent_that_reads_is_told_to_stop_over_a_restart_too(setup: Setup) {
    let mut server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let seq = alice.says(&room, "Count to a million").await;
    let mut own = otter.listens(&room).await;
    let mut other = alice.listens(&room).await;
    let thinking = json!({"state": "thinking", "reply_to_seq": seq});
    types(&otter, &room, thinking.clone()).await;
    other.ephemeral("agent_typing").await;
    let path = format!("/rooms/{room}/members/{}/stop", otter.id());
    let stopped = alice.post(&path, json!({})).await.ok();
    assert_eq!(
        stopped,
        json!({"ok": true, "stopped": true, "reply_to_seq": seq})
    );
    let told = own.ephemeral("agent_stop").await;
    assert_eq!(
        (&told["reply_to_seq"], &told["by_user_id"]),
        (&json!(seq), &json!("u_alice"))
    );
    // To readers it is stopped, whatever it goes on saying until it has heard of it.
    assert_eq!(other.ephemeral("agent_typing").await["reason"], "stopped");
    server.kill9();
    server.restart().await;
    let (alice, otter) = (alice.at(&server), otter.caller.at(&server));
    let told = types(&otter, &room, thinking.clone()).await;
    assert_eq!(
        told,
        json!({"ok": true, "stop": true, "stopped_by": "u_alice"})
    );
    // The next message is another matter, and so is the same one once it is wanted again.
    let next = alice.says(&room, "Count to three").await;
    let told = types(
        &otter,
        &room,
        json!({"state": "thinking", "reply_to_seq": next}),
    )
    .await;
    assert_eq!(told["stop"], false);
    let retry = format!("/rooms/{room}/messages/{seq}/retry");
    alice.post(retry, json!({})).await.ok();
    assert_eq!(types(&otter, &room, thinking).await["stop"], false);
}

async fn a_message_is_answered_anew(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, agent) = crate::fanout::world(&server, "silent").await;
    let otter = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let mut own = otter.listens(&room).await;
    let first = alice.says(&room, "A question").await;
    let second = alice.says(&room, "Another one").await;
    agent.seqs(2).await;
    agent.replies("hello").await;
    let path = format!("/rooms/{room}/messages/{first}/retry");
    eventually("the lane is past the message", async || {
        let reply = alice.post(&path, json!({})).await;
        (reply.json()["called"] == json!(["u_bob"])).then_some(())
    })
    .await;
    let told = own.ephemeral("agent_retry").await;
    assert_eq!(
        (&told["seq"], &told["by_user_id"]),
        (&json!(first), &json!("u_alice"))
    );
    crate::fanout::answer(&alice, &room, first).await;
    assert_eq!(agent.seqs(3).await, [first, second, first]);
    // It is no step back: the next message comes next.
    let third = alice.says(&room, "A third").await;
    crate::fanout::answer(&alice, &room, third).await;
    // A retry that fails is over, and hurts nobody.
    agent.replies("status=500").await;
    let only = json!({"user_id": "u_bob"});
    let called = alice.post(&path, only.clone()).await.ok();
    assert_eq!(
        (&called["called"], &called["told"]),
        (&json!(["u_bob"]), &json!([]))
    );
    eventually("it was called and may be again", async || {
        let calls = agent.calls().await.len();
        let reply = alice.post(&path, only.clone()).await;
        (calls >= 5 && reply.status == 200).then_some(())
    })
    .await;
    let bob = alice.sees_member(&room, "u_bob").await.unwrap();
    assert_eq!(bob["key_stale"], false);
    alice
        .delete(format!("/rooms/{room}/messages/{first}"))
        .await
        .ok();
    alice.post(&path, json!({})).await.refused(404, "not_found");
}

async fn a_consent_is_asked_seen_and_decided_once(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let bob = server.user("u_bob");
    alice.lets_in_user(&room, &bob).await;
    let mut reading = bob.listens(&room).await;
    let ask = json!({"tool": "write_file", "summary": "Writes notes.md", "detail": "+ secret",
                     "reply_to_seq": 1, "ttl_seconds": 600});
    let path = format!("/rooms/{room}/consents");
    let send = || {
        otter
            .post(&path, ask.clone())
            .header("idempotency-key", "0123456789abcdef")
    };
    let asked = send().await.created();
    assert_eq!(
        send().await.created(),
        asked,
        "asked once, however often it is sent"
    );
    let id = asked["consent_id"].as_str().unwrap().to_owned();
    let told = reading.expect("consent_updated").await;
    assert_eq!(
        (&told["state"], &told["tool"]),
        (&json!("open"), &json!("write_file"))
    );
    assert_eq!(told["owner_user_id"], "u_alice");
    for hidden in ["summary", "detail", "reason"] {
        assert_eq!(told[hidden], Value::Null, "{hidden} is the owner's to see");
    }
    let one = format!("{path}/{id}");
    assert_eq!(bob.get(&one).await.ok()["detail"], Value::Null);
    let person = signed_in(&server, "u_alice").await;
    let seen = person.get(format!("{path}?state=open")).await.ok();
    let seen = &seen["consents"][0];
    assert_eq!(
        (&seen["detail"], &seen["mine_to_decide"]),
        (&json!("+ secret"), &json!(true))
    );
    let yes = json!({"decision": "always", "reason": "Fine"});
    let decided = person.post(&one, yes).await.ok();
    assert_eq!(
        (&decided["state"], &decided["decided_by"]),
        (&json!("always"), &json!("u_alice"))
    );
    let told = reading.expect("consent_updated").await;
    assert_eq!(
        (&told["state"], &told["reason"]),
        (&json!("always"), &Value::Null)
    );
    let again = json!({"decision": "deny"});
    person
        .post(&one, again)
        .await
        .refused(409, "already_decided");
    let read = otter.get(&one).await.ok();
    assert_eq!(
        (&read["state"], &read["reason"]),
        (&json!("always"), &json!("Fine"))
    );
    otter.delete(&one).await.refused(409, "already_decided");
    assert_eq!(
        bob.get(format!("{path}?state=open")).await.ok()["consents"],
        json!([])
    );
    // Whoever comes later reads it in the log.
    let mut late = bob.resumes(&room, "0").await;
    loop {
        let (name, _, data) = late.event().await;
        if name == "consent_updated" && data["state"] == "always" {
            break;
        }
    }
}

async fn a_consent_survives_a_restart_expires_and_goes_with_its_agent(setup: Setup) {
    let mut server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let path = format!("/rooms/{room}/consents");
    let ask = json!({"tool": "bash", "summary": "Lists files", "ttl_seconds": 10});
    let short = otter.post(&path, ask.clone()).await.created();
    server.kill9();
    server.restart().await;
    let (alice, otter) = (alice.at(&server), otter.caller.at(&server));
    let mut reading = alice.listens(&room).await;
    let ask = json!({"tool": "bash", "summary": "Lists files"});
    let long = otter.post(&path, ask.clone()).await.created();
    assert_eq!(
        reading.expect("consent_updated").await["consent_id"],
        long["consent_id"]
    );
    let back = otter.post(&path, ask.clone()).await.created();
    reading.expect("consent_updated").await;
    let back = format!("{path}/{}", back["consent_id"].as_str().unwrap());
    assert_eq!(otter.delete(&back).await.ok()["state"], "withdrawn");
    assert_eq!(otter.delete(&back).await.ok()["state"], "withdrawn");
    assert_eq!(
        reading.expect("consent_updated").await["state"],
        "withdrawn"
    );
    // Asked before the restart, and nobody answered.
    let told = reading.expect("consent_updated").await;
    assert_eq!(
        (&told["state"], &told["consent_id"]),
        (&json!("expired"), &short["consent_id"])
    );
    let person = signed_in(&server, "u_alice").await;
    let one = format!("{path}/{}", short["consent_id"].as_str().unwrap());
    let late = json!({"decision": "allow"});
    person.post(one, late).await.refused(409, "already_decided");
    alice
        .delete(format!("/rooms/{room}/members/{}", otter.id()))
        .await
        .ok();
    let told = reading.expect("consent_updated").await;
    assert_eq!(
        (&told["state"], &told["consent_id"]),
        (&json!("withdrawn"), &long["consent_id"])
    );
}

async fn an_answer_that_is_stopped_takes_its_questions_back_and_no_others(setup: Setup) {
    let server = setup.shared().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let path = format!("/rooms/{room}/consents");
    let mut asked = Vec::new();
    for words in ["one", "two"] {
        let seq = alice.says(&room, words).await;
        let ask = json!({"tool": "bash", "summary": "Lists files", "reply_to_seq": seq});
        let consent = otter.post(&path, ask).await.created();
        let one = format!("{path}/{}", consent["consent_id"].as_str().unwrap());
        asked.push((seq, one));
    }
    let [(first, one), (_, other)] = &asked[..] else {
        panic!("{asked:?}")
    };
    let stop = format!("/rooms/{room}/members/{}/stop", otter.id());
    let stopped = alice.post(&stop, json!({"reply_to_seq": first})).await.ok();
    assert_eq!(stopped["stopped"], true);
    assert_eq!(otter.get(one).await.ok()["state"], "withdrawn");
    assert_eq!(otter.get(other).await.ok()["state"], "open");
    assert_eq!(
        otter.delete(one).await.ok()["state"],
        "withdrawn",
        "as good"
    );
}

async fn what_an_answer_cost_stays_with_it_and_is_summed_up(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, otter) = room_with_agent(&server).await;
    let mut reading = alice.listens(&room).await;
    let usage = json!({"model": "gpt-9", "input_tokens": 1200, "output_tokens": 34,
                       "cost_usd": 0.0125, "seconds": 2.5, "tools": ["web_search"]});
    let cheap = json!({"output_tokens": 6, "cost_usd": 0.0025});
    let seq = otter
        .says_this(&room, json!({"content": "It rains.", "usage": usage}))
        .await;
    otter
        .says_this(&room, json!({"content": "Still.", "usage": cheap}))
        .await;
    otter.says(&room, "For nothing.").await;
    assert_eq!(reading.expect("message").await["usage"], usage);
    assert_eq!(alice.reads(&room, seq).await["usage"], usage);
    let mine = alice.get("/usage?days=1").await.ok();
    let report = otter.get(format!("/rooms/{room}/usage")).await.ok();
    assert_eq!(mine["usage"], report["usage"]);
    let row = &report["usage"][0];
    assert_eq!(row["user_id"], otter.id());
    assert_eq!(
        (&row["turns"], &row["input_tokens"]),
        (&json!(2), &json!(1200))
    );
    assert_eq!(row["output_tokens"], 40);
    assert!((row["cost_usd"].as_f64().unwrap() - 0.015).abs() < 1e-9);
    assert_eq!(report["usage"].as_array().unwrap().len(), 1);
    assert_eq!(
        server.user("u_else").get("/usage").await.ok()["usage"],
        json!([])
    );
    // What is deleted says nothing any more; what it cost was spent.
    otter
        .delete(format!("/rooms/{room}/messages/{seq}"))
        .await
        .ok();
    assert_eq!(alice.reads(&room, seq).await["usage"], Value::Null);
    let report = alice.get(format!("/rooms/{room}/usage")).await.ok();
    assert_eq!(report["usage"][0]["turns"], 2);
}

async fn what_an_answer_cost_is_read_from_an_agents_stream(setup: Setup) {
    let server = setup.shared().await;
    let raw = "raw=data: {\"text\":\"Hi\"}\n\n\
        data: {\"type\":\"usage\",\"model\":\"gpt-9\",\"input_tokens\":-5,\"output_tokens\":7}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"cost\":1e300}}\n\ndata: [DONE]\n\n";
    let (alice, room, _agent) = crate::fanout::world(&server, raw).await;
    let seq = alice.says(&room, "Hello").await;
    let answer = crate::fanout::answer(&alice, &room, seq).await;
    assert_eq!(answer["content"], "Hi");
    let usage = &answer["usage"];
    assert_eq!(
        (&usage["model"], &usage["input_tokens"]),
        (&json!("gpt-9"), &json!(9))
    );
    assert_eq!(
        (&usage["output_tokens"], &usage["cost_usd"]),
        (&json!(7), &Value::Null)
    );
    assert!(usage["seconds"].as_f64().is_some());
    let report = alice.get(format!("/rooms/{room}/usage")).await.ok();
    assert_eq!(
        (
            &report["usage"][0]["user_id"],
            &report["usage"][0]["input_tokens"]
        ),
        (&json!("u_bob"), &json!(9))
    );
}

/// Waits until the server has decided about every message to Bob up to this one: a policy or a budget
/// that comes later then changes nothing for them.
async fn is_passed_over(server: &TestServer, seq: i64) {
    let decided =
        format!("SELECT COUNT(*) FROM deliveries WHERE user_id = 'u_bob' AND next_seq > {seq}");
    eventually("all of it is passed over", async || {
        (server.count(&decided).await == 1).then_some(())
    })
    .await;
}

async fn a_policy_decides_what_wakes_an_agent(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, agent) = crate::fanout::world(&server, "silent").await;
    let wake = format!("/rooms/{room}/members/u_bob/wake");
    alice.put(&wake, json!({"wake": "mentions"})).await.ok();
    alice.says(&room, "To nobody").await;
    let asked = alice.says(&room, "@u_bob what now?").await;
    assert_eq!(agent.seqs(1).await, [asked]);
    // Threads it takes part in wake it too, where both policies let them.
    alice.put(&wake, json!({"wake": "threads"})).await.ok();
    let reply = json!({"content": "More of the same", "reply_to_seq": asked});
    let in_thread = alice.says_this(&room, reply).await;
    assert_eq!(agent.seqs(2).await, [asked, in_thread]);
    let view = server
        .user("u_bob")
        .put(&wake, json!({"wake": "nothing"}))
        .await
        .ok();
    assert_eq!(
        (
            &view["effective"]["wake"],
            &view["room"]["wake"],
            &view["own"]["wake"]
        ),
        (&json!("nothing"), &json!("threads"), &json!("nothing"))
    );
    let unheard = alice.says(&room, "@u_bob are you there?").await;
    is_passed_over(&server, unheard).await;
    server
        .user("u_bob")
        .put(&wake, json!({"wake": "everything"}))
        .await
        .ok();
    let last = alice.says(&room, "@u_bob and now?").await;
    let seqs = agent.seqs(3).await;
    assert_eq!(
        seqs.last(),
        Some(&last),
        "what did not wake it is passed over: {seqs:?}"
    );
    let bob = alice.sees_member(&room, "u_bob").await.unwrap();
    assert_eq!(bob["wake"]["wake"], "threads");
    assert_eq!(
        alice.sees_member(&room, "u_alice").await.unwrap()["wake"],
        Value::Null
    );
}

async fn a_budget_that_is_used_up_is_told_once(setup: Setup) {
    let server = setup.start().await;
    let (alice, room, agent) = crate::fanout::world(&server, "hello").await;
    let otter = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let notices = async || {
        let path = format!("/rooms/{room}/messages?limit=200");
        let page = alice.get(path).await.ok();
        let messages = page["messages"].as_array().unwrap().iter();
        let told = messages.filter(|message| {
            let content = message["content"].as_str().unwrap();
            message["type"] == "system" && content.contains("used up its budget")
        });
        told.count()
    };
    // One that the server calls: two answers, and not one call more.
    let wake = format!("/rooms/{room}/members/u_bob/wake");
    alice.put(&wake, json!({"budget": {"turns": 2}})).await.ok();
    for n in 0..2 {
        let seq = alice.says(&room, &format!("Question {n}")).await;
        crate::fanout::answer(&alice, &room, seq).await;
    }
    eventually("the room is told", async || {
        (notices().await == 1).then_some(())
    })
    .await;
    let view = alice.get(&wake).await.ok();
    assert_eq!(
        (&view["used_up"], &view["spent"]["turns"]),
        (&json!(true), &json!(2))
    );
    let unasked = alice.says(&room, "Question 3").await;
    // One that reads: what it says beyond its budget is refused.
    let path = format!("/rooms/{room}/members/{}/wake", otter.id());
    otter
        .put(&path, json!({"budget": {"tokens": 100, "cost_usd": 5}}))
        .await
        .ok();
    let usage = json!({"input_tokens": 90, "output_tokens": 20});
    otter
        .says_this(&room, json!({"content": "Dear.", "usage": usage}))
        .await;
    let messages = format!("/rooms/{room}/messages");
    let refused = otter.post(&messages, json!({"content": "More."})).await;
    assert!(refused.header("retry-after").is_some());
    let words = refused.refused(429, "budget_used_up");
    assert!(words.contains("Try again in"), "{words}");
    assert_eq!(notices().await, 2, "once for each");
    // More may be spent, and it goes on.
    otter
        .put(&path, json!({"budget": {"tokens": 1000}}))
        .await
        .ok();
    let last = otter.says(&room, "Thank you.").await;
    // Else what was said before is answered with what is added now.
    is_passed_over(&server, last).await;
    let raised = alice.put(&wake, json!({"budget": {"turns": 3}})).await.ok();
    assert_eq!(raised["used_up"], false);
    let seq = alice.says(&room, "Question 4").await;
    crate::fanout::answer(&alice, &room, seq).await;
    assert!(
        !agent.seqs(3).await.contains(&unasked),
        "it was passed over"
    );
    assert_eq!(notices().await, 2, "the room knows since today");
}
