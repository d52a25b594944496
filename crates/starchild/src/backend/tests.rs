//! The backends with real programs and a real HTTP server behind them.

use super::{
    Backend, BackendError, Call, Reply,
    command_line::CommandLine,
    config::{BackendConfig, BackendKind},
    openai::Openai,
    starchild::Starchild,
    testing::inbound,
};
use crate::{bridge::login::Login, home::Home};
use std::{os::unix::fs::PermissionsExt, path::Path};

#[path = "../../tests/integration/stand_in.rs"]
mod stand_in;
use stand_in::StandIn;

fn script(folder: &Path, name: &str, body: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn config(backend: BackendKind, command: &str) -> BackendConfig {
    let mut config = BackendConfig::new(backend);
    config.command = Some(command.to_owned());
    config.timeout_seconds = 60;
    config
}

async fn text(backend: impl Backend) -> String {
    match backend
        .answer(&inbound("@MyBot hello"), &Call::default())
        .await
        .unwrap()
    {
        Reply::Text(text) => text,
        Reply::Silent => "(silence)".into(),
    }
}

#[tokio::test]
async fn codex_gets_the_prompt_on_standard_input_away_from_the_rooms_keys() {
    let folder = tempfile::tempdir().unwrap();
    let command = script(folder.path(), "codex", "echo \"$*\"; pwd; tail -1");
    let mut config = config(BackendKind::Codex, &format!("'{command}'"));
    config.model = Some("o4".into());
    config.args = vec!["--sandbox".into(), "read-only".into()];
    let text = text(CommandLine::codex(&config, folder.path()).unwrap()).await;
    let [args, place, last] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    assert_eq!(
        args,
        "exec --skip-git-repo-check --model o4 --json --sandbox read-only"
    );
    assert_eq!(place, folder.path().join("work").to_str().unwrap());
    assert_eq!(last, "> @MyBot hello");
}

#[tokio::test]
async fn claude_is_asked_in_print_mode() {
    let folder = tempfile::tempdir().unwrap();
    let command = script(folder.path(), "claude", "echo \"$*\"; head -1");
    let config = config(BackendKind::Claude, &command);
    let text = text(CommandLine::claude(&config, folder.path()).unwrap()).await;
    assert!(
        text.starts_with(
            "-p --tools  --strict-mcp-config --output-format stream-json --verbose \
             --include-partial-messages\nYou are MyBot"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn a_custom_body_runs_in_a_shell_in_the_agents_folder() {
    let folder = tempfile::tempdir().unwrap();
    let body = "grep -c . > lines; echo \"$1 $SCCHAT_ROOM_ID\" | tr a-z A-Z";
    let mut config = config(BackendKind::Custom, body);
    config.args = vec!["first".into()];
    let text = text(CommandLine::custom(&config, folder.path()).unwrap()).await;
    assert_eq!(text, "FIRST RM_8F3KZ2");
    assert!(folder.path().join("lines").exists());
}

#[tokio::test]
async fn silence_is_silence_and_a_failure_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let silent = config(BackendKind::Custom, "echo '[SILENT]'");
    let silent = CommandLine::custom(&silent, folder.path()).unwrap();
    assert_eq!(text(silent).await, "(silence)");
    let failing = config(BackendKind::Custom, "echo half; echo broken >&2; exit 1");
    let failing = CommandLine::custom(&failing, folder.path()).unwrap();
    let error = failing
        .answer(&inbound("hi"), &Call::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, BackendError::Failed(why) if why.ends_with("broken")),
        "{error}"
    );
}

#[test]
fn what_is_missing_is_said_before_the_first_message() {
    let folder = tempfile::tempdir().unwrap();
    let missing = |built: Result<CommandLine, BackendError>| match built {
        Err(error @ BackendError::Missing { .. }) => error.to_string(),
        _ => panic!("nothing is missing"),
    };
    let named = config(BackendKind::Codex, "/nowhere/codex");
    let said = missing(CommandLine::codex(&named, folder.path()));
    assert!(
        said.contains("/nowhere/codex") && said.contains("handler.yaml"),
        "{said}"
    );
    let quote = config(BackendKind::Claude, "claude 'x");
    let said = missing(CommandLine::claude(&quote, folder.path()));
    assert!(said.contains("quotes"), "{said}");
    let blank = config(BackendKind::Custom, "  ");
    let said = missing(CommandLine::custom(&blank, folder.path()));
    assert!(said.contains("command:"), "{said}");
}

fn openai(url: Option<String>, key: Option<&'static str>) -> Result<Openai, BackendError> {
    let mut config = BackendConfig::new(BackendKind::Openai);
    config.timeout_seconds = 60;
    Openai::new(&config, &move |name| match name {
        "OPENAI_BASE_URL" => url.clone(),
        "OPENAI_API_KEY" => key.map(str::to_owned),
        "OPENAI_MODEL" => Some("local".into()),
        _ => None,
    })
}

#[tokio::test]
async fn openai_streams_from_any_compatible_server() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n\
                data: {\"choices\":[{\"delta\":{\"content\":\" Alice\"},\"finish_reason\":\"stop\"}]}\n\n\
                data: [DONE]\n\n";
    let server = StandIn::always("200 OK", "text/event-stream", body);
    let backend = openai(Some(format!("{}/v1", server.url())), Some("key")).unwrap();
    assert_eq!(text(backend).await, "Hello Alice");
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /v1/chat/completions");
    assert_eq!(request.header("authorization"), Some("Bearer key"));
    let sent: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(sent["model"], "local");
    assert!(request.body.contains("You are MyBot") && request.body.contains("> @MyBot hello"));
}

#[tokio::test]
async fn openai_takes_a_whole_answer_too_and_needs_no_key_elsewhere() {
    let body = r#"{"choices":[{"message":{"content":"[SILENT]"},"finish_reason":"stop"}]}"#;
    let server = StandIn::always("200 OK", "application/json", body);
    assert_eq!(
        text(openai(Some(server.url()), None).unwrap()).await,
        "(silence)"
    );
    let error = openai(None, None).err().unwrap();
    assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
}

#[tokio::test]
async fn openai_says_that_the_key_is_wrong() {
    let refused = StandIn::always(
        "401 Unauthorized",
        "application/json",
        r#"{"error":{"message":"bad key"}}"#,
    );
    let backend = openai(Some(refused.url()), Some("key")).unwrap();
    let error = backend
        .answer(&inbound("hi"), &Call::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, BackendError::Failed(why) if why.contains("bad key")),
        "{error}"
    );
}

async fn hosted(server: &StandIn) -> Result<Reply, BackendError> {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let login = Login {
        server: server.url(),
        key: "sc_x9j2k7vp".to_owned().into(),
        scope: "chat:bridge:cli".into(),
        expires_at: i64::MAX,
        label: None,
    };
    login.save(&home).unwrap();
    let mut config = BackendConfig::new(BackendKind::Starchild);
    config.timeout_seconds = 60;
    let backend = Starchild::new(&config, home).unwrap();
    backend
        .answer(&inbound("@MyBot hello"), &Call::default())
        .await
}

#[tokio::test]
async fn the_hosted_agent_is_asked_through_the_bridge_in_the_rooms_thread() {
    let body = ": thinking\n\ndata: {\"type\":\"tool_call\",\"text\":\"ls\"}\n\ndata: {\"type\":\"text\",\"text\":\"Hel\"}\n\nevent: delta\ndata: {\"delta\":\"lo\"}\n\ndata: [DONE]\n\ndata: late\n\n";
    let server = StandIn::always("200 OK", "text/event-stream", body);
    assert_eq!(hosted(&server).await.unwrap(), Reply::Text("Hello".into()));
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /agent/chat/stream");
    assert_eq!(request.header("authorization"), Some("Bearer sc_x9j2k7vp"));
    let sent: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(sent["thread_id"], "chatroom-rm_8f3kz2");
    assert_eq!(sent["channel"], "starchild-cli");
    assert!(sent.get("model").is_none());
}

#[tokio::test]
async fn the_hosted_agents_failures_are_told_apart() {
    let revoked = r#"{"error":"key_invalid","message":"the key is revoked"}"#;
    let server = StandIn::always("401 Unauthorized", "application/json", revoked);
    let error = hosted(&server).await.unwrap_err();
    assert!(
        matches!(&error, BackendError::Failed(why) if why.contains("revoked") && why.contains("login")),
        "{error}"
    );
    let server = StandIn::always("503 Service Unavailable", "text/plain", "down");
    assert!(matches!(
        hosted(&server).await,
        Err(BackendError::Unavailable(_))
    ));
    let server = StandIn::always(
        "200 OK",
        "text/event-stream",
        "data: half\n\nevent: error\ndata: no money\n\n",
    );
    let error = hosted(&server).await.unwrap_err();
    assert!(
        matches!(&error, BackendError::Failed(why) if why.contains("no money")),
        "{error}"
    );
}

#[test]
fn the_hosted_agent_needs_a_login() {
    let folder = tempfile::tempdir().unwrap();
    let config = BackendConfig::new(BackendKind::Starchild);
    let error = Starchild::new(&config, Home::at(folder.path()))
        .err()
        .unwrap();
    assert!(error.to_string().contains("starchild login"), "{error}");
}
