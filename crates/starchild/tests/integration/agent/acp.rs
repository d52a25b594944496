//! The same agent for editors, over the Agent Client Protocol.

use super::{KIND, User, text};
use crate::support::wire::{self, Say, call};
use crate::support::{Piece, Reply, within};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::process::Command;

/// An editor that speaks the protocol, line by line.
struct Editor {
    child: tokio::process::Child,
    lines: tokio::io::Lines<tokio::io::BufReader<tokio::process::ChildStdout>>,
    next: u64,
    /// What it was told meanwhile.
    told: Vec<Value>,
}

impl Editor {
    fn open(user: &User) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_starchild"))
            .args(["agent", "acp"])
            .current_dir(user.folder.path())
            .env("STARCHILD_HOME", user.path("home"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines,
            next: 0,
            told: Vec::new(),
        }
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        let keys = self.child.stdin.as_mut().unwrap();
        keys.write_all(line.as_bytes()).await.unwrap();
    }

    async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let (id, version) = (self.next, "2.0");
        self.send(json!({ "jsonrpc": version, "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// The answer to a request. Questions meanwhile are answered with `option`.
    async fn answer(&mut self, id: u64, option: &str) -> Value {
        loop {
            let line = within(self.lines.next_line()).await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == "session/request_permission" {
                let chosen = json!({ "outcome": { "outcome": "selected", "optionId": option } });
                let id = &message["id"];
                self.send(json!({ "jsonrpc": "2.0", "id": id, "result": chosen }))
                    .await;
            }
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.told.push(message);
        }
    }

    async fn call(&mut self, method: &str, params: Value, option: &str) -> Value {
        let id = self.request(method, params).await;
        self.answer(id, option).await
    }
}

#[tokio::test]
async fn an_editor_gets_the_same_agent_over_acp() {
    let write = || {
        [call(
            "a",
            "fs.write",
            "{\"path\":\"b.txt\",\"content\":\"x\"}",
        )]
    };
    let user = User::with_model(&[
        &write(),
        &[Say::Text("not then")],
        &write(),
        &[Say::Text("written")],
        &[Say::Text("again")],
    ])
    .await;
    let mut editor = Editor::open(&user);
    let greeting = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let hello = editor.call("initialize", greeting.clone(), "").await;
    assert_eq!(
        hello["result"]["agentCapabilities"]["loadSession"], true,
        "{hello}"
    );
    let folder = user.folder.path().to_str().unwrap();
    let place = json!({ "cwd": folder, "mcpServers": [] });
    let made = editor.call("session/new", place, "").await;
    let session = made["result"]["sessionId"].as_str().unwrap().to_owned();
    let prompt = |text: &str| {
        let words = [json!({ "type": "text", "text": text })];
        json!({ "sessionId": session, "prompt": words })
    };
    let done = editor
        .call("session/prompt", prompt("write it"), "deny")
        .await;
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert!(!user.path("b.txt").exists());
    let asked = editor
        .told
        .iter()
        .find(|told| told["method"] == "session/request_permission");
    let shown = asked.unwrap().to_string();
    assert!(
        shown.contains("+x") && shown.contains("fs.write"),
        "{shown}"
    );
    editor
        .call("session/prompt", prompt("do write it"), "once")
        .await;
    assert_eq!(std::fs::read_to_string(user.path("b.txt")).unwrap(), "x");
    let told = serde_json::to_string(&editor.told).unwrap();
    for word in ["tool_call_update", "completed", "failed"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let said = editor.told.iter().map(|told| &told["params"]["update"]);
    let said = said.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    let said: String = said
        .filter_map(|update| update["content"]["text"].as_str())
        .collect();
    assert_eq!(said, "not thenwritten");
    drop(editor);

    let mut editor = Editor::open(&user);
    editor.call("initialize", greeting, "").await;
    let place = json!({ "cwd": folder, "mcpServers": [], "sessionId": session });
    let loaded = within(async {
        loop {
            // The first program may not have let go of the session yet.
            let loaded = editor.call("session/load", place.clone(), "").await;
            if loaded.get("error").is_none() {
                break loaded;
            }
        }
    })
    .await;
    assert!(loaded["result"].is_object(), "{loaded}");
    let told = serde_json::to_string(&editor.told).unwrap();
    assert!(
        told.contains("do write it") && told.contains("written"),
        "{told}"
    );
    let gone = editor
        .call(
            "session/prompt",
            json!({ "sessionId": "x", "prompt": [] }),
            "",
        )
        .await;
    assert!(
        gone["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no session"),
        "{gone}"
    );
    let unknown = json!({ "cwd": "relative", "mcpServers": [] });
    let unknown = editor.call("session/new", unknown, "").await;
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("absolute"),
        "{unknown}"
    );
}

#[tokio::test]
async fn an_editor_is_told_why_there_is_no_answer() {
    let flagged = json!({ "message": "Your prompt was flagged.", "type": "invalid_request_error", "code": "invalid_prompt" });
    let user = User::with_replies(vec![Reply::json(400, json!({ "error": flagged }))]).await;
    user.configure("retries: 0", "");
    let mut editor = Editor::open(&user);
    let greeting = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    editor.call("initialize", greeting, "").await;
    let folder = user.folder.path().to_str().unwrap();
    let place = json!({ "cwd": folder, "mcpServers": [] });
    let made = editor.call("session/new", place, "").await;
    let session = &made["result"]["sessionId"];
    let words = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    let done = editor.call("session/prompt", words, "").await;
    assert_eq!(done["result"]["stopReason"], "refusal", "{done}");
    let told = json!(editor.told).to_string();
    assert!(told.contains("Your prompt was flagged."), "{told}");
}

/// `tests/acp/client.mjs` asks, refuses, allows, cancels and opens again, and checks what it gets:
/// the SDK refuses whatever the protocol's schema does not have.
#[tokio::test]
async fn the_official_typescript_client_works_with_it() {
    let sdk = std::env::var("SC_TEST_ACP").unwrap_or_else(|_| {
        panic!("run crates/starchild/tests/acp/install.sh FOLDER and set SC_TEST_ACP=FOLDER")
    });
    let said = |says: &[Say]| Reply::stream(KIND, wire::body(KIND, says));
    let write = || call("a", "fs.write", "{\"path\":\"b.txt\",\"content\":\"x\"}");
    let twice = wire::frames(KIND, &[Say::Text("HalfHalf")]);
    let half = Piece::Bytes(twice[0].clone().into());
    let user = User::with_replies(vec![
        said(&[write()]),
        said(&[Say::Text("not then")]),
        said(&[Say::Think("again?"), write()]),
        said(&[Say::Text("written")]),
        Reply::pieces(KIND, vec![half, Piece::Stall]),
        Reply::json(503, json!({ "error": "busy" })).header("retry-after", "1"),
        said(&[Say::Text("still here")]),
    ])
    .await;
    user.configure("retries: 1", "tools: { fs: write }");
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/client.mjs");
    let done = Command::new("node")
        .args([client, &sdk, env!("CARGO_BIN_EXE_starchild")])
        .arg(user.folder.path())
        .env("STARCHILD_HOME", user.path("home"))
        .kill_on_drop(true)
        .output();
    let done = within(done).await.unwrap();
    assert_eq!(
        text(&done.stdout),
        "all is well\n",
        "{}",
        text(&done.stderr)
    );
    assert_eq!(user.server.asked().len(), 7);
}
