//! Real coding agents in rooms: codex, alone and over the Agent Client Protocol, with a stand-in for
//! their model. `install-coding-agents.sh FOLDER` installs them; `STARCHILD_TEST_CODING_AGENTS` names
//! the folder.

use crate::backends::Scene;
use crate::harness::{Owner, Watcher, eventually};
use crate::stand_in::StandIn;
use client::Event;
use protocol::{Consent, ConsentDecision, ConsentState, DecideConsent};
use serde_json::{Value, json};
use std::{io::Write, net::TcpStream, path::PathBuf, process::Command, time::Duration};

const PAUSE: Duration = Duration::from_millis(400);

fn program(name: &str) -> String {
    let folder = std::env::var("STARCHILD_TEST_CODING_AGENTS").unwrap_or_else(|_| {
        panic!(
            "run crates/starchild/tests/install-coding-agents.sh FOLDER and set \
             STARCHILD_TEST_CODING_AGENTS=FOLDER"
        )
    });
    let path = PathBuf::from(folder).join("node_modules/.bin").join(name);
    path.to_str().unwrap().to_owned()
}

/// A model behind the Responses API that does what the newest message says: `run COMMAND` asks for a
/// shell, `hang` never ends, `fail` is refused, else it greets, word by word.
fn model() -> StandIn {
    StandIn::new(|request, stream| {
        if !request.line.starts_with("POST") {
            return stream.write_all(
                b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let input = body["input"].as_array().unwrap();
        let of = |kind: &str| input.iter().rev().find(|item| item["type"] == kind);
        let last = input.last().unwrap();
        let asked = of("message")
            .map(|item| item["content"].to_string())
            .unwrap_or_default();
        let asked = asked.rsplit("\\n").find(|line| line.starts_with("> "));
        let asked = asked.unwrap_or_default().to_owned();
        if asked.contains("fail") {
            let body = r#"{"error":{"message":"the model is out of order","type":"invalid_request_error"}}"#;
            let head = format!(
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            return stream.write_all((head + body).as_bytes());
        }
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        event(
            stream,
            json!({"type": "response.created", "response": {"id": "r"}}),
        )?;
        if last["type"] == "function_call_output" {
            say(stream, &["It ", "ran."])?;
        } else if let Some((_, command)) = asked.split_once("run ") {
            let command = command
                .split('"')
                .next()
                .unwrap_or_default()
                .trim_end_matches('\\');
            let arguments = json!({"cmd": command, "sandbox_permissions": "require_escalated",
                "justification": "it has to"});
            let item = json!({"type": "function_call", "id": "f", "call_id": "c",
                "name": "exec_command", "arguments": arguments.to_string()});
            event(
                stream,
                json!({"type": "response.output_item.done", "item": item}),
            )?;
        } else if asked.contains("hang") {
            loop {
                std::thread::sleep(PAUSE);
                stream.write_all(b": still here\n\n")?;
            }
        } else {
            say(stream, &["Hello ", "there, ", "friend."])?;
        }
        let usage = json!({"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 10},
            "output_tokens_details": {"reasoning_tokens": 0}});
        event(
            stream,
            json!({"type": "response.completed", "response": {"id": "r", "usage": usage}}),
        )
    })
}

fn event(stream: &mut TcpStream, event: Value) -> std::io::Result<()> {
    let kind = event["type"].as_str().unwrap();
    stream.write_all(format!("event: {kind}\ndata: {event}\n\n").as_bytes())?;
    stream.flush()
}

fn say(stream: &mut TcpStream, words: &[&str]) -> std::io::Result<()> {
    let item = json!({"type": "message", "role": "assistant", "id": "m", "content": []});
    event(
        stream,
        json!({"type": "response.output_item.added", "item": item}),
    )?;
    for word in words {
        let delta = json!({"type": "response.output_text.delta", "delta": word, "item_id": "m",
            "output_index": 0, "content_index": 0});
        event(stream, delta)?;
        std::thread::sleep(PAUSE);
    }
    let content = json!([{"type": "output_text", "text": words.concat()}]);
    let item = json!({"type": "message", "role": "assistant", "id": "m", "content": content});
    event(
        stream,
        json!({"type": "response.output_item.done", "item": item}),
    )
}

/// Codex's own settings: the stand-in is its model.
fn set_up(owner: &mut Owner, model: &StandIn) {
    let home = owner.folder.path().join("codex");
    std::fs::create_dir_all(&home).unwrap();
    let config = format!(
        "model = \"stand-in\"\nmodel_provider = \"here\"\n[model_providers.here]\nname = \"here\"\n\
         base_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"CODEX_API_KEY\"\n\
         request_max_retries = 0\nstream_max_retries = 0\n",
        model.url()
    );
    std::fs::write(home.join("config.toml"), config).unwrap();
    owner
        .env
        .push(("CODEX_HOME", home.to_str().unwrap().to_owned()));
    owner.env.push(("CODEX_API_KEY", "k".into()));
}

#[tokio::test]
async fn codex_answers_without_its_notices_and_tells_its_cost() {
    let model = model();
    let command = program("codex");
    let add = [
        "--backend",
        "codex",
        "--command",
        &command,
        "--timeout-seconds",
        "25",
    ];
    let scene = Scene::new(&add, async |owner| set_up(owner, &model)).await;
    let watcher = Watcher::new(&scene.room).await;
    let seq = scene.room.say(&format!("{} hi", scene.mention())).await;
    let answer = scene.room.answer(seq).await;
    assert_eq!(answer.content, "Hello there, friend.");
    let usage = answer.usage.expect("codex tells what it used");
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (Some(100), Some(20))
    );
    let works = |event: &Event| match event {
        Event::AgentTyping(typing) => {
            (typing.typing && typing.reply_to_seq == Some(seq)).then_some(())
        }
        _ => None,
    };
    watcher.sees("codex is seen at work", works).await;

    for (words, told) in [
        ("fail", "the model is out of order"),
        ("hang", "no answer within 25 s"),
    ] {
        let seq = scene
            .room
            .say(&format!("{} {words}", scene.mention()))
            .await;
        eventually(words, async || {
            scene.owner.log().contains(told).then_some(())
        })
        .await;
        assert!(scene.room.answers(seq).await.is_empty(), "{words}");
    }
    assert_eq!(scene.ask("hi").await, "Hello there, friend.");
}

/// The question about a message, once it is asked.
async fn asked(scene: &Scene, seq: i64) -> Consent {
    let alice = scene.server.person("u_alice", "Alice");
    eventually("the owner is asked", async || {
        let all = alice
            .consents(&scene.room.id, false)
            .await
            .unwrap()
            .consents;
        all.into_iter().find(|it| it.reply_to_seq == Some(seq))
    })
    .await
}

async fn decide(scene: &Scene, consent: &Consent, decision: ConsentDecision) {
    let alice = scene.server.person("u_alice", "Alice");
    let reason = None;
    let decision = DecideConsent { decision, reason };
    let decided = alice.decide_consent(&scene.room.id, &consent.consent_id, &decision);
    decided.await.unwrap();
}

/// Ends the coding agent's process, as a crash would.
fn crash(scene: &Scene) {
    let work = scene.owner.place().join("work");
    let mut ended = 0;
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let is_here = std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == work);
        let program = std::fs::read_link(process.path().join("exe")).unwrap_or_default();
        if is_here && program.ends_with("codex-acp") {
            let pid = process.file_name().into_string().unwrap();
            assert!(
                Command::new("kill")
                    .args(["-9", &pid])
                    .status()
                    .unwrap()
                    .success()
            );
            ended += 1;
        }
    }
    assert_eq!(ended, 1, "one process for the agent");
}

