//! `starchild agent` as a user meets it, with a stand-in for the model.

mod acp;
mod ask;
mod setup;
mod terminal;

use crate::support::wire::{self, Say};
use crate::support::{Reply, Server, within};
use openstarry::provider::ProviderKind;
use std::path::Path;
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
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
        let user = Self { folder, server };
        user.configure("retries: 0", "tools: { fs: write }");
        user
    }

    /// Writes the agent's file: the model, with more about its provider, and the rest.
    fn configure(&self, provider: &str, rest: &str) {
        let url = &self.server.url;
        let config = format!(
            "provider: {{ kind: ollama, model: m, base_url: \"{url}\", {provider} }}\n{rest}\n"
        );
        std::fs::write(self.path("agent.yaml"), config).unwrap();
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

/// The one folder in which the user's agent keeps its things.
fn place_of(user: &User) -> std::path::PathBuf {
    let mut places = std::fs::read_dir(user.path("home/agents/agent")).unwrap();
    let place = places.next().unwrap().unwrap().path();
    assert!(places.next().is_none(), "one folder, one place");
    place
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
