//! An agent is seen at work, stopped, allowed and denied, and costs what its owner lets it cost.

use crate::backends::Scene;
use crate::harness::{Watcher, eventually};
use crate::stand_in::{Request, StandIn};
use client::{Client, Event};
use protocol::{
    Consent, ConsentDecision, ConsentState, DecideConsent, IdleReason, Message, PostMessage,
    TypingState, Wake,
};
use serde_json::{Value, json};
use std::{io::Write, net::TcpStream, path::Path, time::Duration};
use tempfile::TempDir;

/// How long the model waits between two words.
const PAUSE: Duration = Duration::from_millis(500);

/// A model that speaks like OpenAI's and does what the newest message says: `write FILE` calls a tool,
/// `forever` never ends, else it counts to three, slowly.
pub fn model() -> StandIn {
    StandIn::new(|request, stream| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        let asked = text.lines().last().unwrap_or_default();
        begin(stream)?;
        if last["role"] == "tool" {
            return say(stream, &["Result: ", text]);
        }
        if let Some((_, file)) = asked.split_once("write ") {
            let arguments = json!({"path": file, "content": "y"}).to_string();
            let call = json!({"index": 0, "id": "c1", "type": "function",
                "function": {"name": "fs_write", "arguments": arguments}});
            chunk(stream, json!({"delta": {"tool_calls": [call]}}))?;
            chunk(stream, json!({"delta": {}, "finish_reason": "tool_calls"}))?;
            return stream.write_all(b"data: [DONE]\n\n");
        }
        if asked.contains("forever") {
            chunk(stream, json!({"delta": {"content": "Once upon a time"}}))?;
            loop {
                std::thread::sleep(PAUSE);
                stream.write_all(b": still here\n\n")?;
            }
        }
        say(stream, &["One ", "two ", "three."])
    })
}

fn begin(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())
}

fn chunk(stream: &mut TcpStream, choice: Value) -> std::io::Result<()> {
    let chunk = json!({"model": "stand-in-1", "choices": [choice]});
    stream.write_all(format!("data: {chunk}\n\n").as_bytes())?;
    stream.flush()
}

fn say(stream: &mut TcpStream, words: &[&str]) -> std::io::Result<()> {
    for word in words {
        chunk(stream, json!({"delta": {"content": word}}))?;
        std::thread::sleep(PAUSE);
    }
    chunk(stream, json!({"delta": {}, "finish_reason": "stop"}))?;
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 200}});
    stream.write_all(format!("data: {usage}\n\ndata: [DONE]\n\n").as_bytes())
}

struct World {
    scene: Scene,
    model: StandIn,
    project: TempDir,
    /// The agent's owner, signed in: she made the invite.
    alice: Client,
}

impl World {
    async fn new(yaml: &str) -> Self {
        let model = model();
        let project = tempfile::tempdir().unwrap();
        let file = project.path().join("agent.yaml");
        let text = format!(
            "provider: {{ kind: openai, model: m, base_url: \"{}/v1\", retries: 0 }}\n\
             tools: {{fs: write}}\nconfirm: {{from: moderate}}\n\
             limits: {{price: {{input: 1.0, output: 5.0}}}}\n",
            model.url()
        );
        std::fs::write(&file, text).unwrap();
        let add = ["--backend", "agent", "--agent-file", file.to_str().unwrap()];
        let scene = Scene::with_yaml(&add, yaml, async |owner| {
            owner.env.push(("OPENAI_API_KEY", "k".into()));
        })
        .await;
        let alice = scene.server.person("u_alice", "Alice");
        Self {
            scene,
            model,
            project,
            alice,
        }
    }

    async fn say(&self, content: &str) -> i64 {
        let mention = self.scene.mention();
        self.scene.room.say(&format!("{mention} {content}")).await
    }

    async fn consents(&self) -> Vec<Consent> {
        let all = self.alice.consents(&self.scene.room.id, false).await;
        all.unwrap().consents
    }

    /// The question about a message, once it is asked.
    async fn asked(&self, seq: i64) -> Consent {
        eventually("somebody is asked", async || {
            let all = self.consents().await;
            all.into_iter().find(|it| it.reply_to_seq == Some(seq))
        })
        .await
    }

