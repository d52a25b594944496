//! SIGKILL in the middle of it all: what was answered is there.

use crate::harness::{Caller, Setup, both_engines, eventually};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

both_engines![
    every_201_is_there_after_kill_9,
    a_killed_server_keeps_all_of_its_order
];

const POSTERS: usize = 12;
const CRASHES: usize = 4;

/// Where the server is, as those who keep posting learn it.
type Server = Arc<Mutex<Caller>>;
/// What was answered with 201: the idempotency key, the content and the seq.
type Answered = Arc<Mutex<Vec<(String, String, i64)>>>;

async fn every_201_is_there_after_kill_9(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let here: Server = Arc::new(Mutex::new(alice.clone()));
    let answered = Answered::default();
    let stop = Arc::new(AtomicBool::new(false));
    let posters: Vec<_> = (0..POSTERS)
        .map(|poster| {
            let (here, answered, stop) = (here.clone(), answered.clone(), stop.clone());
            tokio::spawn(keep_posting(poster, room.clone(), here, answered, stop))
        })
        .collect();
    for crash in 1..=CRASHES {
        // Each crash comes after a different number of answers, wherever the others stand then.
        let enough = answered.lock().unwrap().len() + 7 * crash + 13;
        eventually("messages are posted", async || {
            (answered.lock().unwrap().len() >= enough).then_some(())
        })
        .await;
        server.kill9();
        server.restart().await;
        *here.lock().unwrap() = alice.at(&server);
    }
    stop.store(true, Ordering::Relaxed);
    for poster in posters {
        poster.await.unwrap();
    }

    let alice = alice.at(&server);
    let there = everything(&alice, &room).await;
    let last = *there.keys().last().unwrap();
    assert!(there.keys().copied().eq(1..=last), "no gaps and no doubles");
    assert_eq!(alice.latest_seq(&room).await, last);
    let answered = answered.lock().unwrap();
    for (_, content, seq) in answered.iter() {
        let message = there
            .get(seq)
            .unwrap_or_else(|| panic!("{seq} was answered and is lost"));
        assert_eq!(message["content"], *content);
    }
    let mut contents: Vec<_> = there
        .values()
        .filter(|m| m["type"] == "chat")
        .map(|m| m["content"].to_string())
        .collect();
    let posted = contents.len();
    contents.sort_unstable();
    contents.dedup();
    assert_eq!(
        contents.len(),
        posted,
        "a post that was sent again is one message"
    );
    assert_eq!(answered.len(), posted, "every post was answered in the end");
}

/// Posts one message after the other; one whose answer is lost is sent again under its key.
async fn keep_posting(
    poster: usize,
    room: String,
    here: Server,
    answered: Answered,
    stop: Arc<AtomicBool>,
) {
    for n in 0.. {
        let key = format!("{poster}-{n}");
        let content = format!("message {n} of poster {poster}");
        let seq = loop {
            let caller = here.lock().unwrap().clone();
            let post = caller.post(
                format!("/rooms/{room}/messages"),
                json!({"content": content}),
            );
            match post.header("idempotency-key", &key).attempt().await {
                Ok(reply) => break reply.created()["seq"].as_i64().unwrap(),
                Err(_) => tokio::task::yield_now().await,
            }
        };
        answered.lock().unwrap().push((key, content, seq));
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

async fn everything(caller: &Caller, room: &str) -> BTreeMap<i64, Value> {
    let mut all = BTreeMap::new();
    let mut since = 0;
    loop {
        let path = format!("/rooms/{room}/messages?since={since}&limit=200");
        let page = caller.get(path).await.ok();
        let messages = page["messages"].as_array().unwrap();
        let Some(last) = messages.last() else {
            return all;
        };
        since = last["seq"].as_i64().unwrap();
        for message in messages {
            let seq = message["seq"].as_i64().unwrap();
            assert!(
                all.insert(seq, message.clone()).is_none(),
                "{seq} is there twice"
            );
        }
    }
}

/// A reader that was cut off by the crash resumes, and has seen everything once.
async fn a_killed_server_keeps_all_of_its_order(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let start = alice.says(&room, "start").await;
    let mut events = alice.resumes(&room, &start.to_string()).await;
    let posters: Vec<_> = (0..6)
        .map(|_| {
            let (alice, room) = (alice.clone(), room.clone());
            tokio::spawn(async move {
                loop {
                    let path = format!("/rooms/{room}/messages");
                    let post = alice.post(&path, json!({"content": "x"})).attempt();
                    let Ok(reply) = post.await else { return };
                    let seq = reply.created()["seq"].as_i64().unwrap();
                    let path = format!("{path}/{seq}/reactions");
                    let react = alice.post(path, json!({"emoji": "👍"})).attempt();
                    if react.await.is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    let mut seen = Vec::new();
    while seen.len() < 60 {
        seen.push(events.event().await.1);
    }
    server.kill9();
    while let Some(frame) = events.next_or_end().await {
        seen.extend(frame.id.filter(|_| frame.data.is_some()));
    }
    for poster in posters {
        poster.await.unwrap();
    }
    server.restart().await;
    let alice = alice.at(&server);
    let end = alice.says(&room, "end").await.to_string();
    let mut rest = alice.resumes(&room, seen.last().unwrap()).await;
    while seen.last() != Some(&end) {
        seen.push(rest.event().await.1);
    }
    let mut again = alice.resumes(&room, &start.to_string()).await;
    let mut from_the_start = Vec::new();
    while from_the_start.last() != Some(&end) {
        from_the_start.push(again.event().await.1);
    }
    assert_eq!(
        seen, from_the_start,
        "what was seen live is what the log holds"
    );
}
