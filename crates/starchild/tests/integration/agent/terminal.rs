//! A conversation at a terminal.

use super::{KIND, User, starchild_at, text};
use crate::support::wire::{self, Say, call};
use crate::support::{Piece, Reply, within};
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

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
async fn a_call_that_changes_nothing_is_shown_before_its_question() {
    let write = "{\"path\":\"b.txt\",\"content\":\"same\"}";
    let user = User::with_model(&[&[call("a", "fs.write", write)], &[Say::Text("ok")]]).await;
    std::fs::write(user.path("b.txt"), "same").unwrap();
    let talk = [
        ("> ", "go\r"),
        ("→ fs.write", ""),
        ("run it?", "no thanks.\r"),
        ("ok", ""),
        ("> ", "/quit\r"),
    ];
    let shown = at_terminal(&user, "run", &talk).await;
    assert!(shown.contains("no thanks. Do not repeat"), "{shown}");
}

#[tokio::test]
async fn always_is_for_good_and_no_is_no_answer_of_the_models() {
    let write = |content: &str| {
        let args = json!({ "path": "b.txt", "content": content }).to_string();
        vec![call("a", "fs.write", Box::leak(args.into_boxed_str()))]
    };
    let ok = [Say::Text("as you wish")];
    let writes = ["one", "two", "three", "four", "five"].map(write);
    let [one, two, three, four, five] = &writes;
    let user = User::with_model(&[one, &ok, two, &ok, three, four, &ok, five, &ok]).await;
    let written = || std::fs::read_to_string(user.path("b.txt")).unwrap_or_default();
    let talk = [
        ("> ", "go\r"),
        ("run it?", "no\r"),
        ("as you wish", ""),
        ("> ", "go\r"),
        ("run it?", "yes\r"),
        ("as you wish", ""),
        ("> ", "go\r"),
        ("run it?", "always\r"),
        ("from now on, without a question: ", ""),
        ("as you wish", ""),
        ("> ", "/quit\r"),
    ];
    let shown = at_terminal(&user, "run", &talk).await;
    assert_eq!(shown.matches("run it?").count(), 3, "{shown}");
    assert!(user.server.asked()[1].body.to_string().contains("Denied"));
    assert_eq!(written(), "four");
    let talk = [("> ", "go\r"), ("as you wish", ""), ("> ", "/quit\r")];
    let shown = at_terminal(&user, "run", &talk).await;
    assert!(!shown.contains("run it?"), "another session: {shown}");
    assert_eq!(written(), "five");
}

