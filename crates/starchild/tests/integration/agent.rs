//! `starchild agent` as a user meets it, with a stand-in for the model.

use crate::support::wire::{self, Say, call};
use crate::support::{Reply, Server, within};
use openstarry::provider::ProviderKind;
use serde_json::Value;
use std::path::Path;
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const KIND: ProviderKind = ProviderKind::Ollama;

struct User {
    folder: tempfile::TempDir,
    server: Server,
}

impl User {
    /// A user whose model says these things, one reply after another.
    async fn with_model(replies: &[&[Say]]) -> Self {
        let replies = replies
            .iter()
            .map(|says| Reply::stream(KIND, wire::body(KIND, says)));
        let server = Server::start(replies.collect()).await;
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "provider: {{ kind: ollama, model: m, base_url: \"{}\", retries: 0 }}\ntools: {{ fs: write }}\n",
            server.url
        );
        std::fs::write(folder.path().join("agent.yaml"), config).unwrap();
        Self { folder, server }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    async fn types(&self, args: &[&str], input: &str) -> Output {
        starchild(self.folder.path(), args, input).await
    }
}

async fn starchild(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .arg("agent")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("STARCHILD_HOME", folder.join("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    within(child.wait_with_output()).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn ask_prints_the_answer_alone_and_the_rest_beside_it() {
    let user = User::with_model(&[
        &[call("a", "fs.list", "{}")],
        &[Say::Text("There is one file.")],
    ])
    .await;
    let out = user.types(&["ask", "what is here?"], "").await;
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stdout), "There is one file.\n");
    assert!(
        text(&out.stderr).contains("→ fs.list"),
        "{}",
        text(&out.stderr)
    );
}

#[tokio::test]
async fn ask_reads_its_question_from_standard_input() {
    let user = User::with_model(&[&[Say::Text("yes")]]).await;
    let out = user.types(&["ask"], "is it you?\n").await;
    assert_eq!(text(&out.stdout), "yes\n");
    assert!(
        user.server.asked()[0]
            .body
            .to_string()
            .contains("is it you?")
    );
    let out = user.types(&["ask"], "  \n").await;
    assert!(!out.status.success());
}

#[tokio::test]
async fn ask_json_gives_segments_and_trace() {
    let user = User::with_model(&[
        &[Say::Text("Let me see."), call("a", "no.such", "{}")],
        &[Say::Text("done")],
    ])
    .await;
    let out = user.types(&["ask", "--json", "go"], "").await;
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["segments"][0]["text"], "done");
    assert_eq!(json["end"]["reason"], "answered");
    assert_eq!(json["trace"][0]["reply"][1]["toolCall"]["name"], "no.such");
    assert_eq!(json["trace"][0]["results"][0]["isError"], true);
    assert_eq!(json["usage"]["inputTokens"], 22);
    assert!(json["session"].is_string());
}

#[tokio::test]
async fn a_dangerous_call_needs_a_yes() {
    let write = call("a", "fs.write", "{\"path\":\"b.txt\",\"content\":\"x\"}");
    let user = User::with_model(&[&[write], &[Say::Text("ok")]]).await;
    let out = user.types(&["ask", "write it"], "y\n").await;
    assert!(
        text(&out.stderr).contains("Denied"),
        "{}",
        text(&out.stderr)
    );
    assert!(!user.path("b.txt").exists());
    let user = User::with_model(&[
        &[call(
            "a",
            "fs.write",
            "{\"path\":\"b.txt\",\"content\":\"x\"}",
        )],
        &[Say::Text("ok")],
    ])
    .await;
    user.types(&["ask", "--yes", "write it"], "").await;
    assert_eq!(std::fs::read_to_string(user.path("b.txt")).unwrap(), "x");
    let audit = std::fs::read_to_string(user.path("home/agents/agent/audit.jsonl")).unwrap();
    assert!(
        audit.contains("\"tool\":\"fs.write\"") && audit.contains("\"principal\":\"agent\""),
        "{audit}"
    );
}

#[tokio::test]
async fn a_session_is_resumed() {
    let user = User::with_model(&[&[Say::Text("Noted.")], &[Say::Text("Blue.")]]).await;
    user.types(&["ask", "my colour is blue"], "").await;
    let out = user.types(&["ask", "--resume", "which was it?"], "").await;
    assert_eq!(text(&out.stdout), "Blue.\n", "{}", text(&out.stderr));
    assert!(
        user.server.asked()[1]
            .body
            .to_string()
            .contains("my colour is blue")
    );
    let out = user.types(&["ask", "--resume=nothing", "x"], "").await;
    assert!(
        text(&out.stderr).contains("no session"),
        "{}",
        text(&out.stderr)
    );
}

