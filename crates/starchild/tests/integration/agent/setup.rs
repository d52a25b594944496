//! What is made once: the agent's file, its model, its sessions' folder.

use super::{User, starchild, starchild_at, text};
use crate::support::wire::Say;
use crate::support::{Reply, Server};
use serde_json::Value;

#[tokio::test]
async fn sessions_belong_to_their_folder() {
    let user = User::with_model(&[&[Say::Text("Noted.")], &[Say::Text("?")]]).await;
    user.types(&["ask", "my colour is blue"], "").await;
    let other = user.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(user.path("agent.yaml"), other.join("agent.yaml")).unwrap();
    let there = |args: &'static [&'static str]| starchild_at(&other, user.folder.path(), args, "");
    let out = there(&["ask", "--resume", "which was it?"]).await;
    assert!(
        text(&out.stderr).contains("no session"),
        "{}",
        text(&out.stderr)
    );
    let out = there(&["sessions"]).await;
    assert_eq!(text(&out.stdout), "", "{}", text(&out.stderr));
    let out = there(&["sessions", "--all", "--json"]).await;
    let list: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(list[0]["first"], "my colour is blue");
    let real = user.folder.path().canonicalize().unwrap();
    assert_eq!(list[0]["folder"], real.to_str().unwrap());
    let id = list[0]["session"].as_str().unwrap();
    let out = user.types(&["sessions"], "").await;
    assert!(text(&out.stdout).starts_with(id), "{}", text(&out.stdout));
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
