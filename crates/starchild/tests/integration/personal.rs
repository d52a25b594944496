//! The commands for one's own hosted agent and one's own machine, with the real program.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::stand_in::StandIn;

fn starchild(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starchild"));
    command
        .args(args)
        .env("STARCHILD_HOME", home)
        .stdin(Stdio::null());
    command
}

fn run(home: &Path, args: &[&str]) -> Output {
    starchild(home, args).output().unwrap()
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn bundle(server: &str, exp: i64) -> String {
    let inside = format!(
        r#"{{"d":"{server}","c":"","k":"sc_x9j2k7vp","s":"chat:bridge:cli","exp":{exp},"l":"my laptop"}}"#
    );
    format!("starchild_{}", URL_SAFE_NO_PAD.encode(inside))
}

const FAR: i64 = 4_102_444_800;

/// A home that is logged in to `server`.
fn logged_in(server: &StandIn) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), &["login", &bundle(&server.url(), FAR)]);
    assert!(output.status.success(), "{}", err(&output));
    home
}

fn sse(body: &str) -> StandIn {
    StandIn::always("200 OK", "text/event-stream", body)
}

#[test]
fn a_login_is_kept_for_the_owner_alone_and_the_key_never_shown() {
    let server = sse("");
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), &["login", &bundle(&server.url(), FAR)]);
    let who = run(home.path(), &["whoami"]);
    let json = run(home.path(), &["whoami", "--json"]);
    for output in [&output, &who, &json] {
        assert_eq!(output.status.code(), Some(0));
        assert!(out(output).contains(&server.url()));
        assert!(!format!("{}{}", out(output), err(output)).contains("x9j2k7vp"));
    }
    assert!(out(&who).starts_with("my laptop at "), "{}", out(&who));
    let json: serde_json::Value = serde_json::from_str(out(&json)).unwrap();
    assert_eq!(json["expires_at"], FAR);
    let file = home.path().join("login.json").metadata().unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_bundle_can_come_from_standard_input_and_a_bad_one_changes_nothing() {
    let server = sse("");
    let home = logged_in(&server);
    let mut child = starchild(home.path(), &["login", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let other = bundle("https://other.example", FAR) + "\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(other.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    for bad in [
        bundle(&server.url(), 1000),
        "starchild_????".into(),
        "hello".into(),
    ] {
        let output = run(home.path(), &["login", &bad]);
        assert_eq!(output.status.code(), Some(1));
        assert!(out(&output).is_empty() && !err(&output).is_empty());
    }
    let who = run(home.path(), &["whoami"]);
    assert!(out(&who).contains("https://other.example"), "{}", out(&who));
}

#[test]
fn the_answer_alone_goes_to_standard_output() {
    let server = sse(
        ": comment\n\ndata: {\"type\":\"thinking\",\"text\":\"hmm\"}\n\ndata: {\"text\":\"Four\"}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\", I\"}}]}\n\ndata:  think.\n\ndata: {\"type\":\"usage\",\"content\":\"9\"}\n\ndata: [DONE]\n\n",
    );
    let home = logged_in(&server);
    for args in [&["what is 2+2?"][..], &["--stream", "what is 2+2?"]] {
        let output = run(home.path(), args);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert_eq!(out(&output), "Four, I think.\n");
        assert_eq!(err(&output), "");
    }
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /agent/chat/stream");
    assert_eq!(request.header("authorization"), Some("Bearer sc_x9j2k7vp"));
    let sent: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    let wanted = serde_json::json!({
        "message": "what is 2+2?", "thread_id": "starchild-cli", "channel": "starchild-cli",
    });
    assert_eq!(sent, wanted);
}

#[test]
fn a_question_can_come_from_standard_input_with_a_thread_and_a_model() {
    let server = sse("data: ok\n\n");
    let home = logged_in(&server);
    let mut child = starchild(home.path(), &["--thread", "work", "--model", "big"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"how\nare you?\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(out(&output), "ok\n");
    let sent: serde_json::Value = serde_json::from_str(&server.requests()[0].body).unwrap();
    assert_eq!(sent["message"], "how\nare you?");
    assert_eq!(sent["thread_id"], "work");
    assert_eq!(sent["model"], "big");
}

#[test]
fn what_can_be_mended_exits_1_and_what_may_pass_exits_2() {
    let nobody = tempfile::tempdir().unwrap();
    let output = run(nobody.path(), &["hello"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("starchild login"), "{}", err(&output));
    let said = r#"{"error":"key_invalid","message":"the key is revoked"}"#;
    for (status, body, code, hint) in [
        ("401 Unauthorized", said, 1, "starchild login"),
        ("413 Payload Too Large", said, 1, "shorter"),
        ("429 Too Many Requests", said, 2, "moment"),
        ("502 Bad Gateway", "<html>", 2, "moment"),
    ] {
        let server = StandIn::always(status, "application/json", body);
        let home = logged_in(&server);
        let output = run(home.path(), &["hello"]);
        assert_eq!(output.status.code(), Some(code), "{status}");
        assert!(out(&output).is_empty());
        assert!(err(&output).contains(hint), "{}", err(&output));
    }
    let server = sse("data: half\n\ndata: {\"type\":\"error\",\"message\":\"no money\"}\n\n");
    let home = logged_in(&server);
    let whole = run(home.path(), &["hello"]);
    assert_eq!((whole.status.code(), out(&whole)), (Some(2), ""));
    assert!(err(&whole).contains("no money"));
    let piecemeal = run(home.path(), &["--stream", "hello"]);
    assert_eq!(
        (piecemeal.status.code(), out(&piecemeal)),
        (Some(2), "half\n")
    );
}

#[test]
fn a_server_that_hangs_up_midway_is_a_failure_and_not_an_answer() {
    let server = StandIn::new(|_, stream| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        stream.write_all(b"data: half\n\n")
    });
    let home = logged_in(&server);
    let output = run(home.path(), &["hello"]);
    assert_eq!((output.status.code(), out(&output)), (Some(2), ""));
}

#[test]
fn a_hostile_stream_comes_to_an_end() {
    for piece in [
        "data: x",
        "data: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n\n",
    ] {
        let server = StandIn::new(move |_, stream| {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            )?;
            // Ends when the client has had enough and hangs up.
            let block = piece.repeat(4096);
            loop {
                stream.write_all(block.as_bytes())?;
            }
        });
        let home = logged_in(&server);
        let output = run(home.path(), &["hello"]);
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
        assert!(err(&output).contains("more than"), "{}", err(&output));
    }
}

#[test]
fn a_generated_handler_runs_and_keeps_the_contract() {
    let home = tempfile::tempdir().unwrap();
    let stand_in = home.path().join("bin");
    std::fs::create_dir(&stand_in).unwrap();
    for name in ["codex", "claude"] {
        let path = stand_in.join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho \"{name} $*\"; tail -1\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", stand_in.display(), std::env::var("PATH").unwrap());
    let openai = StandIn::always(
        "200 OK",
        "application/json",
        r#"{"choices":[{"message":{"content":"from the model"}}]}"#,
    );
    let handle = |script: &Path, sender: &str, via: &str, content: &str| {
        let message = serde_json::json!({
            "room_id": "rm_8f3kz2", "seq": 42, "sender_user_id": sender, "sender_user_name": null,
            "via": via, "type": "chat", "content": content, "reply_to_seq": null,
            "reply_chain_depth": 0, "rules_version": 3, "created_at": 1745300000,
        });
        let mut child = Command::new(script)
            .env("PATH", &path)
            .env("SCCHAT_USER_ID", "ext_my_agent-0a1b2c3d")
            .env("SCCHAT_HANDLER_LOG_DIR", home.path())
            .env("OPENAI_BASE_URL", openai.url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(message.to_string().as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{content}");
        out(&output).to_owned()
    };
    let mention = "@ext_my_agent-0a1b2c3d hello";
    for (backend, answer) in [
        (
            "codex",
            format!(
                "codex exec --skip-git-repo-check --sandbox read-only \
                 -c features.shell_tool=false -c features.unified_exec=false\n{mention}\n"
            ),
        ),
        (
            "claude",
            format!("claude -p --tools  --strict-mcp-config\n{mention}\n"),
        ),
        ("openai", "from the model\n".to_owned()),
        (
            "custom",
            "I read 28 characters, and have nothing to say to them yet.\n".to_owned(),
        ),
    ] {
        let script = home.path().join(backend).with_extension("sh");
        let args = [
            "gen-handler",
            "--backend",
            backend,
            "--output",
            script.to_str().unwrap(),
        ];
        let output = run(home.path(), &args);
        assert_eq!(out(&output).trim(), script.to_str().unwrap());
        assert_eq!(
            handle(&script, "ext_alice", "web", mention),
            answer,
            "{backend}"
        );
        assert_eq!(
            handle(&script, "ext_my_agent-0a1b2c3d", "agent", mention),
            "[SILENT]\n"
        );
        assert_eq!(
            handle(&script, "ext_alice", "system", mention),
            "[SILENT]\n"
        );
        assert_eq!(
            handle(&script, "ext_alice", "web", "hello all"),
            "[SILENT]\n"
        );
        let again = run(home.path(), &args);
        assert_eq!(again.status.code(), Some(1));
        assert!(err(&again).contains("--force"), "{}", err(&again));
    }
}

#[test]
fn the_doctor_tells_what_is_missing_and_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let healthy = run(&home, &["doctor"]);
    assert_eq!(healthy.status.code(), Some(0), "{}", out(&healthy));
    assert!(out(&healthy).contains("agents add"), "{}", out(&healthy));

    let server = StandIn::always("200 OK", "application/json", "{}");
    let agent = home.join("sc-chatroom/my_agent-0a1b2c3d");
    std::fs::create_dir_all(agent.join("rooms")).unwrap();
    let config = format!(
        "server: {}\nbackend: codex\ncommand: /nowhere/codex\ntimout: 3\n",
        server.url()
    );
    std::fs::write(agent.join("handler.yaml"), config).unwrap();
    std::fs::write(agent.join("rooms/rm_aaaaaa.json"), "{}").unwrap();
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o755)).unwrap();
    let ill = run(&home, &["doctor", "--json"]);
    assert_eq!(ill.status.code(), Some(1));
    let findings: Vec<serde_json::Value> = serde_json::from_str(out(&ill)).unwrap();
    let has = |about: &str, state: &str, words: &str| {
        findings.iter().any(|finding| {
            finding["about"] == about
                && finding["state"] == state
                && finding.to_string().contains(words)
        })
    };
    let agent = "my_agent-0a1b2c3d";
    assert!(has("home", "bad", "chmod -R go="), "{}", out(&ill));
    assert!(has(agent, "bad", "/nowhere/codex"), "{}", out(&ill));
    assert!(has(agent, "note", "timout"), "{}", out(&ill));
    assert!(
        has(agent, "note", "its daemon does not run"),
        "{}",
        out(&ill)
    );
    assert!(has(&server.url(), "good", "answers"), "{}", out(&ill));
    assert!(has("login", "note", "starchild login"), "{}", out(&ill));
}
