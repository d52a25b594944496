//! Resuming the stream: from any place exactly the rest, or word that the place is too far off.

use crate::{
    harness::{Caller, Events, Setup, both_engines, eventually, one_engine},
    stream::messages,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_engines![
    a_cursor_in_the_header_or_the_query_resumes,
    resuming_at_any_place_gives_exactly_the_rest,
    resuming_works_over_a_restart,
    a_deleted_text_is_not_in_the_replay,
    a_cursor_ahead_of_the_room_gets_a_resync,
    a_cursor_too_many_messages_behind_gets_a_resync,
    a_cursor_older_than_the_events_kept_gets_a_resync,
    after_a_resync_the_stream_goes_on,
];

one_engine![what_is_no_cursor_is_refused];

async fn a_cursor_in_the_header_or_the_query_resumes(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "one").await;
    alice.says(&room, "two").await;
    let path = format!("/rooms/{room}/stream");
    for request in [
        alice.get(&path).header("last-event-id", &seq.to_string()),
        alice.get(format!("{path}?since={seq}")),
        // A browser that reconnects repeats the query and adds the header, which is newer.
        alice
            .get(format!("{path}?since=0"))
            .header("last-event-id", &seq.to_string()),
    ] {
        let mut events = Events::open(request).await;
        assert_eq!(events.expect("message").await["content"], "two");
    }
    let mut events = Events::open(alice.get(format!("{path}?since=0"))).await;
    assert_eq!(events.expect("message").await["seq"], 1);
}

/// A little of everything; gives the events as a reader from the beginning sees them.
async fn a_little_of_everything(alice: &Caller, room: &str) -> Vec<(String, String, Value)> {
    let start = alice.latest_seq(room).await;
    let mut events = alice.resumes(room, &start.to_string()).await;
    let mut count = 0;
    for n in 0..4 {
        let seq = alice.says(room, &format!("message {n}")).await;
        let path = format!("{}/{seq}", messages(room));
        alice
            .post(format!("{path}/reactions"), json!({"emoji": "👍"}))
            .await
            .ok();
        alice
            .patch(&path, json!({"content": format!("edited {n}")}))
            .await
            .ok();
        alice.delete(format!("{path}/reactions/👍")).await.ok();
        count += 4;
    }
    alice
        .patch(
            format!("/rooms/{room}/rules"),
            json!({"content": "Be kind."}),
        )
        .await
        .ok();
    alice.says(room, "the end").await;
    count += 3;
    let mut seen = Vec::new();
    for _ in 0..count {
        seen.push(events.event().await);
    }
    assert_eq!(seen.last().unwrap().2["content"], "the end");
    seen
}

async fn resuming_at_any_place_gives_exactly_the_rest(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let all = a_little_of_everything(&alice, &room).await;
    let names_and_ids = |events: &[(String, String, Value)]| -> Vec<(String, String)> {
        events
            .iter()
            .map(|(name, id, _)| (name.clone(), id.clone()))
            .collect()
    };
    let ids: BTreeSet<_> = all.iter().map(|(_, id, _)| id).collect();
    assert_eq!(ids.len(), all.len(), "every event has a place of its own");
    for (at, (_, cursor, _)) in all.iter().enumerate() {
        let rest = &all[at + 1..];
        let mut events = alice.resumes(&room, cursor).await;
        let mut seen = Vec::new();
        for _ in rest {
            seen.push(events.event().await);
        }
        assert_eq!(names_and_ids(&seen), names_and_ids(rest), "after {cursor}");
        for ((name, _, told), (_, _, live)) in seen.iter().zip(rest) {
            if matches!(
                name.as_str(),
                "reaction_added" | "reaction_removed" | "rules_updated"
            ) {
                assert_eq!(told, live);
            } else {
                assert_eq!(told["seq"], live["seq"]);
            }
        }
        if at % 5 == 0 {
            let marker = format!("after {cursor}");
            alice.says(&room, &marker).await;
            // What was said for earlier markers comes first.
            while events.expect("message").await["content"] != marker {}
        }
    }
}

