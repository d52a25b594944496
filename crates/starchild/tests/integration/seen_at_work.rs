//! Answers are seen as they are written: the backends that have no test of their own for that.

use crate::agent_at_work::model;
use crate::backends::{Scene, login_bundle};
use crate::harness::Watcher;
use crate::organism_in_room;
use crate::stand_in::StandIn;
use client::Event;
use std::{io::Write, time::Duration};

/// What was seen of the answer to a message before it was there.
async fn seen_before_answer(scene: &Scene, answer: &str) -> Vec<String> {
    let watcher = Watcher::new(&scene.room).await;
    let mention = scene.mention();
    let seq = scene.room.say(&format!("{mention} count")).await;
    assert_eq!(scene.room.answer(seq).await.content, answer);
    watcher
        .sees("the answer", |event| match event {
            Event::Message(message) => (message.reply_to_seq == Some(seq)).then_some(()),
            _ => None,
        })
        .await;
    let mut texts = Vec::new();
    for event in watcher.events() {
        match event {
            Event::AgentDelta(delta) if delta.reply_to_seq == Some(seq) => texts.push(delta.text),
            Event::Message(message) if message.reply_to_seq == Some(seq) => break,
            _ => {}
        }
    }
    texts
}

fn grows(texts: &[String], answer: &str) {
    let is_part = |text: &String| answer.starts_with(text.trim_end()) && text.len() < answer.len();
    assert!(texts.iter().any(is_part), "{texts:?}");
    let mut pairs = texts.windows(2);
    assert!(pairs.all(|two| two[1].starts_with(&*two[0])), "{texts:?}");
}

#[tokio::test]
async fn openai_is_seen_writing() {
    let model = model();
    let add = ["--backend", "openai", "--model", "m"];
    let scene = Scene::new(&add, async |owner| {
        let url = format!("{}/v1", model.url());
        owner.env.push(("OPENAI_BASE_URL", url));
        owner.env.push(("OPENAI_API_KEY", "k".into()));
    })
    .await;
    let answer = "One two three.";
    grows(&seen_before_answer(&scene, answer).await, answer);
}

#[tokio::test]
async fn the_hosted_agent_is_seen_writing_through_the_bridge() {
    let bridge = StandIn::new(|_, stream| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        for word in ["One ", "two ", "three."] {
            let frame = serde_json::json!({"delta": word});
            stream.write_all(format!("data: {frame}\n\n").as_bytes())?;
            std::thread::sleep(Duration::from_millis(500));
        }
        stream.write_all(b"data: [DONE]\n\n")
    });
    let bundle = login_bundle(&bridge);
    let scene = Scene::new(&["--backend", "starchild"], async |owner| {
        owner.types(&["login", &bundle]).await;
    })
    .await;
    let answer = "One two three.";
    grows(&seen_before_answer(&scene, answer).await, answer);
}

#[tokio::test]
async fn of_an_organism_it_is_seen_who_is_at_work() {
    let world = organism_in_room::World::new().await;
    let _daemon = world.owner.runs().await;
    let watcher = Watcher::new(&world.room).await;
    let seq = world.room.say(&world.mention("slowly, please")).await;
    watcher
        .sees("the clerk works", |event| match event {
            Event::AgentTyping(typing) if typing.reply_to_seq == Some(seq) => {
                (typing.activity.as_deref() == Some("clerk")).then_some(())
            }
            _ => None,
        })
        .await;
    assert!(world.room.answers(seq).await.is_empty());
    world.touch("go");
    world.room.answer(seq).await;
}
