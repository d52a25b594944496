//! Running programs as a person's shell would: in an empty home, with few things around.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command};

/// How long a program may take. It waits for servers, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home with nothing in it, and an environment with little more.
pub struct Home {
    folder: TempDir,
    env: Vec<(String, String)>,
}

impl Home {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            env: Vec::new(),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// What a file in it says.
    pub fn reads(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(other, _)| other != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs a program with this on standard input.
    pub async fn run(&self, program: &[&str], input: &str) -> Ran {
        let mut command = Command::new(program[0]);
        command
            .args(&program[1..])
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(self.env.iter().cloned())
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let feeding = tokio::spawn(async move {
            // A program that ends early closes its end.
            let _ = stdin.write_all(input.as_bytes()).await;
        });
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        feeding.abort();
        let output = output.unwrap_or_else(|_| panic!("{program:?} takes too long"));
        Ran::new(output.unwrap())
    }
}

/// How a program ended and what it said.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// What it printed, after checking that it ended well.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// What it complained of, after checking that it ended with this code.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }
}
