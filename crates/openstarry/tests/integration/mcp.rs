//! A server from npm that nobody here wrote, over pipes and over HTTP.
//! `install-mcp.sh FOLDER` installs it; `STARCHILD_TEST_MCP` names the folder.

use crate::support::scripted::{Answer, Scripted};
use crate::support::wire::{self, Say, call};
use crate::support::{Reply, Server, within};
use futures_util::future::BoxFuture;
use openstarry::approval::{Answer as Yes, Approval, Consent, Form, Gate};
use openstarry::provider::ProviderKind;
use openstarry::segment::ContentSegment;
use openstarry::session::{Agent, EndReason, SessionState, Settings};
use openstarry::tool::mcp::{McpConfig, McpHost, McpServer};
use openstarry::tool::{Registry, Risk};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
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
    connect_as(config, McpHost::default()).await
}

async fn connect_as(config: &McpConfig, host: McpHost) -> (Registry, McpServer) {
    let registry = Registry::new();
    let connected = McpServer::connect("every", config, &registry, host, &|_| None);
    let server = within(connected).await.unwrap();
    (registry, server)
}

/// What a tool of the server gives, called by a model.
async fn result_of(registry: Registry, tool: &str, args: Value) -> String {
    result_within(Duration::from_secs(30), registry, tool, args).await
}

/// The same, with a limit for the tool.
async fn result_within(limit: Duration, registry: Registry, tool: &str, args: Value) -> String {
    let calls = Answer::calls(&[(&format!("mcp__every__{tool}"), args)]);
    let provider = Scripted::new([calls, Answer::text("done")]);
    let settings = Settings {
        tool_timeout: limit,
        ..Settings::default()
    };
    let agent = Agent::new(provider, registry, settings);
    let session = agent.session(SessionState::new("s"), None);
    let outcome = within(session.say("go").unwrap().outcome()).await;
    outcome.trace[0].results()[0].text()
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
            // Not a busy loop: the server needs the processor to come up.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    (child, format!("http://127.0.0.1:{port}/mcp"))
}

#[tokio::test]
async fn resources_are_listed_and_read_and_prompts_are_for_people() {
    let (registry, server) = connect(&over_pipes()).await;
    let list = result_of(registry.clone(), "list_resources", json!({})).await;
    assert!(list.contains("demo://resource"), "{list}");
    let uri = "demo://resource/dynamic/text/1";
    let read = result_of(registry.clone(), "read_resource", json!({ "uri": uri })).await;
    assert!(read.starts_with(&format!("[{uri}]")), "{read}");
    let missing = json!({ "uri": "demo://nowhere" });
    let missing = result_of(registry, "read_resource", missing).await;
    assert!(missing.to_lowercase().contains("not found"), "{missing}");
    let prompts = within(server.prompts()).await.unwrap();
    let wanted = prompts.iter().find(|prompt| prompt.name == "args-prompt");
    let arguments = &wanted.unwrap().arguments;
    assert_eq!(*arguments, [("city".into(), true), ("state".into(), false)]);
    let city = json!({ "city": "Taipei" }).as_object().unwrap().clone();
    let said = within(server.prompt("args-prompt", city)).await.unwrap();
    assert_eq!(said, [ContentSegment::text("What's weather in Taipei?")]);
}

/// Says yes to what it is asked, and fills in forms.
struct Willing;

impl Gate for Willing {
    fn ask<'a>(&'a self, consent: &'a Consent) -> BoxFuture<'a, Yes> {
        assert_eq!(consent.call.name, "mcp__every__sampling");
        assert!(consent.call.args.to_string().contains("of the sea"));
        Box::pin(async { Yes::Once })
    }

    fn fill_in<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Option<Value>> {
        assert_eq!(form.server, "every");
        Box::pin(async { Some(json!({ "name": "Ada" })) })
    }
}

fn host(gate: Option<Arc<dyn Gate>>) -> McpHost {
    let mut approval = Approval::default();
    if let Some(gate) = gate {
        approval.gate = gate;
    }
    McpHost {
        approval,
        provider: Some(Scripted::new([Answer::text("a poem of the sea")])),
        roots: Vec::new(),
    }
}

