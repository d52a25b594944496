//! Agents that the server calls: real processes of their own.

use super::{Caller, DEADLINE, TestServer, eventually, token::PROGRAM};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A running `echo_agent`, stopped when the test ends.
pub struct PushAgent {
    child: Child,
    url: String,
    http: reqwest::Client,
}

impl PushAgent {
    /// Starts one that answers like this.
    pub fn start(reply: &str) -> Self {
        let program = Path::new(PROGRAM).with_file_name("examples/echo_agent");
        let child = Command::new(&program)
            .args(["--reply", reply])
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.unwrap_or_else(|error| {
            panic!(
                "{program:?}: {error}. Build it with `cargo build -p chatroom --example echo_agent`"
            )
        });
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .timeout(DEADLINE);
        Self {
            child,
            url: line.trim_end().to_owned(),
            http: http.build().unwrap(),
        }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on it answers like this.
    pub async fn replies(&self, reply: &str) {
        let url = format!("{}/reply", self.url);
        let sent = self.http.post(url).body(reply.to_owned()).send();
        assert!(sent.await.unwrap().status().is_success());
    }

    /// The calls it got.
    pub async fn calls(&self) -> Vec<Value> {
        let reply = self.http.get(format!("{}/calls", self.url)).send().await;
        reply.unwrap().json().await.unwrap()
    }

    /// The seqs it was called for, once there are this many.
    pub async fn seqs(&self, count: usize) -> Vec<i64> {
        eventually("the agent is called", async || {
            let calls = self.calls().await;
            let seq = |call: &Value| call["body"]["thread_metadata"]["seq"].as_i64().unwrap();
            (calls.len() >= count).then(|| calls.iter().map(seq).collect())
        })
        .await
    }

    /// Joins a room as a user's agent.
    pub async fn joins_as(&self, owner: &Caller, room: &str, user: &Caller) {
        let body = json!({"invite_code": owner.invites(room).await, "adapter_type": "clawd",
                          "agent_endpoint": self.url, "akm_key": "sk_secret_of_the_agent"});
        let path = format!("/rooms/{room}/join");
        user.post(path, body).await.created();
    }
}

impl Drop for PushAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks until a metric has a value; its lines are in the way operators read them.
pub async fn metric(server: &TestServer, line: &str) {
    eventually(line, async || {
        let text = server.anonymous().get("/metrics").await;
        text.text().lines().any(|found| found == line).then_some(())
    })
    .await;
}