    async fn decide(&self, consent: &Consent, decision: ConsentDecision, reason: Option<&str>) {
        let decision = DecideConsent {
            decision,
            reason: reason.map(str::to_owned),
        };
        let room = &self.scene.room.id;
        let decided = self
            .alice
            .decide_consent(room, &consent.consent_id, &decision);
        decided.await.unwrap();
    }

    fn exists(&self, file: &str) -> bool {
        self.project.path().join(file).exists()
    }

    fn requests(&self) -> Vec<Request> {
        self.model.requests()
    }
}

#[tokio::test]
async fn an_answer_is_seen_as_it_is_written_and_its_cost_is_told() {
    let world = World::new("").await;
    let watcher = Watcher::new(&world.scene.room).await;
    let seq = world.say("count").await;
    let answer = world.scene.room.answer(seq).await;
    assert_eq!(answer.content, "One two three.");
    let events = watcher.events();
    let is_answer =
        |event: &Event| matches!(event, Event::Message(m) if m.reply_to_seq == Some(seq));
    let before = events.iter().take_while(|event| !is_answer(event));
    let texts: Vec<&str> = before
        .clone()
        .filter_map(|event| match event {
            Event::AgentDelta(delta) if delta.reply_to_seq == Some(seq) => Some(&*delta.text),
            _ => None,
        })
        .collect();
    assert!(
        texts.first().is_some_and(|text| text.starts_with("One")),
        "{texts:?}"
    );
    assert!(
        texts.windows(2).all(|two| two[1].starts_with(two[0])),
        "{texts:?}"
    );
    assert!(texts.len() >= 2, "{texts:?}");
    let states: Vec<TypingState> = before
        .filter_map(|event| match event {
            Event::AgentTyping(typing) if typing.typing => Some(typing.state),
            _ => None,
        })
        .collect();
    assert!(states.contains(&TypingState::Writing), "{states:?}");
    let usage = answer.usage.expect("the cost is part of the message");
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (Some(1000), Some(200))
    );
    assert_eq!(usage.cost_usd, Some(0.002));
    assert!(
        usage.seconds.is_some_and(|seconds| seconds >= 1.0),
        "{usage:?}"
    );
    let sum = world
        .scene
        .room
        .alice
        .room_usage(&world.scene.room.id, None)
        .await;
    assert_eq!(sum.unwrap().usage.len(), 1);
}

