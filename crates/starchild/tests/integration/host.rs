//! `starchild host` as rooms, scripts and strangers meet it: the real host, called by the real server.

use crate::{
    harness::{Daemon, OBEY, Owner, PARROT, Room, Server, Watcher, eventually},
    proxy::{Proxy, Streams},
};
use client::{Client, PostMessage};
use futures_util::StreamExt;
use protocol::{Consent, ConsentDecision, ConsentState, DecideConsent, Event, sse::Parser};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use std::{
    io::Read,
    iter,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A server that calls private addresses, as in tests everybody has one.
async fn server() -> Server {
    Server::with(&[("FANOUT__PRIVATE_ENDPOINTS", "all")]).await
}

/// A host that runs, and where.
pub struct Host {
    pub process: Daemon,
    pub url: String,
    pub http: reqwest::Client,
}

impl Host {
    /// Starts it on a free port.
    pub async fn start(owner: &Owner, args: &[&str]) -> Self {
        let starts = |log: &str| log.matches("serving agent=").count();
        let before = starts(&owner.log());
        let args = [&["host", "--listen", "127.0.0.1:0"], args].concat();
        let mut command = owner.command(&args);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = Daemon(child.unwrap());
        let url = eventually("the host serves", async || {
            let log = owner.log();
            let line = log.rsplit("serving agent=").next()?.lines().next()?;
            let url = line.split("url=").nth(1)?.trim_matches('"').to_owned();
            (starts(&log) > before).then_some(url)
        })
        .await;
        let http = reqwest::Client::builder().no_proxy();
        let http = http.timeout(Duration::from_secs(60)).build().unwrap();
        Self { process, url, http }
    }

    pub fn post(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let body = body.to_string();
        let request = self.http.post(format!("{}{path}", self.url)).body(body);
        request.header(header::CONTENT_TYPE, "application/json")
    }

    pub async fn key(&self, scope: &str, per_minute: u32) -> Value {
        let wanted = json!({"scope": scope, "ttl_seconds": 3600, "label": "a test",
                            "rate_limit": {"per_minute": per_minute}});
        let made = self.post("/api/keys", &wanted).send().await.unwrap();
        assert_eq!(made.status(), StatusCode::CREATED);
        made.json().await.unwrap()
    }

    /// How many keys still count.
    async fn keys(&self) -> usize {
        let list = self
            .http
            .get(format!("{}/api/keys", self.url))
            .send()
            .await
            .unwrap();
        let list: Value = list.json().await.unwrap();
        list["keys"].as_array().unwrap().len()
    }

    fn chat(&self, secret: &str, thread: &str, text: &str) -> reqwest::RequestBuilder {
        let body = json!({"message": text, "thread_id": thread, "channel": "starchild-cli"});
        self.post("/chat/stream", &body).bearer_auth(secret)
    }

    /// The status, and all that was answered.
    async fn says(&self, secret: &str, thread: &str, text: &str) -> (StatusCode, String) {
        let answer = self.chat(secret, thread, text).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }
}

async fn owner(server: &Server, script: &str) -> Owner {
    Owner::with_handler(server, script).await
}

/// Waits until somebody of this name is in the room.
async fn is_in(room: &Room, name: &str) {
    eventually("it is in the room", async || {
        let members = room.alice.members(&room.id).await.unwrap().members;
        let is_here = |one: &protocol::MemberView| one.user_name.as_deref() == Some(name);
        members.iter().any(is_here).then_some(())
    })
    .await;
}

/// The text of a stream's frames.
fn texts(stream: &str) -> Vec<String> {
    let mut parser = Parser::new();
    parser.push(stream.as_bytes()).unwrap();
    let data = iter::from_fn(|| parser.next_frame()).filter_map(|frame| frame.data);
    let frames = data.filter_map(|data| serde_json::from_str::<Value>(&data).ok());
    let text = frames.filter(|frame| frame["type"] == "text");
    text.map(|frame| frame["text"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_room_calls_the_host_over_restarts_and_moves() {
    let mut server = server().await;
    let room = Room::new(&server.alice()).await;
    let owner = owner(&server, PARROT).await;
    let code = room.invite().await.short_code;
    let mut host = Host::start(&owner, &["--room", &code, "--display-name", "Otter"]).await;
    is_in(&room, "Otter").await;
    assert_eq!(room.ask("one").await, "re one");
    let members = room.alice.members(&room.id).await.unwrap().members;
    let otter = members
        .iter()
        .find(|one| one.user_name.as_deref() == Some("Otter"));
    let otter = otter.expect("it goes by its name");
    assert!(otter.has_agent_endpoint && otter.has_akm_key);

    // Killed, and back at another address: the room is told, and what was said meanwhile is answered.
    host.process.kill9();
    let seq = room.say("two").await;
    let mut host = Host::start(&owner, &[]).await;
    assert_eq!(room.answer(seq).await.content, "re two");
    // The same code again is no second membership.
    host.process.kill9();
    server.kill();
    server.launch();
    let mut host = Host::start(&owner, &["--room", &code]).await;
    assert_eq!(room.ask("three").await, "re three");
    for word in ["one", "two", "three"] {
        let said = room.said().await;
        let again = said
            .iter()
            .filter(|said| said.content == format!("re {word}"));
        assert_eq!(again.count(), 1, "{word}");
    }
    eventually("older keys are ended", async || {
        (host.keys().await == 1).then_some(())
    })
    .await;
    host.process.terminate();
    assert!(host.process.ends().await.success());
}

#[tokio::test]
async fn only_what_is_meant_for_the_agent_reaches_a_backend_that_is_no_handler() {
    let server = server().await;
    let room = Room::new(&server.alice()).await;
    let folder_of = Owner::at(&server.url(), "", &[]).await;
    let edit = [
        "byoa",
        "edit",
        &folder_of.agent,
        "--backend",
        "custom",
        "--command",
        "grep -c 'Be brief' | sed 's/^/rules seen: /'",
    ];
    folder_of.types(&edit).await;
    room.alice.set_rules(&room.id, "Be brief.").await.unwrap();
    let code = room.invite().await.short_code;
    let _host = Host::start(&folder_of, &["--room", &code, "--display-name", "Otter"]).await;
    is_in(&room, "Otter").await;
    let aside = room.say("nobody in particular").await;
    assert_eq!(room.ask("@Otter hello").await, "rules seen: 1");
    // A part of its id calls it as well.
    let (part, _) = folder_of.agent.split_once(['_', '-']).unwrap();
    let by_part = room.ask(&format!("@{part} hello")).await;
    assert_eq!(by_part, "rules seen: 1");
    assert!(room.answers(aside).await.is_empty());
}

#[tokio::test]
async fn keys_open_what_they_are_for_and_nothing_else() {
    let server = server().await;
    let owner = owner(&server, "#!/bin/sh\necho hi\n").await;
    let mut host = Host::start(&owner, &[]).await;
    let made = host.key("chat:thread:chatroom-rm_a", 2).await;
    let (secret, prefix) = (
        made["secret"].as_str().unwrap(),
        made["key"]["prefix"].as_str().unwrap(),
    );
    assert!(secret.starts_with("sk_") && secret.starts_with(prefix));
    assert_eq!(made["key"]["rate_limit"]["per_minute"], 2);

    let refused = async |secret: &str, thread: &str| host.says(secret, thread, "x").await.0;
    assert_eq!(
        refused("sk_00000000_guess", "chatroom-rm_a").await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        refused(secret, "chatroom-rm_b").await,
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        refused(secret, "starchild-cli").await,
        StatusCode::FORBIDDEN
    );
    let bare = host.post("/chat/stream", &json!({"message": "x", "thread_id": "t"}));
    assert_eq!(
        bare.send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
    let (status, said) = host.says(secret, "chatroom-rm_a", "x").await;
    assert_eq!(
        (status, texts(&said)),
        (StatusCode::OK, vec!["hi".into()]),
        "{said}"
    );
    assert!(said.trim_end().ends_with("data: [DONE]"), "{said}");
    assert_eq!(refused(secret, "chatroom-rm_a").await, StatusCode::OK);
    let over = host
        .chat(secret, "chatroom-rm_a", "x")
        .send()
        .await
        .unwrap();
    assert_eq!(over.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(over.headers().contains_key(header::RETRY_AFTER));

    // Rotated, the old one is dead at once; and all of it survives a kill.
    let rotate = host
        .post(&format!("/api/keys/{prefix}/rotate"), &json!({}))
        .send()
        .await
        .unwrap();
    assert_eq!(rotate.status(), StatusCode::OK);
    let new: Value = rotate.json().await.unwrap();
    assert_eq!(
        refused(secret, "chatroom-rm_a").await,
        StatusCode::UNAUTHORIZED
    );
    let bridge = host.key("chat:bridge:cli", 30).await;
    host.process.kill9();
    let file = owner.place().join("host/keys.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    for made in [&new, &bridge] {
        let secret = made["secret"].as_str().unwrap();
        assert!(
            !kept.contains(secret.rsplit('_').next().unwrap()),
            "kept in clear"
        );
    }
    let host = Host::start(&owner, &[]).await;
    let new_secret = new["secret"].as_str().unwrap();
    assert_eq!(
        host.says(new_secret, "chatroom-rm_a", "x").await.0,
        StatusCode::OK
    );
    let bridge_secret = bridge["secret"].as_str().unwrap();
    assert_eq!(
        host.says(bridge_secret, "anything-at-all", "x").await.0,
        StatusCode::OK
    );
    let new_prefix = new["key"]["prefix"].as_str().unwrap();
    let touch = host
        .post(&format!("/api/keys/{new_prefix}/touch"), &json!({}))
        .send()
        .await
        .unwrap();
    let touched: Value = touch.json().await.unwrap();
    assert_eq!(
        touched["key"]["expires_at"], new["key"]["expires_at"],
        "too early to prolong"
    );
    let path = format!("{}/api/keys/{new_prefix}", host.url);
    assert_eq!(
        host.http.delete(&path).send().await.unwrap().status(),
        StatusCode::OK
    );
    assert_eq!(
        host.http.delete(&path).send().await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        host.says(new_secret, "chatroom-rm_a", "x").await.0,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn no_page_no_proxy_and_no_stranger_manages_keys() {
    let server = server().await;
    let owner = owner(&server, "#!/bin/sh\necho hi\n").await;
    let host = Host::start(&owner, &[]).await;
    let wanted = json!({"scope": "chat:bridge:cli", "ttl_seconds": 60, "label": "", "rate_limit": {"per_minute": 1}});
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "127.0.0.1.nip.io:8000"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("x-forwarded-for", "203.0.113.9"),
        ("forwarded", "for=203.0.113.9"),
    ] {
        for request in [
            host.post("/api/keys", &wanted),
            host.http.get(format!("{}/api/keys", host.url)),
        ] {
            let answer = request.header(name, value).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{name}: {value}");
        }
    }
    for wrong in [
        json!({"scope": "admin"}),
        json!({"scope": "chat:bridge:cli", "ttl_seconds": 0}),
        json!({"scope": "chat:bridge:cli", "ttl_seconds": 1e300}),
        json!({"scope": "chat:bridge:cli", "rate_limit": {"per_minute": 0}}),
        json!({"scope": "chat:bridge:cli", "label": "a\nb"}),
        json!({"scope": "chat:bridge:cli", "capabilities": "x".repeat(5000)}),
        json!({"scope": "chat:bridge:cli", "ttl": 5}),
        json!([]),
    ] {
        let answer = host.post("/api/keys", &wrong).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{wrong}");
        let body: Value = answer.json().await.unwrap();
        assert!(
            body["message"].as_str().is_some_and(|why| !why.is_empty()),
            "{body}"
        );
    }
    let large = json!({"scope": "chat:bridge:cli", "label": "x".repeat(20_000)});
    let answer = host.post("/api/keys", &large).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);

    // Behind a proxy on this machine everybody calls from it: keys are managed elsewhere, or not.
    drop(host);
    let public = ["--public-url", "https://agent.example.org"];
    let host = Host::start(&owner, &public).await;
    assert_eq!(host.url, "https://agent.example.org");
    drop(host);
    let mut command = owner.command(&[
        "host",
        "--listen",
        "127.0.0.1:0",
        "--keys-listen",
        "0.0.0.0:0",
    ]);
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(why.contains("loopback"), "{why}");
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_the_call_and_all_it_started() {
    let server = server().await;
    let script = "#!/bin/sh\nread -r msg\nsleep 1000 & echo $$ > started\nwait\n";
    let owner = owner(&server, script).await;
    let host = Host::start(&owner, &[]).await;
    let made = host.key("chat:bridge:cli", 30).await;
    let secret = made["secret"].as_str().unwrap();
    let answer = host.chat(secret, "t", "x").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let started = owner.folder.path().join("started");
    let pid = eventually("the handler runs", async || {
        let pid = std::fs::read_to_string(&started).ok()?;
        (!pid.trim().is_empty()).then(|| pid.trim().to_owned())
    })
    .await;
    drop(answer);
    eventually("the handler and its children are gone", async || {
        let left = Command::new("pgrep").args(["-g", &pid]).output().unwrap();
        (!left.status.success()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_answer_is_streamed_as_it_grows_and_errors_have_words() {
    let server = server().await;
    let owner = owner(&server, "#!/bin/sh\n").await;
    let folder = owner.folder.path();
    std::fs::write(
        folder.join("agent.yaml"),
        "provider: script model.yaml\nsystem: You help.\ntools: {fs: off}\n",
    )
    .unwrap();
    std::fs::write(
        folder.join("model.yaml"),
        "delay_ms: 60\nrules:\n  - say: one two three four five six seven eight\n",
    )
    .unwrap();
    let file = folder.join("agent.yaml");
    let file = file.to_str().unwrap();
    let edit = [
        "byoa",
        "edit",
        &owner.agent,
        "--backend",
        "agent",
        "--agent-file",
        file,
    ];
    owner.types(&edit).await;
    let host = Host::start(&owner, &[]).await;
    let made = host.key("chat:bridge:cli", 30).await;
    let secret = made["secret"].as_str().unwrap();
    let begun = Instant::now();
    let answer = host.chat(secret, "t", "count").send().await.unwrap();
    let mut stream = answer.bytes_stream();
    let (mut all, mut first) = (String::new(), None);
    while let Some(bytes) = stream.next().await {
        all.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        if first.is_none() && !texts(&all).is_empty() {
            first = Some(begun.elapsed());
        }
    }
    let texts = texts(&all);
    assert!(texts.len() >= 3, "it comes in pieces: {texts:?}");
    assert_eq!(texts.concat(), "one two three four five six seven eight");
    assert!(
        first.unwrap() + Duration::from_millis(100) < begun.elapsed(),
        "and not at the end"
    );

    drop(host);
    let edit = [
        "byoa",
        "edit",
        &owner.agent,
        "--backend",
        "custom",
        "--command",
        "exit 3",
    ];
    owner.types(&edit).await;
    let host = Host::start(&owner, &[]).await;
    let (status, said) = host.says(secret, "t", "x").await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        said.contains("event: error") && said.contains("3"),
        "{said}"
    );
}

#[tokio::test]
async fn the_scripts_of_the_skills_work_with_the_host() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = owner(&server, PARROT).await;
    let host = Host::start(&owner, &[]).await;
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills/workroom/scripts");
    let run = async |script: &str, argument: &str| {
        let output = Command::new("python3")
            .arg(scripts.join(script))
            .arg(argument)
            .env("CHATROOM_SERVER_URL", server.url())
            .env("CLAWD_BASE_URL", &host.url)
            .env("AGENT_BASE_URL", &host.url)
            .env("CONTAINER_JWT", server.user_token("u_bob", "Bob"))
            .env("STARCHILD_HOME", owner.home())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{script}: {said}{why}");
        serde_json::from_str::<Value>(&said).unwrap()
    };
    // A user's agent may be at a private address: no setting of the server is needed.
    let joined = run("join.py", &room.invite().await.invite_code).await;
    assert_eq!(joined["user_id"], "u_bob");
    assert_eq!(room.ask("joined").await, "re joined");
    let id = room.id.as_str();
    run("rotate_key.py", id).await;
    assert_eq!(room.ask("rotated").await, "re rotated");
    run("attach.py", id).await;
    assert_eq!(room.ask("attached").await, "re attached");
    assert_eq!(host.keys().await, 1, "older keys are ended");
    let left = run("leave.py", id).await;
    assert_eq!(left["keys_ended"], 1);
    assert_eq!(host.keys().await, 0);
}

#[tokio::test]
async fn a_server_that_may_not_call_here_is_explained() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = owner(&server, OBEY).await;
    let code = room.invite().await.short_code;
    let mut command = owner.command(&["host", "--listen", "127.0.0.1:0", "--room", &code]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let reading = tokio::task::spawn_blocking(move || {
        let (mut all, mut piece) = (String::new(), [0; 4096]);
        while !all.contains("starchild run instead") {
            match stderr.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(n) => all.push_str(&String::from_utf8_lossy(&piece[..n])),
            }
        }
        all
    });
    let said = tokio::time::timeout(Duration::from_secs(60), reading).await;
    let _process = Daemon(child);
    let said = said.expect("it says what to do").unwrap();
    for hint in [
        "--public-url",
        "STARCHILD_USER_TOKEN",
        "fanout.private_endpoints",
    ] {
        assert!(said.contains(hint), "{said}");
    }
}

/// The question about a message, once it is asked.
async fn asked(alice: &Client, room: &Room, seq: i64) -> Consent {
    eventually("somebody is asked", async || {
        let all = alice.consents(&room.id, false).await.unwrap().consents;
        all.into_iter().find(|it| it.reply_to_seq == Some(seq))
    })
    .await
}

/// The owner of an agent that asks before it writes into this folder.
async fn owner_of_a_writer(server: &str, model: &str, project: &Path) -> Owner {
    let file = project.join("agent.yaml");
    let text = format!(
        "provider: {{ kind: openai, model: m, base_url: \"{model}/v1\", retries: 0 }}\n\
         tools: {{fs: write}}\nconfirm: {{from: moderate}}\n"
    );
    std::fs::write(&file, text).unwrap();
    let mut owner = Owner::without_agent();
    owner.env.push(("OPENAI_API_KEY", "k".into()));
    let file = file.to_str().unwrap();
    let add = ["byoa", "add", "--prefix", "curious_otter", "--backend"];
    let add = [
        &add[..],
        &["agent", "--agent-file", file, "--server", server],
    ]
    .concat();
    owner.agent = owner.types(&add).await.trim().to_owned();
    owner
}

#[tokio::test]
async fn a_call_that_overtakes_the_answer_to_the_join_is_answered_with_the_rooms_key() {
    let server = server().await;
    let room = Room::new(&server.alice()).await;
    let model = crate::agent_at_work::model();
    let project = tempfile::tempdir().unwrap();
    let proxy = Proxy::before(&server.url(), Streams::Pass).await;
    let owner = owner_of_a_writer(&proxy.url, &model.url(), project.path()).await;
    let code = room.invite().await.short_code;
    let watcher = Watcher::new(&room).await;
    proxy.hold_answers("join");
    let _host = Host::start(&owner, &["--room", &code, "--display-name", "Otter"]).await;
    is_in(&room, "Otter").await;
    let seq = room.say("@Otter write a.txt").await;
    let called = |event: &Event| match event {
        Event::AgentTyping(typing) => (typing.reply_to_seq == Some(seq)).then_some(()),
        _ => None,
    };
    watcher.sees("the room calls", called).await;
    proxy.release_answers();
    asked(&server.person("u_alice", "Alice"), &room, seq).await;
}

#[tokio::test]
async fn a_hosted_agent_asks_in_the_room_and_its_owners_commands_are_commands() {
    let mut server = server().await;
    let room = Room::new(&server.alice()).await;
    let model = crate::agent_at_work::model();
    let project = tempfile::tempdir().unwrap();
    let owner = owner_of_a_writer(&server.url(), &model.url(), project.path()).await;
    let code = room.invite().await.short_code;
    let _host = Host::start(&owner, &["--room", &code, "--display-name", "Otter"]).await;
    is_in(&room, "Otter").await;
    let alice = server.person("u_alice", "Alice");

    let seq = room.say("@Otter write a.txt").await;
    let question = asked(&alice, &room, seq).await;
    server.kill();
    server.launch();
    eventually("it asks again", async || {
        let log = owner.log();
        (log.matches("asked in the room").count() == 2).then_some(())
    })
    .await;
    let all = alice.consents(&room.id, false).await.unwrap().consents;
    assert_eq!(all.len(), 1, "it is the same question: {all:?}");
    let decision = DecideConsent {
        decision: ConsentDecision::Allow,
        reason: None,
    };
    let decided = alice.decide_consent(&room.id, &question.consent_id, &decision);
    decided.await.unwrap();
    let answer = room.answer(seq).await.content;
    assert!(answer.starts_with("Result: "), "{answer}");
    assert!(project.path().join("a.txt").exists());
    let rounds = model.requests().len();
    assert_eq!(rounds, 2, "the model was asked once for each round");

    // What is stopped asks no more, and the next message is answered for itself.
    let seq = room.say("@Otter write b.txt").await;
    let question = asked(&alice, &room, seq).await;
    let user = format!("ext_{}", owner.agent).parse().unwrap();
    let stopped = alice.stop_turn(&room.id, &user, Some(seq)).await;
    assert!(stopped.unwrap().stopped);
    let now = alice.consent(&room.id, &question.consent_id).await.unwrap();
    assert_eq!(now.state, ConsentState::Withdrawn);
    assert_eq!(room.ask("@Otter count").await, "One two three.");
    assert!(!project.path().join("b.txt").exists());
    assert!(room.answers(seq).await.is_empty());

    let rounds = model.requests().len();
    let me = "u_alice".parse().unwrap();
    let key = room.alice.create_room_key(&room.id, &me, None).await;
    let person = room.alice.with_token(key.unwrap().token).unwrap();
    let message = PostMessage {
        content: "@Otter /cost".into(),
        ..PostMessage::default()
    };
    let posted = person.post_message(&room.id, &message, None).await;
    let cost = room.answer(posted.unwrap().seq).await.content;
    assert!(cost.contains("tokens read"), "{cost}");
    assert_eq!(model.requests().len(), rounds, "no model was asked");
}
