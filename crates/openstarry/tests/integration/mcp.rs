//! A server from npm that nobody here wrote, over pipes and over HTTP.
//! `install-mcp.sh FOLDER` installs it; `STARCHILD_TEST_MCP` names the folder.

use crate::support::scripted::{Answer, Scripted};
use crate::support::wire::{self, Say, call};
use crate::support::{Reply, Server, within};
use openstarry::provider::ProviderKind;
use openstarry::segment::ContentSegment;
use openstarry::session::{Agent, EndReason, SessionState, Settings};
use openstarry::tool::mcp::{McpConfig, McpServer};
use openstarry::tool::{Registry, Risk};
use serde_json::json;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::{Child, Command};

fn program() -> String {
    let folder = std::env::var("STARCHILD_TEST_MCP").unwrap_or_else(|_| {
        panic!(
            "run crates/openstarry/tests/install-mcp.sh FOLDER and set STARCHILD_TEST_MCP=FOLDER"
        )
    });
    let path = PathBuf::from(folder).join("node_modules/.bin/mcp-server-everything");
    assert!(
        path.exists(),
        "{} is missing: run install-mcp.sh",
        path.display()
    );
    path.to_str().unwrap().to_owned()
}

fn over_pipes() -> McpConfig {
    McpConfig {
        command: Some(program()),
        args: vec!["stdio".into()],
        risk: Some(Risk::Safe),
        ..McpConfig::default()
    }
}

async fn connect(config: &McpConfig) -> (Registry, McpServer) {
    let registry = Registry::new();
    let server = within(McpServer::connect("every", config, &registry, &|_| None))
        .await
        .unwrap();
    (registry, server)
}

#[tokio::test]
async fn a_models_call_goes_to_the_server_and_its_answer_comes_back() {
    let (registry, _server) = connect(&over_pipes()).await;
    let api = Server::start(vec![
        Reply::stream(
            ProviderKind::Anthropic,
            wire::body(
                ProviderKind::Anthropic,
                &[
                    call("a", "mcp__every__get-sum", "{\"a\":2,\"b\":3}"),
                    call("b", "mcp__every__get-sum", "{\"a\":\"two\"}"),
                    call("c", "mcp__every__get-tiny-image", "{}"),
                ],
            ),
        ),
        Reply::stream(
            ProviderKind::Anthropic,
            wire::body(ProviderKind::Anthropic, &[Say::Text("5")]),
        ),
    ])
    .await;
    let agent = Agent::new(
        api.provider(ProviderKind::Anthropic),
        registry,
        Settings::default(),
    );
    let session = agent.session(SessionState::new("s"), None);
    let outcome = within(session.say("add").unwrap().outcome()).await;
    assert_eq!(outcome.end, EndReason::Answered);
    let results = outcome.trace[0].results();
    assert!(
        results[0].text().contains('5') && !results[0].is_error,
        "{:?}",
        results[0]
    );
    assert!(
        results[1].is_error,
        "arguments are checked before the server is asked"
    );
    let image = results[2]
        .content
        .iter()
        .any(|segment| matches!(segment, ContentSegment::Image(_)));
    assert!(image, "{:?}", results[2]);
    let sent = &api.asked()[1].body["messages"][2]["content"];
    assert_eq!(sent[2]["content"][1]["type"], "image", "{sent}");
}

#[tokio::test]
async fn the_user_reaches_the_server_by_a_slash_command() {
    let (registry, _server) = connect(&over_pipes()).await;
    let agent = Agent::new(Scripted::new([]), registry, Settings::default());
    let session = agent.session(SessionState::new("s"), None);
    let outcome = within(session.command("/echo hello there").unwrap().outcome()).await;
    assert!(
        outcome.text().contains("hello there"),
        "{:?}",
        outcome.segments
    );
}

#[tokio::test]
async fn only_the_tools_that_were_granted_are_offered_and_hints_tell_the_risk() {
    let config = McpConfig {
        tools: Some(vec!["echo".into()]),
        risk: None,
        ..over_pipes()
    };
    let (registry, _server) = connect(&config).await;
    let set = registry.snapshot();
    assert_eq!(set.names().collect::<Vec<_>>(), ["mcp__every__echo"]);
    // Its hints say that it only reads.
    assert_eq!(set.get("mcp__every__echo").unwrap().spec().risk, Risk::Safe);
}

#[tokio::test]
async fn a_server_over_http_works_the_same() {
    let (_child, url) = serve_http().await;
    let config = McpConfig {
        url: Some(url),
        risk: Some(Risk::Safe),
        ..McpConfig::default()
    };
    let (registry, _server) = connect(&config).await;
    let provider = Scripted::new([
        Answer::calls(&[("mcp__every__echo", json!({ "message": "over HTTP" }))]),
        Answer::text("done"),
    ]);
    let agent = Agent::new(provider, registry, Settings::default());
    let session = agent.session(SessionState::new("s"), None);
    let outcome = within(session.say("echo").unwrap().outcome()).await;
    assert!(
        outcome.trace[0].results()[0].text().contains("over HTTP"),
        "{:?}",
        outcome.trace
    );
}

/// Starts the server on a free port, and waits until it takes connections.
async fn serve_http() -> (Child, String) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let child = Command::new(program())
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    within(async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    (child, format!("http://127.0.0.1:{port}/mcp"))
}
