//! What `starchild agent` and the daemon tell a collector: each question and each
//! message is a trace, with the model's and the tools' spans below it.

use crate::backends::Scene;
use crate::harness::eventually;
use crate::organism_observed::{collector, spans};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const AGENT: &str = "\
provider: script
tools: { fs: read }
";

const SCRIPT: &str = "\
rules:
  - {after: fs.glob, say: I looked.}
  - {when: secret, call: {fs.glob: {pattern: '*'}}}
  - say: Nothing.
";

fn write_agent(folder: &Path) -> String {
    std::fs::write(folder.join("script.yaml"), SCRIPT).unwrap();
    let file = folder.join("agent.yaml");
    std::fs::write(&file, AGENT).unwrap();
    file.to_str().unwrap().to_owned()
}

type Spans = BTreeMap<String, Vec<Value>>;

fn one<'a>(spans: &'a Spans, name: &str) -> &'a Value {
    match spans.get(name).map(Vec::as_slice) {
        Some([span]) => span,
        _ => panic!("{name}: {spans:#?}"),
    }
}

/// Two requests and a tool's call between them, below one turn. Nothing that was
/// said is told.
fn check_turn(spans: &Spans) -> &Value {
    let turn = one(spans, "invoke_agent");
    let operation = &turn["attributes"]["gen_ai.operation.name"];
    assert_eq!(operation, "invoke_agent");
    let requests = spans.iter().find(|(name, _)| name.starts_with("chat "));
    let (_, requests) = requests.unwrap_or_else(|| panic!("{spans:#?}"));
    assert_eq!(requests.len(), 2);
    for below in requests.iter().chain([one(spans, "execute_tool fs.glob")]) {
        assert_eq!(below["parent"], turn["id"], "{below}");
        assert_eq!(below["trace"], turn["trace"]);
    }
    assert!(!format!("{spans:?}").contains("secret"), "{spans:#?}");
    turn
}

#[tokio::test]
async fn a_question_to_an_agent_is_a_trace() {
    let (endpoint, kept) = collector().await;
    let folder = tempfile::tempdir().unwrap();
    write_agent(folder.path());
    let mut asked = Command::new(env!("CARGO_BIN_EXE_starchild"));
    asked
        .args(["agent", "ask", "what is the secret?"])
        .current_dir(folder.path())
        .env("STARCHILD_HOME", folder.path().join("home"))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_SERVICE_NAME", "clerk");
    let output = tokio::task::spawn_blocking(move || asked.output());
    let output = output.await.unwrap().unwrap();
    assert_eq!(output.stdout, b"I looked.\n", "{output:?}");
    let spans = spans(&kept).await;
    let turn = check_turn(&spans);
    assert_eq!(
        (&turn["parent"], &turn["service"]),
        (&"".into(), &"clerk".into())
    );
}

#[tokio::test]
async fn each_message_that_the_daemon_answers_is_a_trace() {
    let (endpoint, kept) = collector().await;
    let project = tempfile::tempdir().unwrap();
    let file = write_agent(project.path());
    let add = ["--backend", "agent", "--agent-file", &file];
    let mut scene = Scene::new(&add, async |owner| {
        owner.env.push(("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint));
        // They are sent while the daemon runs, and not only at its end.
        owner.env.push(("OTEL_BSP_SCHEDULE_DELAY", "50".into()));
    })
    .await;
    assert_eq!(scene.ask("what is the secret?").await, "I looked.");
    let (first, message) = eventually("the message's spans come", async || {
        let spans = spans(&kept).await;
        let turn = spans.get("invoke_agent")?[0].clone();
        let mut messages = spans.get("message")?.iter();
        let message = messages.find(|message| message["id"] == turn["parent"])?;
        Some((spans.clone(), message.clone()))
    })
    .await;
    check_turn(&first);
    assert_eq!(message["parent"], "", "a trace of its own");
    let attributes = &message["attributes"];
    assert!(attributes["seq"].as_i64().unwrap() > 0, "{message}");
    assert_eq!(attributes["room"], scene.room.id.as_str());
    assert_eq!(scene.ask("hello").await, "Nothing.");
    scene.daemon.terminate();
    assert!(scene.daemon.ends().await.success());
    let both = spans(&kept).await;
    let turns = both["invoke_agent"].iter();
    let traces: BTreeSet<_> = turns.map(|turn| turn["trace"].to_string()).collect();
    assert_eq!(traces.len(), 2, "{both:#?}");
}