#[tokio::test]
async fn a_server_asks_the_model_only_with_a_yes() {
    let args = json!({ "prompt": "a poem of the sea" });
    let (registry, _server) = connect_as(&over_pipes(), host(Some(Arc::new(Willing)))).await;
    let result = result_of(registry, "trigger-sampling-request", args.clone()).await;
    assert!(result.contains("a poem of the sea"), "{result}");
    assert!(result.contains("scripted"), "the model is named: {result}");
    let (registry, _server) = connect_as(&over_pipes(), host(None)).await;
    let result = result_of(registry, "trigger-sampling-request", args).await;
    assert!(result.contains("Denied"), "{result}");
}

#[tokio::test]
async fn a_server_asks_the_person_where_there_is_one() {
    let (registry, _server) = connect_as(&over_pipes(), host(Some(Arc::new(Willing)))).await;
    let result = result_of(registry, "trigger-elicitation-request", json!({})).await;
    assert!(result.contains("Name: Ada"), "{result}");
    let (registry, _server) = connect_as(&over_pipes(), host(None)).await;
    let result = result_of(registry, "trigger-elicitation-request", json!({})).await;
    assert!(result.contains("declined"), "{result}");
}

#[tokio::test]
async fn a_server_is_told_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let host = McpHost {
        roots: vec![folder.path().into()],
        ..McpHost::default()
    };
    let (registry, _server) = connect_as(&over_pipes(), host).await;
    let result = result_of(registry, "get-roots-list", json!({})).await;
    let path = folder.path().canonicalize().unwrap();
    assert!(
        result.contains(&format!("file://{}", path.display())),
        "{result}"
    );
}

const LIMIT: Duration = Duration::from_secs(3);

#[tokio::test]
async fn progress_extends_the_limit() {
    let (registry, _server) = connect(&over_pipes()).await;
    // Longer than the limit of 3 s, with a sign of life each half second.
    let args = json!({ "duration": 5, "steps": 10 });
    let result = result_within(LIMIT, registry, "trigger-long-running-operation", args).await;
    assert!(result.contains("completed"), "{result}");
}

/// A server on the official SDK that hangs, dies and tells what it was told.
fn own_server(folder: &Path) -> McpConfig {
    let installed = PathBuf::from(std::env::var("STARCHILD_TEST_MCP").unwrap());
    let modules = installed.join("node_modules").canonicalize().unwrap();
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    let script = folder.join("server.mjs");
    std::fs::write(&script, include_str!("../mcp-server.mjs")).unwrap();
    McpConfig {
        command: Some("node".into()),
        args: vec![script.to_str().unwrap().into()],
        risk: Some(Risk::Safe),
        ..McpConfig::default()
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (registry, _server) = connect(&own_server(folder.path())).await;
    let result = result_within(LIMIT, registry, "hang", json!({})).await;
    assert!(result.contains("ended after 3 s"), "{result}");
    let told = folder.path().join("cancelled");
    within(async {
        while !told.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_died_is_started_again_and_its_last_words_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (registry, _server) = connect(&own_server(folder.path())).await;
    let first = result_of(registry.clone(), "pid", json!({})).await;
    let died = result_of(registry.clone(), "die", json!({})).await;
    assert!(died.contains("the disk is full of eels"), "{died}");
    let second = within(async {
        loop {
            let answer = result_of(registry.clone(), "pid", json!({})).await;
            match answer.parse::<u32>() {
                Ok(_) => break answer,
                Err(_) => assert!(answer.contains("started again"), "{answer}"),
            }
        }
    })
    .await;
    assert_ne!(first, second);
}

/// What went wrong, and a long stack behind it.
const STACK: &str = "echo no licence >&2; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo '    at frame' >&2; done; exit 1";

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let config = McpConfig {
        command: Some("sh".into()),
        args: vec!["-c".into(), STACK.into()],
        ..McpConfig::default()
    };
    let host = McpHost::default();
    let registry = Registry::new();
    let connected = McpServer::connect("x", &config, &registry, host, &|_| None);
    let error = within(connected).await.err().unwrap().to_string();
    assert!(error.contains("no licence"), "{error}");
}
