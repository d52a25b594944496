//! Agents that misbehave: what they cost the server, and the others in their room.

use crate::{
    fanout::{is_stale, setup_quick, world},
    harness::{Caller, PushAgent, Setup, both_engines, eventually, one_engine},
};
use serde_json::{Value, json};

both_engines![bad_agents_cost_the_healthy_one_nothing];

#[cfg(target_os = "linux")]
one_engine![a_gigabyte_of_an_answer_costs_no_memory];

/// What the server may grow by while an agent floods it. An answer is read up to a megabyte.
#[cfg(target_os = "linux")]
const FEW_MEGABYTES_IN_KB: u64 = 8 * 1024;

#[cfg(target_os = "linux")]
async fn a_gigabyte_of_an_answer_costs_no_memory(setup: Setup) {
    let server = setup_quick(setup).start().await;
    for flood in ["flood", "endless"] {
        let (alice, room, agent) = world(&server, flood).await;
        let before = server.resident_kb();
        let seq = alice.says(&room, "Hello").await;
        let mut most = before;
        let member = loop {
            most = most.max(server.resident_kb());
            let member = alice.sees_member(&room, "u_bob").await.unwrap();
            if member["key_stale"] == true {
                break member;
            }
        };
        let grown = most - before;
        assert!(grown < FEW_MEGABYTES_IN_KB, "{flood}: {grown} KB more");
        assert_eq!(agent.calls().await.len(), 5, "{flood}");
        let error = member["last_error"].as_str().unwrap();
        assert!(
            error.contains("more than 1048576 bytes"),
            "{flood}: {error}"
        );
        assert_eq!(alice.latest_seq(&room).await, seq, "nothing was posted");
    }
}

/// One that hangs, one that floods, one whose line never ends, one that resets and one that sends
/// broken text are in a room with one that answers.
async fn bad_agents_cost_the_healthy_one_nothing(setup: Setup) {
    let server = setup_quick(setup).start().await;
    let (alice, room, hanging) = world(&server, "hang").await;
    let depth = json!({"max_reply_chain_depth": 1});
    alice.patch(format!("/rooms/{room}"), depth).await.ok();
    let mut agents = Vec::new();
    for reply in ["flood", "endless", "reset", "broken", "always"] {
        let agent = PushAgent::start(reply);
        let user = server.user(&format!("u_{reply}"));
        agent.joins_as(&alice, &room, &user).await;
        agents.push(agent);
    }
    for _ in 0..3 {
        let seq = alice.says(&room, "Hello").await;
        let said = answer_of(&alice, &room, seq, "u_always").await;
        assert_eq!(said["content"], format!("An answer to {seq}"));
        let said = answer_of(&alice, &room, seq, "u_broken").await;
        assert!(said["content"].as_str().unwrap().contains('\u{fffd}'));
    }
    for user in ["u_flood", "u_endless", "u_reset"] {
        is_stale(&alice, &room, user).await;
    }
    assert_eq!(hanging.calls().await.len(), 1);
    let waiting = alice.sees_member(&room, "u_bob").await.unwrap();
    assert_eq!(waiting["key_stale"], false);
}

/// Waits for what this member answers to a message.
async fn answer_of(caller: &Caller, room: &str, seq: i64, user: &str) -> Value {
    eventually("an answer", async || {
        let path = format!("/rooms/{room}/messages?since={seq}&sender_user_id={user}");
        let page = caller.get(path).await.ok();
        let mut messages = page["messages"].as_array().unwrap().iter();
        messages.find(|m| m["reply_to_seq"] == seq).cloned()
    })
    .await
}
