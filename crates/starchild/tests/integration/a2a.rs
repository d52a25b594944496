//! A2A with the project's own SDKs: as clients of `starchild host`, and as agents behind `backend: a2a`.

use crate::backends::Scene;
use crate::harness::{Daemon, Owner, Server, eventually};
use crate::host::Host;
use crate::stand_in::StandIn;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

/// Answers whatever it is asked, and hangs where it is told to wait.
const HELLO: &str = "#!/bin/sh\nread -r msg\ncase \"$msg\" in *wait*) exec sleep 600 ;; esac\necho 'Hello from Bob.'\n";
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../chatroom/tests/a2a");

fn python(older: bool) -> String {
    let python = std::env::var("SC_TEST_A2A_PYTHON").unwrap_or_else(|_| {
        panic!("run crates/chatroom/tests/a2a/install.sh FOLDER and set SC_TEST_A2A_PYTHON=FOLDER/bin/python")
    });
    match older {
        true => python.replace("/bin/python", "/older/bin/python"),
        false => python,
    }
}

async fn run(older: bool, script: &str, args: &[&str]) -> Value {
    let mut command = tokio::process::Command::new(python(older));
    command.arg(format!("{SCRIPTS}/{script}")).args(args);
    let output = command.kill_on_drop(true).output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn host(args: &[&str]) -> (Server, Owner, Host) {
    let server = Server::start().await;
    let owner = Owner::with_handler(&server, HELLO).await;
    let host = Host::start(&owner, args).await;
    (server, owner, host)
}

fn send(text: &str) -> Value {
    json!({"message": {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

impl Host {
    /// What HTTP+JSON gives.
    async fn a2a(&self, secret: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = self.post(&format!("/a2a{path}"), body).bearer_auth(secret);
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    async fn task(&self, secret: &str, id: &str) -> (StatusCode, Value) {
        let url = format!("{}/a2a/tasks/{id}", self.url);
        let answer = self.http.get(url).bearer_auth(secret).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }
}

#[tokio::test]
async fn the_sdks_speak_with_a_host() {
    let (_server, _owner, host) = host(&["--private-notifications"]).await;
    let key = host.key("chat:bridge:cli", 600).await;
    let secret = key["secret"].as_str().unwrap();
    let hook = StandIn::always("200 OK", "text/plain", "");
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let told = run(
            false,
            "client.py",
            &[&host.url, secret, binding, &hook.url()],
        )
        .await;
        let asked = &told["asked"];
        assert_eq!(asked["status"]["state"], "TASK_STATE_COMPLETED", "{asked}");
        assert_eq!(asked["artifacts"][0]["parts"][0]["text"], "Hello from Bob.");
        assert!(told["without_history"].get("history").is_none());
        assert_eq!(told["again"]["contextId"], asked["contextId"]);
        let events = told["streamed"].as_array().unwrap();
        assert!(events[0].get("task").is_some(), "{events:?}");
        let last = events.last().unwrap();
        let status = ["statusUpdate", "task"].map(|kind| &last[kind]["status"]["state"]);
        assert!(status.contains(&&json!("TASK_STATE_COMPLETED")), "{last}");
        assert_eq!(told["push"]["token"], "another");
        assert_eq!(
            (&told["pushes"], &told["pushes_left"]),
            (&json!(2), &json!(2))
        );
        assert_eq!(told["canceled"]["status"]["state"], "TASK_STATE_CANCELED");
        let followed = told["followed"].as_array().unwrap();
        let last = followed.last().unwrap();
        assert_eq!(
            last["statusUpdate"]["status"]["state"],
            "TASK_STATE_CANCELED"
        );
        assert_eq!(told["listed"]["tasks"].as_array().unwrap().len(), 2);
        assert_eq!(
            told["errors"],
            json!({
                "unknown": "TaskNotFoundError",
                "canceled": "TaskNotCancelableError",
                "over": "UnsupportedOperationError",
                "more": "UnsupportedOperationError",
                "strange": "TaskNotFoundError",
                "empty": "InvalidParamsError",
            })
        );
    }
    let told = run(true, "older_client.py", &[&host.url, secret, &hook.url()]).await;
    for task in ["asked", "got", "streamed"] {
        assert_eq!(told[task]["status"]["state"], "completed", "{told}");
    }
    assert_eq!(told["canceled"]["status"]["state"], "canceled");
    eventually("a notification with its token", async || {
        let got = hook.requests();
        let of = |token: &str| {
            got.iter().any(|request| {
                let header = request.header("x-a2a-notification-token");
                header == Some(token) && request.body.to_lowercase().contains("cancel")
            })
        };
        (of("another") && of("older")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_key_opens_over_a2a_what_it_opens_elsewhere() {
    let (_server, owner, mut host) = host(&[]).await;
    let one = host.key("chat:thread:chatroom-rm_a", 600).await;
    let one = one["secret"].as_str().unwrap();
    let other = host.key("chat:bridge:cli", 600).await;
    let other = other["secret"].as_str().unwrap();
    let nobody = host
        .post("/a2a/message:send", &send("x"))
        .send()
        .await
        .unwrap();
    assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
    let (status, _) = host.a2a("sk_nonsense", "/message:send", &send("x")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let mut elsewhere = send("y");
    elsewhere["message"]["contextId"] = json!("another-thread");
    let (status, refused) = host.a2a(one, "/message:send", &elsewhere).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    let (status, sent) = host.a2a(one, "/message:send", &send("hello")).await;
    assert_eq!(status, StatusCode::OK, "{sent}");
    let task = &sent["task"];
    assert_eq!(task["contextId"], "chatroom-rm_a");
    let id = task["id"].as_str().unwrap();
    assert_eq!(host.task(one, id).await.0, StatusCode::OK);
    // A task is its key's alone, and the same message is the same task.
    let (status, hidden) = host.task(other, id).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(hidden["error"]["details"][0]["reason"], "TASK_NOT_FOUND");
    let (_, again) = host.a2a(one, "/message:send", &send("hello")).await;
    assert_eq!(again["task"]["id"], id);
    // Nobody with a key points the host at its own network.
    for url in [
        host.url.as_str(),
        "http://127.1/",
        "http://[::1]/",
        "http://169.254.169.254/",
        "file:///x",
    ] {
        let path = format!("/tasks/{id}/pushNotificationConfigs");
        let (status, refused) = host.a2a(one, &path, &json!({"url": url})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{url}: {refused}");
    }
    for (body, code) in [
        (json!([]), -32600),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "DropTables"}),
            -32601,
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "../keys"}}),
            -32001,
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send(&"x".repeat(70_000))}),
            -32602,
        ),
    ] {
        let (_, refused) = host.a2a(one, "", &body).await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
    }
    // A task that was in hand when the host died has failed; one that was over is as it was.
    let mut waits = send("wait");
    waits["configuration"] = json!({"returnImmediately": true});
    let (_, waiting) = host.a2a(other, "/message:send", &waits).await;
    let waiting = waiting["task"]["id"].as_str().unwrap().to_owned();
    host.process.kill9();
    drop(host);
    let host = Host::start(&owner, &[]).await;
    let (_, task) = host.task(one, id).await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Hello from Bob.");
    let (_, task) = host.task(other, &waiting).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_what_nobody_else_knows_of() {
    let (_server, _owner, host) = host(&[]).await;
    let key = host.key("chat:bridge:cli", 600).await;
    let secret = key["secret"].as_str().unwrap();
    let asking = host
        .post("/a2a/message:send", &send("wait"))
        .bearer_auth(secret);
    let asking = tokio::spawn(asking.send());
    let list = || async {
        let url = format!("{}/a2a/tasks", host.url);
        let list = host.http.get(url).bearer_auth(secret).send().await.unwrap();
        let list: Value = list.json().await.unwrap();
        list["tasks"][0]["status"]["state"].clone()
    };
    eventually("it works", async || {
        (list().await == "TASK_STATE_WORKING").then_some(())
    })
    .await;
    asking.abort();
    eventually("it is over", async || {
        (list().await == "TASK_STATE_CANCELED").then_some(())
    })
    .await;
}

/// An agent of the SDK's, and what it was asked.
struct SdkAgent {
    _process: Daemon,
    url: String,
    log: std::path::PathBuf,
}

impl SdkAgent {
    fn start(folder: &Path, older: bool, args: &[&str]) -> Self {
        let log = folder.join("agent.log");
        let script = match older {
            true => "older_agent.py",
            false => "agent.py",
        };
        let mut command = Command::new(python(older));
        command
            .arg(format!("{SCRIPTS}/{script}"))
            .args(args)
            .arg(&log);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        let said = child.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut url).unwrap();
        Self {
            _process: Daemon(child),
            url: url.trim().to_owned(),
            log,
        }
    }

    fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[tokio::test]
async fn agents_on_the_sdk_take_part_in_a_room() {
    for (older, args) in [
        (false, &["JSONRPC", "1.0", "yes"][..]),
        (false, &["HTTP+JSON", "1.0", "yes"]),
        (false, &["HTTP+JSON", "1.0", "no"]),
        (false, &["JSONRPC", "0.3", "no"]),
        (true, &["yes"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let agent = SdkAgent::start(folder.path(), older, args);
        let add = [
            "--backend",
            "a2a",
            "--url",
            &agent.url,
            "--token-env",
            "COUNTER_TOKEN",
        ];
        let scene = Scene::new(&add, async |owner| {
            owner.env.push(("COUNTER_TOKEN", "let-me-in".into()));
        })
        .await;
        assert_eq!(scene.ask("how many?").await, "Seven of them.", "{args:?}");
        // What it asks for is the answer, and the next message goes to the same task.
        assert_eq!(scene.ask("which one").await, "The red or the blue?");
        assert_eq!(scene.ask("the red").await, "Seven of them.");
        let log = agent.log();
        assert!(log[0]["asked"].as_str().unwrap().contains("how many?"));
        let contexts: Vec<_> = log.iter().map(|one| &one["context"]).collect();
        assert!(contexts.iter().all(|one| *one == contexts[0]), "{log:?}");
        assert_eq!(log[1]["task"], log[2]["task"], "{log:?}");
        assert_ne!(log[0]["task"], log[1]["task"]);
        // When it is stopped, its task is cancelled.
        let seq = scene
            .room
            .say(&format!("{} wait for ever", scene.mention()))
            .await;
        eventually("it is asked", async || {
            (agent.log().len() >= 4).then_some(())
        })
        .await;
        let (alice, user) = (&scene.room.alice, scene.user());
        let stopped = alice.stop_turn(&scene.room.id, &user, Some(seq));
        stopped.await.unwrap();
        eventually("its task is cancelled", async || {
            agent
                .log()
                .iter()
                .any(|one| one.get("cancelled").is_some())
                .then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_card_does_not_lead_elsewhere() {
    let elsewhere = StandIn::always("200 OK", "application/json", "{}");
    // Another name for this machine is another host, and a private one.
    let url = elsewhere.url().replace("127.0.0.1", "127.0.0.2");
    let card = json!({"name": "X", "capabilities": {"streaming": true},
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
    let agent = StandIn::always("200 OK", "application/json", &card.to_string());
    let scene = Scene::new(&["--backend", "a2a", "--url", &agent.url()], async |_| {}).await;
    scene.room.say(&format!("{} hello", scene.mention())).await;
    eventually("it is refused", async || {
        scene
            .owner
            .log()
            .contains("private address on another host")
            .then_some(())
    })
    .await;
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn an_a2a_agent_needs_an_address_and_its_token() {
    let server = Server::start().await;
    let owner = Owner::without_agent();
    let url = server.url();
    let add = [
        "byoa",
        "add",
        "--prefix",
        "curious_otter",
        "--server",
        &url,
        "--backend",
        "a2a",
    ];
    let failed = owner.tries(&add).await;
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(
        !failed.status.success() && said.contains("needs url"),
        "{said}"
    );
    let with = [
        &add[..],
        &[
            "--url",
            "https://agent.example",
            "--token-env",
            "NOT_SET_ANYWHERE",
        ],
    ]
    .concat();
    owner.types(&with).await;
    let doctor = owner.tries(&["doctor"]).await;
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("NOT_SET_ANYWHERE"), "{said}");
}