#[tokio::test]
async fn codex_over_acp_streams_asks_its_owner_and_survives_what_happens_to_it() {
    let model = model();
    let files = tempfile::tempdir().unwrap();
    let rules = files.path().join("permissions.yaml");
    std::fs::write(&rules, "rules: [{decision: ask, kinds: [execute]}]\n").unwrap();
    let command = program("codex-acp");
    let add = [
        "--backend",
        "acp",
        "--command",
        &command,
        "--timeout-seconds",
        "25",
        "--permissions",
        rules.to_str().unwrap(),
    ];
    let scene = Scene::new(&add, async |owner| set_up(owner, &model)).await;
    let watcher = Watcher::new(&scene.room).await;
    assert_eq!(scene.ask("hi").await, "Hello there, friend.");
    watcher
        .sees("the answer grows", |event| match event {
            Event::AgentDelta(delta) => (delta.text.trim() == "Hello").then_some(()),
            _ => None,
        })
        .await;

    let file = files.path().join("made");
    let run = format!("{} run touch {}", scene.mention(), file.display());
    let seq = scene.room.say(&run).await;
    let question = asked(&scene, seq).await;
    assert_eq!(
        (question.state.clone(), &*question.tool),
        (ConsentState::Open, "execute")
    );
    decide(&scene, &question, ConsentDecision::Deny).await;
    let answer = scene.room.answer(seq).await.content;
    assert_eq!(answer, "I may not do that: execute was denied.");
    assert!(!file.exists());

    let seq = scene.room.say(&run).await;
    let question = asked(&scene, seq).await;
    decide(&scene, &question, ConsentDecision::Always).await;
    assert_eq!(scene.room.answer(seq).await.content, "It ran.");
    assert!(file.exists());

    crash(&scene);
    assert_eq!(scene.ask("hi").await, "Hello there, friend.");
    // Always outlives the process: nobody is asked.
    std::fs::remove_file(&file).unwrap();
    let seq = scene.room.say(&run).await;
    assert_eq!(scene.room.answer(seq).await.content, "It ran.");
    assert!(file.exists());

    let seq = scene.room.say(&format!("{} hang", scene.mention())).await;
    watcher
        .sees("it works", |event| match event {
            Event::AgentTyping(typing) => (typing.reply_to_seq == Some(seq)).then_some(()),
            _ => None,
        })
        .await;
    let stopped = scene
        .room
        .alice
        .stop_turn(&scene.room.id, &scene.user(), Some(seq))
        .await;
    assert!(stopped.unwrap().stopped);
    assert_eq!(scene.ask("hi").await, "Hello there, friend.");
    assert!(scene.room.answers(seq).await.is_empty());

    let seq = scene.room.say(&format!("{} hang", scene.mention())).await;
    let told = "no answer within 25 s";
    eventually(told, async || {
        scene.owner.log().contains(told).then_some(())
    })
    .await;
    assert!(scene.room.answers(seq).await.is_empty());
    assert_eq!(scene.ask("hi").await, "Hello there, friend.");
}