#[tokio::test]
async fn a_conversation_takes_questions_and_slash_commands_from_a_pipe() {
    let user = User::with_model(&[&[Say::Text("Hello!")]]).await;
    std::fs::write(user.path("a.txt"), "what the file holds\n").unwrap();
    let out = user
        .types(&["run"], "hi\n/read a.txt\n/nonsense\n/quit\nnever\n")
        .await;
    let said = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    for part in [
        "Hello!",
        "what the file holds",
        "There is no /nonsense",
        "/read",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(user.server.asked().len(), 1);
}

#[tokio::test]
async fn a_model_out_of_reach_is_told_and_fails() {
    let user = User::with_model(&[&[]]).await;
    let config =
        "provider: { kind: openai, model: m, base_url: \"http://127.0.0.1:1\", retries: 0 }";
    std::fs::write(user.path("agent.yaml"), config).unwrap();
    let out = user.types(&["ask", "x"], "").await;
    assert!(!out.status.success());
    assert!(
        text(&out.stderr).contains("connection failed"),
        "{}",
        text(&out.stderr)
    );
    std::fs::write(
        user.path("agent.yaml"),
        "provider: { kind: openai, model: m }",
    )
    .unwrap();
    let out = user.types(&["ask", "x"], "").await;
    assert!(
        text(&out.stderr).contains("OPENAI_API_KEY"),
        "{}",
        text(&out.stderr)
    );
}

#[tokio::test]
async fn init_writes_an_agent_once() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "init",
        "--provider",
        "ollama",
        "--base-url",
        "http://127.0.0.1:1",
    ];
    let out = starchild(folder.path(), &args, "").await;
    assert!(out.status.success(), "{}", text(&out.stderr));
    openstarry::config::AgentConfig::load(&folder.path().join("agent.yaml")).unwrap();
    let out = starchild(folder.path(), &args, "").await;
    assert!(!out.status.success());
    assert!(
        text(&out.stderr).contains("--force"),
        "{}",
        text(&out.stderr)
    );
    let out = starchild(folder.path(), &["ask", "--config", "missing.yaml", "x"], "").await;
    assert!(
        text(&out.stderr).contains("agent init"),
        "{}",
        text(&out.stderr)
    );
}

#[tokio::test]
async fn init_begins_with_the_newest_model_the_server_has_and_models_lists_them() {
    let listed = serde_json::json!({ "models": [
        { "name": "nomic-embed-text:latest", "modified_at": "2026-02-01T00:00:00Z" },
        { "name": "qwen9:8b", "modified_at": "2026-01-01T00:00:00Z" },
        { "name": "llama1:7b", "modified_at": "2024-01-01T00:00:00Z" },
    ] });
    let server = Server::start(vec![Reply::json(200, listed)]).await;
    let folder = tempfile::tempdir().unwrap();
    let address = ["--provider", "ollama", "--base-url", &server.url];
    let out = starchild(folder.path(), &[&["init"], address.as_slice()].concat(), "").await;
    assert!(out.status.success(), "{}", text(&out.stderr));
    let file = std::fs::read_to_string(folder.path().join("agent.yaml")).unwrap();
    assert!(file.contains("model: \"qwen9:8b\""), "{file}");
    let out = starchild(folder.path(), &["models"], "").await;
    let said = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(
        said.contains("* qwen9:8b") && said.contains("  llama1:7b"),
        "{said}"
    );
    let out = starchild(folder.path(), &["models", "--json"], "").await;
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json[1]["id"], "qwen9:8b");
}

#[tokio::test]
async fn an_answer_that_was_cut_or_refused_is_no_success() {
    for (finish, reason, stop, words) in [
        ("length", "incomplete", "max_tokens", "go on"),
        ("content_filter", "refused", "content_filter", "filter"),
    ] {
        let kind = ProviderKind::OpenAi;
        let body = wire::body(kind, &[Say::Text("as I was")]);
        let body = body.replace(
            "\"finish_reason\":\"stop\"",
            &format!("\"finish_reason\":\"{finish}\""),
        );
        let server = Server::start(vec![Reply::stream(kind, body)]).await;
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "provider: {{ kind: openai, model: m, base_url: \"{}\" }}",
            server.url
        );
        std::fs::write(folder.path().join("agent.yaml"), config).unwrap();
        let out = starchild(folder.path(), &["ask", "--json", "go"], "").await;
        assert_eq!(out.status.code(), Some(1));
        let json: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(json["end"]["reason"], reason);
        assert_eq!(json["stop"], stop);
        assert_eq!(json["trace"][0]["stop"], stop);
        let out = starchild(folder.path(), &["ask", "go"], "").await;
        assert_eq!(out.status.code(), Some(1));
        assert!(text(&out.stderr).contains(words), "{}", text(&out.stderr));
    }
}

#[tokio::test]
async fn the_second_provider_answers_with_a_note_where_the_first_does_not() {
    let user = User::with_model(&[&[Say::Text("Here I am.")]]).await;
    let down = Server::start(vec![Reply::json(
        503,
        serde_json::json!({ "error": "down" }),
    )])
    .await;
    let config = format!(
        "providers:\n  - {{ kind: openai, model: a, base_url: \"{}\", retries: 0 }}\n  - {{ kind: ollama, model: b, base_url: \"{}\" }}\n",
        down.url, user.server.url
    );
    std::fs::write(user.path("agent.yaml"), config).unwrap();
    let out = user.types(&["ask", "who?"], "").await;
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stdout), "Here I am.\n");
    assert!(
        text(&out.stderr).contains("gave no answer (the API failed: down), so ollama@"),
        "{}",
        text(&out.stderr)
    );
}
