//! The backend with a real agent process (`examples/acp_agent.rs`) at the other end.

use super::*;
use crate::backend::{config::BackendKind, testing::inbound};
use std::{path::PathBuf, time::Duration};

fn agent() -> PathBuf {
    // Beside this test's own program: target/debug/deps and target/debug/examples.
    let test = std::env::current_exe().unwrap();
    let agent = test.parent().unwrap().with_file_name("examples/acp_agent");
    assert!(
        agent.exists(),
        "cargo build -p starchild --example acp_agent"
    );
    agent
}

fn acp(folder: &Path, timeout_seconds: u64, permissions: Option<&str>) -> Acp {
    let mut config = BackendConfig::new(BackendKind::Acp);
    config.command = Some(agent().to_str().unwrap().to_owned());
    config.timeout_seconds = timeout_seconds;
    config.permissions = permissions.map(|text| {
        std::fs::write(folder.join("policy.yaml"), text).unwrap();
        "policy.yaml".into()
    });
    Acp::new(&config, folder).unwrap()
}

async fn answer(acp: &Acp, room: &str, content: &str) -> Result<String, BackendError> {
    let mut inbound = inbound(content);
    inbound.room_id = room.parse().unwrap();
    inbound.room_name = room.into();
    match acp.answer(&inbound, &Call::default()).await? {
        Reply::Text(text) => Ok(text),
        Reply::Silent => Ok("(silence)".into()),
    }
}

/// The number after a word in the agent's answer.
fn number(answer: &str, word: &str) -> usize {
    let (_, after) = answer.split_once(word).unwrap();
    let digits = after
        .trim_start()
        .split(|c: char| !c.is_ascii_digit())
        .next();
    digits.unwrap().parse().unwrap()
}

#[tokio::test]
async fn each_room_has_a_session_of_its_own_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let acp = acp(folder.path(), 60, None);
    let first = answer(&acp, "rm_aaaaaa", "hello").await.unwrap();
    assert!(first.starts_with("You said: hello\n"), "{first}");
    assert!(first.contains("session-0 prompt 1"), "{first}");
    let (second, other) = tokio::join!(
        answer(&acp, "rm_aaaaaa", "again"),
        answer(&acp, "rm_bbbbbb", "hello")
    );
    let (second, other) = (second.unwrap(), other.unwrap());
    assert!(second.contains("session-0 prompt 2"), "{second}");
    assert!(other.contains("session-1 prompt 1"), "{other}");
    assert_eq!(number(&first, "process"), number(&other, "process"));
    // What the session knows already is not told again.
    assert!(number(&second, "lines") < number(&first, "lines"));
}

#[tokio::test]
async fn an_agent_that_died_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let acp = acp(folder.path(), 60, None);
    let before = answer(&acp, "rm_aaaaaa", "hello").await.unwrap();
    let error = answer(&acp, "rm_aaaaaa", "die").await.unwrap_err();
    assert!(
        matches!(&error, BackendError::Failed(why) if why.contains("twice")),
        "{error}"
    );
    let after = answer(&acp, "rm_aaaaaa", "hello").await.unwrap();
    assert_ne!(number(&before, "process"), number(&after, "process"));
    assert!(after.contains("prompt 1"), "{after}");
}

#[tokio::test]
async fn a_turn_that_takes_too_long_is_cancelled_and_the_agent_stays() {
    let folder = tempfile::tempdir().unwrap();
    let acp = acp(folder.path(), 8, None);
    let error = answer(&acp, "rm_aaaaaa", "hang").await.unwrap_err();
    assert!(
        matches!(error, BackendError::TimedOut(limit) if limit == Duration::from_secs(8)),
        "{error}"
    );
    let after = answer(&acp, "rm_aaaaaa", "hello").await.unwrap();
    assert!(after.contains("session-0 prompt 1"), "{after}");
}

#[tokio::test]
async fn permissions_come_from_the_policy_and_never_for_good() {
    let policy = "rules: [{decision: allow, kinds: [edit], path: '/srv/*'}]";
    let folder = tempfile::tempdir().unwrap();
    let acp = acp(folder.path(), 60, Some(policy));
    let allowed = answer(&acp, "rm_aaaaaa", "touch /srv/a").await.unwrap();
    assert_eq!(allowed, "chosen: once");
    let denied = answer(&acp, "rm_aaaaaa", "touch /etc/passwd")
        .await
        .unwrap();
    assert_eq!(denied, "chosen: no");
}

#[tokio::test]
async fn without_a_policy_or_with_a_broken_one_everything_is_denied() {
    for policy in [
        None,
        Some("rules: [{decision: allow}"),
        Some("allow: everything"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let acp = acp(folder.path(), 60, policy);
        let denied = answer(&acp, "rm_aaaaaa", "touch /srv/a").await.unwrap();
        assert_eq!(denied, "chosen: no", "{policy:?}");
    }
}

#[tokio::test]
async fn neither_files_nor_a_terminal_are_offered_or_given() {
    let folder = tempfile::tempdir().unwrap();
    let acp = acp(folder.path(), 60, Some("rules: [{decision: allow}]"));
    let offers = answer(&acp, "rm_aaaaaa", "offers").await.unwrap();
    assert_eq!(offers, "read false write false terminal false");
    let secret = folder.path().join("policy.yaml");
    let read = format!("read {}", secret.display());
    let refused = answer(&acp, "rm_aaaaaa", &read).await.unwrap();
    assert!(refused.starts_with("refused: "), "{refused}");
}

#[tokio::test]
async fn a_program_that_does_not_speak_the_protocol_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["true", "yes not-json"] {
        let mut config = BackendConfig::new(BackendKind::Acp);
        config.command = Some(command.into());
        let acp = Acp::new(&config, folder.path()).unwrap();
        let error = answer(&acp, "rm_aaaaaa", "hello").await.unwrap_err();
        assert!(error.to_string().contains("does not start"), "{error}");
    }
}
