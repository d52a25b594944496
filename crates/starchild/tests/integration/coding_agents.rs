//! Real coding agents in rooms: codex and claude alone; codex, Gemini and OpenCode over the Agent
//! Client Protocol; with a stand-in for their model. `install-coding-agents.sh FOLDER` installs them;
//! `STARCHILD_TEST_CODING_AGENTS` names the folder.

use crate::backends::Scene;
use crate::harness::{Owner, Watcher, eventually};
use crate::stand_in::StandIn;
use crate::stand_in_models::{Hold, chat_completions, gemini, messages, responses};
use client::Event;
use protocol::{Consent, ConsentDecision, ConsentState, DecideConsent};
use serde_json::json;
use std::{path::PathBuf, process::Command};

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

/// Codex's own settings: the stand-in is its model.
fn set_up_codex(owner: &mut Owner, model: &StandIn) {
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

/// A home of its own, in which an agent finds nobody's account.
fn give_home(owner: &mut Owner) -> PathBuf {
    let home = owner.folder.path().join("person");
    std::fs::create_dir_all(&home).unwrap();
    owner.env.push(("HOME", home.to_str().unwrap().to_owned()));
    home
}

fn set_up_gemini(owner: &mut Owner, model: &StandIn) {
    let home = give_home(owner).join(".gemini");
    std::fs::create_dir_all(&home).unwrap();
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "model": {"name": "gemini-2.5-flash"},
    });
    std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    owner.env.push(("GOOGLE_GEMINI_BASE_URL", model.url()));
    owner.env.push(("GEMINI_API_KEY", "k".into()));
    owner.env.push(("GEMINI_MODEL", "gemini-2.5-flash".into()));
}

fn set_up_opencode(owner: &mut Owner, model: &StandIn) {
    let file = give_home(owner).join("opencode.json");
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "Here",
        "options": {"baseURL": format!("{}/v1", model.url()), "apiKey": "k"},
        "models": {"stand-in": {"name": "Stand-in", "tool_call": true,
            "limit": {"context": 100_000, "output": 8000}}},
    });
    let settings = json!({
        "autoupdate": false, "share": "disabled", "snapshot": false,
        "enabled_providers": ["here"], "model": "here/stand-in", "small_model": "here/stand-in",
        "permission": {"bash": "ask", "edit": "ask"}, "provider": {"here": provider},
    });
    std::fs::write(&file, settings.to_string()).unwrap();
    owner
        .env
        .push(("OPENCODE_CONFIG", file.to_str().unwrap().to_owned()));
}

fn set_up_claude(owner: &mut Owner, model: &StandIn) {
    give_home(owner);
    owner.env.push(("ANTHROPIC_BASE_URL", model.url()));
    owner.env.push(("ANTHROPIC_API_KEY", "k".into()));
}

/// What is refused, and what takes too long, is told in the log and not in the room.
async fn fails_quietly(scene: &Scene) {
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
}

#[tokio::test]
async fn claude_streams_its_answer_and_tells_its_cost() {
    let hold = Hold::default();
    let model = messages(&hold);
    let command = program("claude");
    let add = ["--backend", "claude", "--timeout-seconds", "25"];
    let add = [&add[..], &["--command", &command]].concat();
    let scene = Scene::new(&add, async |owner| set_up_claude(owner, &model)).await;
    let watcher = Watcher::new(&scene.room).await;
    hold.begin();
    let seq = scene.room.say(&format!("{} hi", scene.mention())).await;
    watcher.sees("the answer grows", is_begun).await;
    hold.end();
    let answer = scene.room.answer(seq).await;
    assert_eq!(answer.content, "Hello there, friend.");
    let usage = answer.usage.expect("claude tells what it used");
    assert!(usage.output_tokens.is_some_and(|count| count > 0));
    assert!(
        usage.cost_usd.is_some() && usage.model.is_some(),
        "{usage:?}"
    );
    fails_quietly(&scene).await;
    assert_eq!(scene.ask("hi").await, "Hello there, friend.");
}

/// Whether an event shows the first words of the greeting.
fn is_begun(event: &Event) -> Option<()> {
    match event {
        Event::AgentDelta(delta) => {
            let text = delta.text.trim_end();
            let is_part = !text.is_empty() && text.len() < "Hello there, friend.".len();
            (is_part && "Hello there, friend.".starts_with(text)).then_some(())
        }
        _ => None,
    }
}

