//! `starchild agent` as a user meets it, with a stand-in for the model.

use crate::support::wire::{self, Say, call};
use crate::support::{Piece, Reply, Server, within};
use openstarry::provider::ProviderKind;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Output, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
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
        Self::with_replies(replies.collect()).await
    }

    /// A user whose model answers with these replies.
    async fn with_replies(replies: Vec<Reply>) -> Self {
        let server = Server::start(replies).await;
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
    starchild_at(folder, folder, args, input).await
}

/// Run in `folder`, with its home below `user`.
async fn starchild_at(folder: &Path, user: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .arg("agent")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("STARCHILD_HOME", user.join("home"))
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
    let audit = std::fs::read_to_string(place_of(&user).join("audit.jsonl")).unwrap();
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

/// The one folder in which the user's agent keeps its things.
fn place_of(user: &User) -> std::path::PathBuf {
    let mut places = std::fs::read_dir(user.path("home/agents/agent")).unwrap();
    let place = places.next().unwrap().unwrap().path();
    assert!(places.next().is_none(), "one folder, one place");
    place
}

#[tokio::test]
async fn what_comes_through_a_pipe_is_words_whatever_it_begins_with() {
    let user = User::with_model(&[&[Say::Text("Hello!")], &[Say::Text("No.")]]).await;
    let out = user.types(&["run"], "hi\n/write a.txt x\n").await;
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stdout), "Hello!\nNo.\n");
    assert!(
        user.server.asked()[1]
            .body
            .to_string()
            .contains("/write a.txt x")
    );
    let user = User::with_model(&[&[Say::Text("No.")]]).await;
    user.types(&["ask", "/write a.txt x"], "").await;
    assert!(
        user.server.asked()[0]
            .body
            .to_string()
            .contains("/write a.txt x")
    );
    assert!(!user.path("a.txt").exists());
}

/// In place of what is typed: the program is killed.
const KILL: &str = "kill -9";

