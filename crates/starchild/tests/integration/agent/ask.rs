//! One question: what goes where, and how it ends.

use super::{KIND, User, place_of, starchild, starts, text};
use crate::support::wire::{self, Say, call};
use crate::support::{Piece, Reply, Server, within};
use openstarry::provider::ProviderKind;
use serde_json::{Value, json};
use tokio::process::Command;

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
    let told = text(&out.stderr);
    assert!(
        told.contains("connection failed") && told.contains("http://127.0.0.1:1"),
        "{told}"
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
async fn a_web_page_in_place_of_a_model_is_told_in_words() {
    let page = Reply {
        status: 200,
        headers: vec![("content-type", "text/html".into())],
        pieces: vec![Piece::Bytes(
            "<html><title>Sign in</title><body>…</body></html>".into(),
        )],
    };
    let user = User::with_replies(vec![page]).await;
    let out = user.types(&["ask", "x"], "").await;
    assert_eq!(out.status.code(), Some(1));
    let told = text(&out.stderr);
    assert!(
        told.contains("web page (Sign in)") && told.contains("base_url"),
        "{told}"
    );
    assert!(!told.contains("<html>") && out.stdout.is_empty(), "{told}");
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

#[tokio::test]
async fn an_agent_cannot_write_down_its_own_permissions() {
    let user = User::with_model(&[&[Say::Text("hello")]]).await;
    user.configure("retries: 0", "tools: { fs: write }");
    user.types(&["ask", "hi"], "").await;
    let own = place_of(&user).join("always.json");
    let path = own.strip_prefix(user.folder.path()).unwrap();
    let args = json!({ "path": path, "content": "[]" });
    let says: [&[Say]; 2] = [&[Say::WholeCall("a", "fs.write", args)], &[Say::Text("no")]];
    let user = User {
        folder: user.folder,
        ..User::with_model(&says).await
    };
    user.configure("retries: 0", "tools: { fs: write }");
    user.types(&["ask", "--yes", "go on"], "").await;
    let told = user.server.asked()[1].body["messages"].to_string();
    assert!(told.contains("own folder"), "{told}");
    assert!(!own.exists());
}
