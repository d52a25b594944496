//! `starchild organism` with models, as their APIs meet it.

use crate::support::wire::{self, Say};
use crate::support::{ALL, Reply, Server, within};
use openstarry::provider::ProviderKind;
use serde_json::json;
use std::process::{Output, Stdio};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const ORGANISM: &str = "\
organism: poets
payloads:
  - {name: Ask, fields: [{name: text}]}
  - {name: Told, fields: [{name: text}]}
listeners:
  - name: poet
    agent: true
    prompt: You are a poet.
    accepts: [Ask]
    kind: {llm: {answer: Told}}
gateways:
  - {name: console, peers: [poet]}
models:
  backends:
";

/// A folder with an organism whose models are these.
fn folder(backends: &[String]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let backends: String = backends
        .iter()
        .map(|b| format!("    - {{{b}}}\n"))
        .collect();
    std::fs::write(
        folder.path().join("organism.yaml"),
        format!("{ORGANISM}{backends}"),
    )
    .unwrap();
    folder
}

async fn organism(folder: &TempDir, command: &str, keys: &[(&str, &str)]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .args(["organism", command])
        .current_dir(folder.path())
        .env_clear()
        .envs(keys.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A check reads nothing.
    let _ = stdin.write_all(b"<Ask><text>A poem</text></Ask>\n").await;
    drop(stdin);
    within(child.wait_with_output()).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn saying(kind: ProviderKind, words: &'static str) -> Reply {
    let says = [Say::Think("Hm."), Say::Text(words)];
    Reply::stream(kind, wire::body(kind, &says))
}

#[tokio::test]
async fn a_model_of_each_kind_is_told_its_task_and_answers() {
    for kind in ALL {
        let server = Server::start(vec![saying(kind, "Roses & violets")]).await;
        let folder = folder(&[format!(
            "kind: {}, base_url: '{}', model: m, key_env: OURS",
            kind.word(),
            server.url
        )]);
        let out = organism(&folder, "run", &[("OURS", "secret-key")]).await;
        assert_eq!(
            text(&out.stdout),
            "<Told><text>Roses &amp; violets</text></Told>\n",
            "{kind:?}: {}",
            text(&out.stderr)
        );
        let asked = &server.asked()[0];
        let path = match kind {
            ProviderKind::Responses => "/responses",
            ProviderKind::OpenAi => "/chat/completions",
            ProviderKind::Anthropic => "/v1/messages",
            ProviderKind::Gemini => "/models/m:streamGenerateContent?alt=sse",
            ProviderKind::Ollama => "/api/chat",
        };
        assert_eq!(asked.path, path);
        assert!(asked.head.contains("secret-key"), "{}", asked.head);
        let body = asked.body.to_string();
        for part in [
            "You are a poet.",
            "<from>console</from></meta><Ask><text>A poem</text></Ask>",
        ] {
            assert!(body.contains(part), "{kind:?}: {body}");
        }
    }
}

#[tokio::test]
async fn a_model_of_each_kind_is_offered_its_payloads_as_tools_and_answers_by_calling_one() {
    for kind in ALL {
        let says = [wire::call(
            "call_1",
            "answer_Told",
            r#"{"text": "Roses & <violets>"}"#,
        )];
        let server = Server::start(vec![Reply::stream(kind, wire::body(kind, &says))]).await;
        let folder = folder(&[format!(
            "kind: {}, base_url: '{}', model: m, key_env: OURS",
            kind.word(),
            server.url
        )]);
        let out = organism(&folder, "run", &[("OURS", "secret-key")]).await;
        assert_eq!(
            text(&out.stdout),
            "<Told><text>Roses &amp; &lt;violets&gt;</text></Told>\n",
            "{kind:?}: {}",
            text(&out.stderr)
        );
        let body = server.asked()[0].body.to_string();
        assert!(body.contains("answer_Told"), "{kind:?}: {body}");
    }
}

/// A run with a journal, talked to line by line.
struct Talk {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    fn start(folder: &TempDir) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_starchild"))
            .args(["organism", "run", "--state", "state"])
            .current_dir(folder.path())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    /// Sends a payload and waits for this answer; older ones may come again.
    async fn ask(&mut self, asked: &str, answer: &str) {
        let line = format!("<Ask><text>{asked}</text></Ask>\n");
        within(self.stdin.write_all(line.as_bytes())).await.unwrap();
        loop {
            let line = within(self.lines.next_line()).await.unwrap().unwrap();
            if line == format!("<Told><text>{answer}</text></Told>") {
                return;
            }
        }
    }

    async fn kill(mut self) {
        self.child.start_kill().unwrap();
        within(self.child.wait()).await.unwrap();
    }
}

#[tokio::test]
async fn a_model_remembers_a_live_thread_after_a_kill() {
    let kind = ProviderKind::Anthropic;
    let replies = ["Roses", "Violets", "Tulips"].map(|words| saying(kind, words));
    let server = Server::start(replies.to_vec()).await;
    let folder = folder(&[format!(
        "kind: anthropic, base_url: '{}', model: m",
        server.url
    )]);
    let mut talk = Talk::start(&folder);
    talk.ask("First", "Roses").await;
    talk.kill().await;
    let mut talk = Talk::start(&folder);
    talk.ask("Second", "Violets").await;
    talk.kill().await;
    let mut talk = Talk::start(&folder);
    talk.ask("Third", "Tulips").await;
    let asked = server.asked();
    assert_eq!(asked.len(), 3, "nothing is asked twice that was answered");
    let roles = |index: usize| {
        let messages = asked[index].body["messages"].as_array().unwrap();
        let roles = messages.iter().map(|said| said["role"].as_str().unwrap());
        roles.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(roles(0), ["user"]);
    assert_eq!(roles(1), ["user", "assistant", "user"]);
    let last = asked[2].body.to_string();
    for said in ["First", "Roses", "Second", "Violets", "Third"] {
        assert!(last.contains(said), "{said}: {last}");
    }
}

#[tokio::test]
async fn a_scripted_model_needs_no_network_and_calls_tools_as_others_do() {
    let folder = folder(&["script: poems.yaml".to_owned()]);
    let script = "delay_ms: 0\nrules:\n  \
                  - {when: '<text>A (\\w+)', call: {answer_Told: {text: 'Here is a $1 & more'}}}\n  \
                  - {say: What?}\n";
    std::fs::write(folder.path().join("poems.yaml"), script).unwrap();
    let out = organism(&folder, "run", &[]).await;
    assert_eq!(
        text(&out.stdout),
        "<Told><text>Here is a poem &amp; more</text></Told>\n",
        "{}",
        text(&out.stderr)
    );
    let mut talk = Talk::start(&folder);
    talk.ask("Nothing of the kind", "What?").await;
}

#[tokio::test]
async fn a_model_of_no_named_kind_speaks_like_openai_and_need_not_stream() {
    let answer =
        json!({ "choices": [{ "message": { "content": "Roses" }, "finish_reason": "stop" }] });
    let server = Server::start(vec![Reply::json(200, answer)]).await;
    let folder = folder(&[format!("base_url: '{}/v1', model: m", server.url)]);
    let keys = [("OPENAI_API_KEY", "not-for-others")];
    let out = organism(&folder, "run", &keys).await;
    assert_eq!(text(&out.stdout), "<Told><text>Roses</text></Told>\n");
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/chat/completions");
    assert!(!asked.head.contains("not-for-others"), "{}", asked.head);
}

#[tokio::test]
async fn a_backend_that_fails_is_asked_once_before_the_next() {
    let failing = Server::start(vec![
        Reply::json(503, json!({})).header("retry-after", "3600"),
    ])
    .await;
    let well = Server::start(vec![saying(ProviderKind::Ollama, "Roses")]).await;
    let folder = folder(&[
        format!(
            "kind: ollama, base_url: '{}', model: m, priority: 2",
            well.url
        ),
        format!(
            "kind: anthropic, base_url: '{}', model: m, priority: 1",
            failing.url
        ),
    ]);
    let out = organism(&folder, "run", &[]).await;
    assert_eq!(text(&out.stdout), "<Told><text>Roses</text></Told>\n");
    assert_eq!((failing.asked().len(), well.asked().len()), (1, 1));
}

#[tokio::test]
async fn a_refused_key_is_told_to_the_caller_and_not_tried_again() {
    let server = Server::start(vec![Reply::json(401, json!({ "error": "who are you" }))]).await;
    let folder = folder(&[format!("base_url: '{}', model: m", server.url)]);
    let out = organism(&folder, "run", &[]).await;
    assert!(text(&out.stdout).contains("<code>handler</code>"));
    assert!(
        text(&out.stderr).contains("who are you"),
        "the log says why"
    );
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_missing_key_is_told_when_the_model_is_asked_and_not_before() {
    let folder = folder(&["kind: gemini, model: m".to_owned()]);
    let out = organism(&folder, "check", &[]).await;
    assert!(out.status.success(), "{}", text(&out.stderr));
    let out = organism(&folder, "run", &[]).await;
    assert!(text(&out.stdout).contains("<code>handler</code>"));
    assert!(
        text(&out.stderr).contains("set GEMINI_API_KEY"),
        "{}",
        text(&out.stderr)
    );
}

#[tokio::test]
async fn check_tells_what_is_wrong_with_a_model() {
    for (backend, told) in [
        (
            "kind: parrot, model: m",
            "organism.yaml:15:14: unknown variant",
        ),
        (
            "base_url: 'ftp://x', model: m",
            "want an http or https address",
        ),
        (
            "model: m, timeout_seconds: 0",
            "timeout_seconds: want seconds above 0",
        ),
        ("priority: 1", "a backend needs a `model`, or a `script`"),
        (
            "model: m, script: s.yaml",
            "a backend needs a `model`, or a `script`",
        ),
        (
            "script: s.yaml, base_url: 'http://x'",
            "a `script` has no `base_url`",
        ),
        ("script: none.yaml", "the script"),
    ] {
        let out = organism(&folder(&[backend.to_owned()]), "check", &[]).await;
        assert!(!out.status.success(), "{backend}");
        assert!(text(&out.stderr).contains(told), "{}", text(&out.stderr));
    }
}