/// Types at a terminal: waits for each text to appear, then types what follows
/// it. Gives all that was shown.
async fn at_terminal(user: &User, args: &str, talk: &[(&str, &str)]) -> String {
    let line = format!("exec {} agent {args}", env!("CARGO_BIN_EXE_starchild"));
    let mut child = Command::new("script")
        .args(["-qfec", &line, "/dev/null"])
        .current_dir(user.folder.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("STARCHILD_HOME", user.path("home"))
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut shown = Vec::new();
    let mut seen = 0;
    for (wanted, typed) in talk {
        within(async {
            loop {
                if let Some(at) = text(&shown[seen..]).find(wanted) {
                    seen += at + wanted.len();
                    break;
                }
                let read = screen.read_buf(&mut shown).await.unwrap();
                assert!(read > 0, "{wanted} never came: {}", text(&shown));
            }
        })
        .await;
        match *typed {
            KILL => kill_child_of(child.id().unwrap()),
            typed => keys.write_all(typed.as_bytes()).await.unwrap(),
        }
    }
    within(screen.read_to_end(&mut shown)).await.unwrap();
    text(&shown)
}

fn kill_child_of(pid: u32) {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let child = children.split_whitespace().next().unwrap();
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-KILL", child]).status().unwrap().success());
}

#[tokio::test]
async fn the_owner_of_a_terminal_has_commands_and_a_resume_line_that_works() {
    let user = User::with_model(&[&[Say::Text("**Hello!**")], &[Say::Text("Again.")]]).await;
    std::fs::write(user.path("a.txt"), "what the file holds\n").unwrap();
    let talk = [
        ("> ", "hi\r"),
        ("Hello!", ""),
        ("> ", "/read a.txt\r"),
        ("what the file holds", ""),
        ("> ", "/nonsense\r"),
        ("There is no /nonsense", ""),
        ("> ", "/quit\r"),
    ];
    let shown = at_terminal(&user, "run", &talk).await;
    assert!(
        shown.contains("\u{1b}[1mHello!"),
        "bold is drawn: {shown:?}"
    );
    assert!(!shown.contains("**"), "{shown:?}");
    assert_eq!(user.server.asked().len(), 1);
    let (_, line) = shown.split_once("To go on: starchild agent ").unwrap();
    let line = line.split(['\r', '\u{1b}']).next().unwrap();
    let args: Vec<&str> = line.split(' ').collect();
    // Copied into another folder, with a question piped in.
    let elsewhere = tempfile::tempdir().unwrap();
    let out = starchild_at(elsewhere.path(), user.folder.path(), &args, "more\n").await;
    assert_eq!(text(&out.stdout), "Again.\n", "{}", text(&out.stderr));
    assert!(user.server.asked()[1].body.to_string().contains("Hello!"));
}

#[tokio::test]
async fn a_change_is_shown_as_a_diff_and_answered_with_yes_always_or_a_reason() {
    let write = |content: &str| {
        let args = serde_json::json!({ "path": "b.txt", "content": content }).to_string();
        vec![call("a", "fs.write", Box::leak(args.into_boxed_str()))]
    };
    let (one, two, three) = (write("one\n"), write("two\n"), write("three\n"));
    let ok = [Say::Text("ok")];
    let user = User::with_model(&[&one, &two, &ok, &three, &ok]).await;
    let talk = [
        ("> ", "go\r"),
        ("+one", ""),
        ("run it?", "use another file\r"),
        ("+two", ""),
        ("run it?", "s\r"),
        ("ok", ""),
        ("> ", "again\r"),
        ("ok", ""),
        ("> ", "/quit\r"),
    ];
    let shown = at_terminal(&user, "run", &talk).await;
    assert_eq!(shown.matches("@@ -0,0").count(), 2, "{shown}");
    assert_eq!(
        std::fs::read_to_string(user.path("b.txt")).unwrap(),
        "three\n"
    );
    let told = user.server.asked()[1].body.to_string();
    assert!(told.contains("use another file"), "{told}");
}

#[tokio::test]
async fn ctrl_c_cancels_the_turn_wherever_it_is_and_no_more() {
    let write = [call(
        "a",
        "fs.write",
        "{\"path\":\"b.txt\",\"content\":\"x\"}",
    )];
    let user = User::with_model(&[&write, &[Say::Text("still here")]]).await;
    let talk = [
        ("> ", "go\r"),
        ("run it?", "\u{3}"),
        ("cancelled", ""),
        ("> ", "hello\r"),
        ("still here", ""),
        ("> ", "/quit\r"),
    ];
    at_terminal(&user, "run", &talk).await;
    assert!(!user.path("b.txt").exists());
}

/// A running `starchild agent`.
fn starts(user: &User, args: &[&str]) -> tokio::process::Child {
    Command::new(env!("CARGO_BIN_EXE_starchild"))
        .arg("agent")
        .args(args)
        .current_dir(user.folder.path())
        .env_clear()
        .env("STARCHILD_HOME", user.path("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn resume_goes_on_with_the_question_that_was_interrupted() {
    let stall = Reply::pieces(KIND, vec![Piece::Stall]);
    let said = |text| Reply::stream(KIND, wire::body(KIND, &[Say::Text(text)]));
    let user = User::with_replies(vec![said("Hello."), stall, said("Blue.")]).await;
    user.types(&["ask", "hello"], "").await;
    let mut asking = starts(&user, &["ask", "my colour is blue; which is it?"]);
    within(async {
        while user.server.asked().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let pid = asking.id().unwrap().to_string();
    std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .unwrap();
    let ended = within(asking.wait()).await.unwrap();
    assert_eq!(ended.code(), Some(130));
    let out = user.types(&["ask", "--resume", "well?"], "").await;
    assert_eq!(text(&out.stdout), "Blue.\n", "{}", text(&out.stderr));
    let told = user.server.asked()[2].body.to_string();
    assert!(told.contains("my colour is blue"), "{told}");
}

#[tokio::test]
async fn a_call_that_waits_for_a_yes_survives_kill_9() {
    let write = [call(
        "a",
        "fs.write",
        "{\"path\":\"b.txt\",\"content\":\"x\"}",
    )];
    let user = User::with_model(&[&write, &[Say::Text("It is written.")]]).await;
    let talk = [("> ", "go\r"), ("run it?", KILL)];
    at_terminal(&user, "run", &talk).await;
    assert!(!user.path("b.txt").exists());
    let talk = [
        ("run it?", "y\r"),
        ("It is written.", ""),
        ("> ", "/quit\r"),
    ];
    at_terminal(&user, "run --resume", &talk).await;
    assert_eq!(std::fs::read_to_string(user.path("b.txt")).unwrap(), "x");
    assert_eq!(
        user.server.asked().len(),
        2,
        "the model was not asked again"
    );
}

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
async fn a_picture_goes_with_the_question_and_nothing_else_does() {
    let user = User::with_model(&[&[Say::Text("A cat.")]]).await;
    std::fs::write(user.path("cat.png"), [0x89, b'P', b'N', b'G', 1, 2, 3]).unwrap();
    let out = user
        .types(&["ask", "--image", "cat.png", "what is it?"], "")
        .await;
    assert_eq!(text(&out.stdout), "A cat.\n", "{}", text(&out.stderr));
    let asked = user.server.asked()[0].body.to_string();
    assert!(asked.contains("iVBORwECAw=="), "{asked}");
    let out = user.types(&["ask", "--image", "agent.yaml", "x"], "").await;
    assert!(
        text(&out.stderr).contains("want a picture"),
        "{}",
        text(&out.stderr)
    );
}

#[tokio::test]
async fn a_reader_who_leaves_is_no_failure_to_talk_about() {
    let long = "words ".repeat(100_000);
    let user = User::with_model(&[&[Say::Text(Box::leak(long.into_boxed_str()))]]).await;
    let line = format!(
        "{} agent ask x | head -c 10",
        env!("CARGO_BIN_EXE_starchild")
    );
    let out = Command::new("sh")
        .args(["-c", &line])
        .current_dir(user.folder.path())
        .env("STARCHILD_HOME", user.path("home"))
        .output();
    let out = within(out).await.unwrap();
    assert_eq!(text(&out.stdout), "words word");
    assert!(
        !text(&out.stderr).contains("roken pipe"),
        "{}",
        text(&out.stderr)
    );
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