#[tokio::test]
async fn codex_answers_without_its_notices_and_tells_its_cost() {
    let model = responses(&Hold::default());
    let command = program("codex");
    let add = [
        "--backend",
        "codex",
        "--command",
        &command,
        "--timeout-seconds",
        "25",
    ];
    let scene = Scene::new(&add, async |owner| set_up_codex(owner, &model)).await;
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

    fails_quietly(&scene).await;
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

/// Ends the coding agent's processes, as a crash would.
fn crash(scene: &Scene) {
    let work = scene.owner.place().join("work");
    let mut ended = 0;
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let is_here = std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == work);
        if is_here {
            let pid = process.file_name().into_string().unwrap();
            // A child may be gone with its parent.
            let killed = Command::new("kill").args(["-9", &pid]).status();
            ended += usize::from(killed.unwrap().success());
        }
    }
    assert!(ended > 0, "the agent ran");
}

/// A coding agent that speaks the Agent Client Protocol.
struct AcpAgent {
    command: String,
    model: StandIn,
    hold: Hold,
    set_up: fn(&mut Owner, &StandIn),
    /// What the room reads where the agent was denied something.
    denied: &'static str,
    /// What it tells of what it read and wrote.
    tokens: Option<(i64, i64)>,
}

#[tokio::test]
async fn codex_over_acp() {
    let hold = Hold::default();
    streams_asks_its_owner_and_survives_what_happens_to_it(AcpAgent {
        command: program("codex-acp"),
        model: responses(&hold),
        hold,
        set_up: set_up_codex,
        denied: "I may not do that: execute was denied.",
        tokens: None,
    })
    .await;
}

#[tokio::test]
async fn gemini_over_acp() {
    let hold = Hold::default();
    streams_asks_its_owner_and_survives_what_happens_to_it(AcpAgent {
        command: format!("{} --experimental-acp", program("gemini")),
        model: gemini(&hold),
        hold,
        set_up: set_up_gemini,
        denied: "I may not.",
        tokens: Some((100, 20)),
    })
    .await;
}

#[tokio::test]
async fn opencode_over_acp() {
    let hold = Hold::default();
    streams_asks_its_owner_and_survives_what_happens_to_it(AcpAgent {
        command: format!("{} acp", program("opencode")),
        model: chat_completions(&hold),
        hold,
        set_up: set_up_opencode,
        denied: "I may not do that: execute was denied.",
        tokens: None,
    })
    .await;
}

async fn streams_asks_its_owner_and_survives_what_happens_to_it(agent: AcpAgent) {
    let files = tempfile::tempdir().unwrap();
    let rules = files.path().join("permissions.yaml");
    std::fs::write(&rules, "rules: [{decision: ask, kinds: [execute]}]\n").unwrap();
    let add = [
        "--backend",
        "acp",
        "--command",
        &agent.command,
        "--timeout-seconds",
        "60",
        "--permissions",
        rules.to_str().unwrap(),
    ];
    let prepare = async |owner: &mut Owner| (agent.set_up)(owner, &agent.model);
    let scene = Scene::new(&add, prepare).await;
    let watcher = Watcher::new(&scene.room).await;
    agent.hold.begin();
    let seq = scene.room.say(&format!("{} hi", scene.mention())).await;
    watcher.sees("the answer grows", is_begun).await;
    agent.hold.end();
    let answer = scene.room.answer(seq).await;
    assert_eq!(answer.content, "Hello there, friend.");
    let told = answer.usage.as_ref();
    let told = told.and_then(|usage| Some((usage.input_tokens?, usage.output_tokens?)));
    assert_eq!(told, agent.tokens);

    let file = scene.owner.place().join("work/made");
    let run = format!("{} run touch made", scene.mention());
    let seq = scene.room.say(&run).await;
    let question = asked(&scene, seq).await;
    assert_eq!(
        (question.state.clone(), &*question.tool),
        (ConsentState::Open, "execute")
    );
    decide(&scene, &question, ConsentDecision::Deny).await;
    let answer = scene.room.answer(seq).await.content;
    assert_eq!(answer, agent.denied);
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
    let told = "no answer within 60 s";
    eventually(told, async || {
        scene.owner.log().contains(told).then_some(())
    })
    .await;
    assert!(scene.room.answers(seq).await.is_empty());
    assert_eq!(scene.ask("hi").await, "Hello there, friend.");
}
