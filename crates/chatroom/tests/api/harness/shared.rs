//! One server for all tests that look only at rooms of their own: a start costs more than most of
//! them do.

use super::server::{Engine, Setup, TestServer};
use std::{
    io,
    ops::Deref,
    process::{ChildStdin, Command, Stdio},
};
use tokio::sync::OnceCell;

/// The server, which others use at the same time. Nobody can stop it.
pub struct SharedServer(&'static TestServer);

impl Deref for SharedServer {
    type Target = TestServer;
    fn deref(&self) -> &TestServer {
        self.0
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the shared server's log ---\n{}", self.0.log());
        }
    }
}

impl Setup {
    /// The server that tests share, as [`Setup::new`] has it. Agents come under ids of their own
    /// ([`agent_id`](super::agent_id)). Whoever changes a setting, stops the server, bans somebody,
    /// looks at its log or its metrics, at all rooms of a user or at what is told to a user in all of
    /// them, needs a server of its own.
    pub async fn shared(self) -> SharedServer {
        let unchanged = self == Self::new(self.engine());
        assert!(unchanged, "this test changes a setting: `start` its server");
        static SQLITE: OnceCell<(TestServer, ChildStdin)> = OnceCell::const_new();
        static POSTGRES: OnceCell<(TestServer, ChildStdin)> = OnceCell::const_new();
        let server = match self.engine() {
            Engine::Sqlite => &SQLITE,
            Engine::Postgres => &POSTGRES,
        };
        let (server, _) = server.get_or_init(|| start(self)).await;
        SharedServer(server)
    }
}

async fn start(setup: Setup) -> (TestServer, ChildStdin) {
    let server = setup.start().await;
    let ended_with_us = end_with_this_process(&server).unwrap();
    (server, ended_with_us)
}

/// Statics are never dropped: a shell waits for this process to close its end of a pipe.
fn end_with_this_process(server: &TestServer) -> io::Result<ChildStdin> {
    let mut shell = Command::new("sh")
        .args(["-c", r#"cat >/dev/null; kill -9 "$0"; rm -rf "$1""#])
        .arg(server.pid().to_string())
        .arg(server.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe.into())
}