#[tokio::test]
async fn ctrl_c_cancels_the_turn_wherever_it_is_and_no_more() {
    let write = "{\"path\":\"b.txt\",\"content\":\"x\"}";
    let sleep = "{\"command\":\"sleep 61.25\"}";
    let said = |says: &[Say]| Reply::stream(KIND, wire::body(KIND, says));
    let twice = wire::frames(KIND, &[Say::Text("Half of Half of ")]);
    let half = Piece::Bytes(twice[0].clone().into());
    let thought = wire::frames(KIND, &[Say::Think("what could it be")]);
    let thought = Piece::Bytes(thought[0].clone().into());
    let busy = Reply::json(503, json!({ "error": "busy" })).header("retry-after", "50");
    let user = User::with_replies(vec![
        said(&[call("a", "fs.write", write)]),
        Reply::pieces(KIND, vec![Piece::Stall]),
        Reply::pieces(KIND, vec![half, Piece::Stall]),
        busy,
        said(&[call("b", "shell.run", sleep)]),
        Reply::pieces(KIND, vec![thought, Piece::Stall]),
        said(&[Say::Text("still here")]),
    ])
    .await;
    user.configure(
        "retries: 3",
        "tools: { fs: write, shell: { allow: [sleep] } }\nconfirm: { rules: [{ allow: shell.run }] }",
    );
    const CTRL_C: &str = "\u{3}";
    let talk = [
        ("> ", "one\r"),
        ("run it?", CTRL_C),
        ("cancelled", ""),
        ("> ", "two\r"),
        ("waiting for the model", CTRL_C),
        ("cancelled", ""),
        ("> ", "three\r"),
        ("Half of", CTRL_C),
        ("cancelled", ""),
        ("> ", "four\r"),
        ("trying again in 50 s", CTRL_C),
        ("cancelled", ""),
        ("> ", "five\r"),
        ("→ shell.run", CTRL_C),
        ("cancelled", ""),
        ("> ", CTRL_C),
        ("> ", "and\r"),
        ("· thinking", CTRL_C),
        ("· thought for", ""),
        ("cancelled", ""),
        ("> ", "six\r"),
        ("still here", ""),
        ("> ", "/quit\r"),
    ];
    at_terminal(&user, "run", &talk).await;
    assert!(!user.path("b.txt").exists());
    assert_eq!(user.server.asked().len(), 7);
    within(async {
        while sleeps("61.25") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Whether a program sleeps for so long.
fn sleeps(time: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let line = format!("sleep\0{time}\0");
    let mut lines = processes.filter_map(|each| std::fs::read(each.path().join("cmdline")).ok());
    lines.any(|found| found == line.as_bytes())
}

#[tokio::test]
async fn thoughts_are_folded_code_and_tables_are_drawn_and_a_wait_tells_its_seconds() {
    let says = [
        Say::Think("what could it be"),
        Say::Text("See:\n\n```rust\nlet a = \"b\"; // c\n```\n"),
        Say::Text("| item | price |\n|---|--:|\n| tea | 3 |\nThat is *all*."),
    ];
    let mut frames = wire::frames(KIND, &says).into_iter();
    let mut pieces = vec![
        Piece::Bytes(frames.next().unwrap().into()),
        Piece::Pause(Duration::from_millis(1500)),
    ];
    pieces.extend(frames.map(|frame| Piece::Bytes(frame.into())));
    let busy = Reply::json(503, json!({ "error": "busy" })).header("retry-after", "2");
    let user = User::with_replies(vec![busy, Reply::pieces(KIND, pieces)]).await;
    user.configure("retries: 1", "");
    let talk = [
        ("> ", "well?\r"),
        ("trying again in 2 s", ""),
        ("trying again in 1 s", ""),
        ("· thinking", ""),
        ("· thought for 1.", ""),
        ("all", ""),
        ("> ", "/thoughts\r"),
        ("what could it be", ""),
        ("> ", "/quit\r"),
    ];
    let shown = at_terminal(&user, "run", &talk).await;
    for drawn in ["\u{1b}[35mlet\u{1b}[0m", "\u{1b}[2m// c", "\u{1b}[3mall"] {
        assert!(shown.contains(drawn), "{drawn:?}: {shown:?}");
    }
    assert!(!shown.contains("|--"), "a table has no marks: {shown}");
    let columns = "\u{1b}[2m │ \u{1b}[0m    3";
    assert!(
        shown.contains(columns),
        "prices stand at the right: {shown:?}"
    );
    assert_eq!(shown.matches("what could it be").count(), 1, "{shown}");
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

/// The fields of the form that the reference server of MCP asks for, after the first two.
const LATER_FIELDS: [&str; 11] = [
    "firstLine",
    "email",
    "homepage",
    "birthdate",
    "integer",
    "number",
    "untitledSingleSelectEnum",
    "untitledMultipleSelectEnum",
    "titledSingleSelectEnum",
    "titledMultipleSelectEnum",
    "legacyTitledEnum",
];

#[tokio::test]
async fn a_form_of_a_server_takes_choices_and_asks_again_for_what_does_not_fit() {
    let server = std::env::var("STARCHILD_TEST_MCP").unwrap_or_else(|_| {
        panic!(
            "run crates/openstarry/tests/install-mcp.sh FOLDER and set STARCHILD_TEST_MCP=FOLDER"
        )
    });
    let server = format!("{server}/node_modules/.bin/mcp-server-everything");
    let tool = "mcp__every__trigger-elicitation-request";
    let user = User::with_model(&[&[call("a", tool, "{}")], &[Say::Text("thank you")]]).await;
    let config = format!(
        "tools: {{ mcp: {{ every: {{ command: {server}, args: [stdio] }} }} }}\nconfirm: {{ approve: [{tool}] }}"
    );
    user.configure("retries: 0", &config);
    let prompts: Vec<String> = LATER_FIELDS
        .iter()
        .map(|name| format!("  {name}: "))
        .collect();
    let mut talk = vec![
        ("> ", "ask me\r"),
        ("  name: ", "Ann\r"),
        ("  check: ", "maybe\r"),
        ("want yes or no", "yes\r"),
    ];
    for (name, prompt) in LATER_FIELDS.iter().zip(&prompts) {
        let typed = match *name {
            "integer" => "7\r",
            "untitledMultipleSelectEnum" => "guitar, Piano\r",
            "titledSingleSelectEnum" => "Superman\r",
            _ => "\r",
        };
        talk.push((prompt, typed));
    }
    talk.extend([("thank you", ""), ("> ", "/quit\r")]);
    at_terminal(&user, "run", &talk).await;
    let asked = user.server.asked();
    let result = asked[1].body["messages"].to_string();
    for part in [
        "\\\"check\\\": true",
        "\\\"integer\\\": 7",
        "\\\"Guitar\\\"",
        "\\\"hero-1\\\"",
    ] {
        assert!(result.contains(part), "{part}: {result}");
    }
}