#[tokio::test]
async fn a_stop_ends_the_call_and_the_agent_is_told() {
    let world = World::new("").await;
    let room = &world.scene.room;
    let watcher = Watcher::new(room).await;
    let seq = world.say("talk forever").await;
    watcher
        .sees("it writes", |event| match event {
            Event::AgentDelta(delta) => delta.text.starts_with("Once").then_some(()),
            _ => None,
        })
        .await;
    let stopped = room
        .alice
        .stop_turn(&room.id, &world.scene.user(), Some(seq))
        .await;
    assert!(stopped.unwrap().stopped);
    watcher
        .sees("the room is told", |event| match event {
            Event::AgentTyping(typing) => {
                (typing.reason == Some(IdleReason::Stopped)).then_some(())
            }
            _ => None,
        })
        .await;
    let next = world.say("count").await;
    assert_eq!(room.answer(next).await.content, "One two three.");
    assert!(
        room.answers(seq).await.is_empty(),
        "a stopped answer is not posted"
    );
    let requests = world.requests();
    assert_eq!(requests.len(), 2, "a stopped call is not made again");
    let told = format!("Your answer to message #{seq} was stopped by a person");
    assert!(requests[1].body.contains(&told), "{}", requests[1].body);

    let again = room.alice.retry_turn(&room.id, next, None).await.unwrap();
    assert_eq!(again.told, [world.scene.user().to_string()]);
    eventually("it is answered anew", async || {
        (room.answers(next).await.len() == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_yes_in_the_room_counts_once_whoever_is_killed_meanwhile() {
    let mut world = World::new("").await;
    let seq = world.say("write a.txt").await;
    let asked = world.asked(seq).await;
    assert_eq!(
        (asked.state.clone(), &*asked.tool),
        (ConsentState::Open, "fs.write")
    );
    assert!(
        asked.detail.as_ref().is_some_and(|it| it.contains("a.txt")),
        "{asked:?}"
    );
    assert!(!world.exists("a.txt"));
    world.scene.daemon.kill9();
    world.scene.server.kill();
    world.scene.server.launch();
    world.scene.daemon = world.scene.owner.runs().await;
    // The same question is asked again, and is the same.
    eventually("the daemon asks again", async || {
        let log = world.scene.owner.log();
        (log.matches("asked in the room").count() == 2).then_some(())
    })
    .await;
    assert_eq!(world.consents().await.len(), 1);
    world.decide(&asked, ConsentDecision::Allow, None).await;
    let answer = world.scene.room.answer(seq).await.content;
    assert!(answer.starts_with("Result: "), "{answer}");
    assert!(world.exists("a.txt"));
    assert_eq!(
        world.requests().len(),
        2,
        "the model was asked once for each round"
    );

    let seq = world.say("write b.txt").await;
    let asked = world.asked(seq).await;
    world
        .decide(&asked, ConsentDecision::Deny, Some("not that one"))
        .await;
    let answer = world.scene.room.answer(seq).await.content;
    assert!(answer.contains("not that one"), "{answer}");
    assert!(!world.exists("b.txt"));

    // A graceful end does not wait for a person.
    let seq = world.say("write c.txt").await;
    let asked = world.asked(seq).await;
    world.scene.daemon.terminate();
    assert!(world.scene.daemon.ends().await.success());
    world.decide(&asked, ConsentDecision::Always, None).await;
    world.scene.daemon = world.scene.owner.runs().await;
    world.scene.room.answer(seq).await;
    assert!(world.exists("c.txt"));
    let seq = world.say("write d.txt").await;
    world.scene.room.answer(seq).await;
    assert!(world.exists("d.txt"), "always is always");
    assert_eq!(world.consents().await.len(), 3, "and nobody is asked again");
}

#[tokio::test]
async fn what_is_stopped_asks_no_more() {
    let world = World::new("").await;
    let room = &world.scene.room;
    let seq = world.say("write a.txt").await;
    let asked = world.asked(seq).await;
    let user = world.scene.user();
    let stopped = room.alice.stop_turn(&room.id, &user, Some(seq)).await;
    assert!(stopped.unwrap().stopped, "an agent that asks is at work");
    eventually("the question is taken back", async || {
        let now = world
            .alice
            .consent(&room.id, &asked.consent_id)
            .await
            .unwrap();
        (now.state == ConsentState::Withdrawn).then_some(())
    })
    .await;
    assert!(!world.exists("a.txt"));
}

/// Says something as a person, with a room key.
async fn says_as_person(key: &Client, world: &World, content: &str) -> Message {
    let message = PostMessage {
        content: format!("{} {content}", world.scene.mention()),
        ..PostMessage::default()
    };
    let posted = key.post_message(&world.scene.room.id, &message, None).await;
    world.scene.room.answer(posted.unwrap().seq).await
}

#[tokio::test]
async fn the_owners_commands_reach_the_tools_and_anyone_elses_are_words() {
    let world = World::new("").await;
    let room = &world.scene.room;
    let key = room
        .alice
        .create_room_key(&room.id, &"u_alice".parse().unwrap(), None)
        .await;
    let alice = room.alice.with_token(key.unwrap().token).unwrap();
    let cost = says_as_person(&alice, &world, "/cost").await;
    assert!(cost.content.contains("tokens read"), "{}", cost.content);
    assert!(world.requests().is_empty(), "no model was asked");
    // A key may have been shared, so what needs a yes needs it even so.
    let message = PostMessage {
        content: format!(
            "{} /fs.write {{\"path\":\"s.txt\",\"content\":\"z\"}}",
            world.scene.mention()
        ),
        ..PostMessage::default()
    };
    let seq = alice
        .post_message(&room.id, &message, None)
        .await
        .unwrap()
        .seq;
    let asked = world.asked(seq).await;
    assert!(!world.exists("s.txt"));
    world.decide(&asked, ConsentDecision::Allow, None).await;
    room.answer(seq).await;
    assert!(world.exists("s.txt"));

    let bob = world.scene.server.person("u_bob", "Alice");
    let code = room.invite().await.invite_code;
    let join = protocol::Join {
        invite_code: Some(code),
        adapter_type: Some(protocol::AdapterType::Pull),
        ..protocol::Join::default()
    };
    bob.join(&room.id, &join, None).await.unwrap();
    let key = bob
        .create_room_key(&room.id, &"u_bob".parse().unwrap(), None)
        .await;
    let bob = bob.with_token(key.unwrap().token).unwrap();
    let words = says_as_person(&bob, &world, "/cost").await;
    assert_eq!(words.content, "One two three.", "the model is asked");
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn an_owners_limits_hold_over_restarts_and_the_room_is_told_once() {
    let yaml = "wake: mentions\nbudget: {turns: 2}\n";
    let add = ["--backend", "custom", "--command", "date >> asked; echo hi"];
    let mut scene = Scene::with_yaml(&add, yaml, async |_| {}).await;
    let (id, agent) = (scene.room.id.clone(), scene.user());
    eventually("the server knows the owner's limits", async || {
        let own = scene.room.alice.wake(&id, &agent).await.unwrap().own;
        (own.wake == Wake::Mentions && own.budget.turns == Some(2)).then_some(())
    })
    .await;
    assert_eq!(scene.ask("one").await, "hi");
    let own = scene.room.said().await.pop().unwrap();
    let reply = PostMessage {
        content: "go on".into(),
        reply_to_seq: Some(own.seq),
        ..PostMessage::default()
    };
    let reply = scene
        .room
        .alice
        .post_message(&id, &reply, None)
        .await
        .unwrap()
        .seq;
    scene.daemon.kill9();
    scene.daemon = scene.owner.runs().await;
    assert_eq!(scene.ask("two").await, "hi");
    assert!(
        scene.room.answers(reply).await.is_empty(),
        "only mentions wake it"
    );
    let third = scene.room.say(&format!("{} three", scene.mention())).await;
    eventually("the log tells", async || {
        scene
            .owner
            .log()
            .contains("budget of today is used up")
            .then_some(())
    })
    .await;
    scene.daemon.kill9();
    scene.daemon = scene.owner.runs().await;
    let fourth = scene.room.say(&format!("{} four", scene.mention())).await;
    passed(&scene, fourth).await;
    for seq in [third, fourth] {
        assert!(
            scene.room.answers(seq).await.is_empty(),
            "nothing beyond the budget"
        );
    }
    let asked = std::fs::read_to_string(scene.owner.place().join("asked")).unwrap();
    assert_eq!(asked.lines().count(), 2);
    let said = scene.room.said().await;
    let told = said
        .iter()
        .filter(|it| it.content.contains("budget"))
        .count();
    assert_eq!(told, 1, "{said:?}");
}

#[tokio::test]
async fn a_thread_wakes_an_agent_that_has_a_part_in_it_where_its_owner_says_so() {
    let add = ["--backend", "custom", "--command", "echo hi"];
    for (yaml, wakes) in [("wake: threads\n", true), ("", false)] {
        let scene = Scene::with_yaml(&add, yaml, async |_| {}).await;
        let first = scene.room.say(&format!("{} one", scene.mention())).await;
        scene.room.answer(first).await;
        // Alice answers herself, in the thread in which the agent was named.
        let more = PostMessage {
            content: "and two".into(),
            reply_to_seq: Some(first),
            ..PostMessage::default()
        };
        let posted = scene.room.alice.post_message(&scene.room.id, &more, None);
        let more = posted.await.unwrap().seq;
        let elsewhere = scene.room.say("three").await;
        if wakes {
            scene.room.answer(more).await;
        }
        passed(&scene, elsewhere).await;
        let woken = !scene.room.answers(more).await.is_empty();
        assert_eq!(woken, wakes, "{yaml:?}");
        assert!(scene.room.answers(elsewhere).await.is_empty());
    }
}

/// Waits until the daemon has dealt with a message.
async fn passed(scene: &Scene, seq: i64) {
    let file = scene
        .owner
        .place()
        .join("cursors")
        .join(format!("{}.json", scene.room.id));
    eventually("the daemon is past it", async || past(&file, seq)).await;
}

fn past(file: &Path, seq: i64) -> Option<()> {
    let text = std::fs::read_to_string(file).ok()?;
    let cursor: Value = serde_json::from_str(&text).ok()?;
    (cursor["seq"].as_i64()? >= seq).then_some(())
}