async fn resuming_works_over_a_restart(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let all = a_little_of_everything(&alice, &room).await;
    server.kill9();
    server.restart().await;
    let alice = alice.at(&server);
    let mut events = alice.resumes(&room, &all[2].1).await;
    for (name, id, _) in &all[3..] {
        let (seen_name, seen_id, _) = events.event().await;
        assert_eq!((&seen_name, &seen_id), (name, id));
    }
    alice.says(&room, "live again").await;
    assert_eq!(events.expect("message").await["content"], "live again");
}

async fn a_deleted_text_is_not_in_the_replay(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let start = alice.says(&room, "start").await;
    let seq = alice.says(&room, "my password is hunter2").await;
    let path = format!("{}/{seq}", messages(&room));
    alice
        .patch(&path, json!({"content": "my password is hunter3"}))
        .await
        .ok();
    alice.delete(&path).await.ok();
    alice.says(&room, "end").await;
    let mut events = alice.resumes(&room, &start.to_string()).await;
    loop {
        let frame = events.next().await;
        let data = frame.data.unwrap_or_default();
        assert!(!data.contains("hunter"), "{data}");
        if data.contains("\"end\"") {
            break;
        }
    }
}

async fn resynced(events: &mut Events, room: &str) -> (Value, String) {
    let (event, id, data) = events.event().await;
    assert_eq!(event, "resync");
    assert_eq!(data["room_id"], room);
    assert!(!data["reason"].as_str().unwrap().is_empty());
    (data, id)
}

async fn a_cursor_ahead_of_the_room_gets_a_resync(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    for ahead in [
        format!("{}", seq + 1),
        format!("{seq}.1"),
        "9000000000".into(),
    ] {
        let mut events = alice.resumes(&room, &ahead).await;
        let (data, id) = resynced(&mut events, &room).await;
        assert_eq!((&data["latest_seq"], id), (&json!(seq), seq.to_string()));
    }
}

async fn a_cursor_too_many_messages_behind_gets_a_resync(setup: Setup) {
    let server = setup.env("STREAM__REPLAY_LIMIT", "3").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let first = alice.says(&room, "0").await;
    for n in 1..=4 {
        alice.says(&room, &n.to_string()).await;
    }
    let mut behind = alice.resumes(&room, &first.to_string()).await;
    let (data, _) = resynced(&mut behind, &room).await;
    assert_eq!(data["latest_seq"], first + 4);
    let mut near = alice.resumes(&room, &(first + 1).to_string()).await;
    assert_eq!(near.expect("message").await["content"], "2");
}

async fn a_cursor_older_than_the_events_kept_gets_a_resync(setup: Setup) {
    let mut server = setup.env("STREAM__RETAIN_EVENTS", "5").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "hello").await;
    let reactions = format!("{}/{seq}/reactions", messages(&room));
    let emoji: Vec<String> = (0..18).map(|n| format!("e{n}")).collect();
    for emoji in &emoji {
        alice.post(&reactions, json!({"emoji": emoji})).await.ok();
    }
    // Events are dropped now and then, and at a start.
    server.restart().await;
    let alice = alice.at(&server);
    let oldest = format!("{seq}.1");
    eventually("the oldest events are dropped", async || {
        let mut events = alice.resumes(&room, &oldest).await;
        // A stream that was opened while they were dropped ends, rather than serve a hole.
        while let Some(frame) = events.next_or_end().await {
            if let Some(event) = frame.event {
                return (event == "resync").then_some(());
            }
        }
        None
    })
    .await;
    let newest = format!("{seq}.17");
    let mut events = alice.resumes(&room, &newest).await;
    assert_eq!(events.expect("reaction_added").await["emoji"], "e17");
}

async fn after_a_resync_the_stream_goes_on(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "old").await;
    let mut events = alice.resumes(&room, "77").await;
    let (_, id) = resynced(&mut events, &room).await;
    alice.says(&room, "new").await;
    assert_eq!(events.expect("message").await["content"], "new");
    let mut resumed = alice.resumes(&room, &id).await;
    assert_eq!(resumed.expect("message").await["content"], "new");
}

async fn what_is_no_cursor_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/stream");
    for bad in ["x", "-1", "1.2.3", "1.", "99999999999999999999"] {
        let reply = alice.get(format!("{path}?since={bad}")).await;
        reply.refused(400, "bad_request");
        let reply = alice.get(&path).header("last-event-id", bad).await;
        reply.refused(400, "bad_request");
    }
}
