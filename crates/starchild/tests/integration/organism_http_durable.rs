//! An organism behind HTTP whose program is killed, whose disk is full, or whose
//! file is read again.

use crate::support::within;
use reqwest::{Client, Response, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// Waits until it may go on, and sends back what it was sent.
const WAITS: &str = "while [ ! -e \"$ORGANISM_FOLDER/go\" ]; do sleep 0.05; done; cat";

fn file(gateway: &str) -> String {
    format!(
        "organism: kept\npayloads: [{{name: Note, fields: [{{name: text}}]}}]\nlisteners:\n  \
         - {{name: echo, accepts: [Note], kind: {{rust: echo}}}}\n  \
         - {{name: waits, accepts: [Note], kind: {{process: {{command: [sh, waits.sh]}}}}}}\n\
         gateways:\n  - {{name: web, peers: [echo, waits], kind: {{{gateway}}}}}\n"
    )
}

const HTTP: &str = "http: {listen: '127.0.0.1:0'}";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("organism.yaml"), file(HTTP)).unwrap();
    std::fs::write(folder.path().join("waits.sh"), WAITS).unwrap();
    folder
}

struct Running {
    child: Child,
    err: Lines<BufReader<ChildStderr>>,
    base: String,
}

/// Starts it with a journal, by a command of the shell in which `$0` is the program.
async fn start(folder: &TempDir, shell: &str) -> Running {
    let mut child = Command::new("sh")
        .args(["-c", shell, env!("CARGO_BIN_EXE_starchild")])
        .current_dir(folder.path())
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap()).lines();
    // A write that was torn is told first.
    let mut told = String::new();
    let base = loop {
        let Some(line) = within(err.next_line()).await.unwrap() else {
            panic!("it does not start: {told}");
        };
        if let Some((_, address)) = line.split_once("http://") {
            break format!("http://{}", address.split('/').next().unwrap());
        }
        told = told + &line + "\n";
    };
    Running { child, err, base }
}

const RUN: &str = "exec \"$0\" organism run --state state";

impl Running {
    async fn post(&self, correlation: &str, to: &str, text: &str) -> Response {
        let request = Client::new()
            .post(format!("{}/payloads/Note?to={to}", self.base))
            .header("content-type", "application/xml")
            .header("correlation-id", correlation)
            .body(format!("<Note><text>{text}</text></Note>"));
        within(request.send()).await.unwrap()
    }

    /// What is told of a conversation until it rests.
    async fn events(&self, correlation: &str) -> String {
        let url = format!("{}/conversations/{correlation}/events", self.base);
        let mut events = within(Client::new().get(url).send()).await.unwrap();
        assert_eq!(events.status(), StatusCode::OK);
        let mut read = String::new();
        while !(read.contains("event: message") && read.contains("event: rest")) {
            let chunk = within(events.chunk()).await.unwrap().unwrap();
            read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        read
    }

    /// Waits until so many messages were handled.
    async fn has_handled(&self, count: usize) {
        loop {
            let metrics = Client::new().get(format!("{}/metrics", self.base));
            let metrics = within(metrics.send()).await.unwrap();
            let text = within(metrics.text()).await.unwrap();
            let handled = format!("organism_handled_total{{listener=\"echo\"}} {count}");
            if text.contains(&handled) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    async fn stop(mut self) {
        let id = self.child.id().and_then(|id| Pid::from_raw(id as i32));
        kill_process(id.unwrap(), Signal::TERM).unwrap();
        within(self.child.wait()).await.unwrap();
    }

    async fn kill(mut self) {
        self.child.start_kill().unwrap();
        within(self.child.wait()).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_accepted_before_a_kill_is_answered_once_in_its_conversation() {
    let folder = folder();
    let organism = start(&folder, RUN).await;
    for number in 0..3 {
        let (correlation, text) = (format!("conversation-{number}"), number.to_string());
        let accepted = organism.post(&correlation, "waits", &text).await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    }
    organism.kill().await;
    std::fs::write(folder.path().join("go"), "").unwrap();
    let organism = start(&folder, RUN).await;
    for number in 0..3 {
        let events = organism.events(&format!("conversation-{number}")).await;
        assert_eq!(events.matches("event: message").count(), 1, "{events}");
        let answer = format!("<Note><text>{number}</text></Note>");
        assert!(events.contains(&answer), "{events}");
    }
}

#[tokio::test]
async fn an_answer_that_nobody_has_read_survives_a_kill_and_one_that_was_read_does_not_come_again()
{
    let folder = folder();
    let organism = start(&folder, RUN).await;
    for (correlation, text) in [("unread", "1"), ("read", "2"), ("stopped", "3")] {
        let accepted = organism.post(correlation, "echo", text).await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    }
    let first = organism.events("read").await;
    assert!(first.contains("<Note><text>2</text></Note>"), "{first}");
    // It is at rest: its answer lies in the gateway, where nobody looks.
    organism.has_handled(3).await;
    organism.kill().await;

    let organism = start(&folder, RUN).await;
    let events = organism.events("unread").await;
    assert_eq!(events.matches("event: message").count(), 1, "{events}");
    assert!(events.contains("<Note><text>1</text></Note>"), "{events}");
    // Its next answer is the first that comes, under a number that goes on.
    organism.post("read", "echo", "4").await;
    let events = organism.events("read").await;
    assert_eq!(events.matches("event: message").count(), 1, "{events}");
    assert!(events.contains("<Note><text>4</text></Note>"), "{events}");
    assert!(number(&events) > number(&first), "{first}{events}");

    // Told to end, it loses no more than when it is killed.
    organism.stop().await;
    let organism = start(&folder, RUN).await;
    let events = organism.events("stopped").await;
    assert!(events.contains("<Note><text>3</text></Note>"), "{events}");
}

/// The number of the first event.
fn number(events: &str) -> u64 {
    let (_, id) = events.split_once("id: ").unwrap();
    id.lines().next().unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_full_disk_is_told_and_nothing_is_accepted_that_it_does_not_hold() {
    let folder = folder();
    // A file of 64 blocks of 512 bytes is as large as any may be.
    let full = format!("trap '' XFSZ; ulimit -f 64; {RUN}");
    let organism = start(&folder, &full).await;
    let padding = "x".repeat(2000);
    let (mut accepted, mut refused) = (Vec::new(), None);
    while refused.is_none() && accepted.len() < 100 {
        let text = format!("{}-{padding}", accepted.len());
        let response = organism.post("one", "echo", &text).await;
        match response.status() {
            StatusCode::ACCEPTED => accepted.push(text),
            status => refused = Some((status, within(response.text()).await.unwrap())),
        }
    }
    let (status, words) = refused.expect("the disk is full");
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{words}");
    assert!(words.contains("Make room on its disk"), "{words}");
    assert!(!accepted.is_empty());
    organism.kill().await;
    let told = Command::new(env!("CARGO_BIN_EXE_starchild"))
        .args(["organism", "replay", "state"])
        .current_dir(folder.path())
        .output();
    let told = String::from_utf8(within(told).await.unwrap().stdout).unwrap();
    for text in &accepted {
        let carried = format!("<text>{text}</text>");
        assert!(told.contains(&carried), "{} is lost", &text[..4]);
    }
    // With room on the disk, it goes on where it was.
    let organism = start(&folder, RUN).await;
    let response = organism.post("two", "echo", "more").await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    assert!(organism.events("two").await.contains("more"));
}

#[tokio::test]
async fn a_file_that_would_connect_a_gateway_otherwise_is_read_and_that_is_told() {
    let folder = folder();
    let mut organism = start(&folder, RUN).await;
    let webhook = "webhook: {listen: '127.0.0.1:0', secret_env: SECRET, payload: Note}";
    std::fs::write(folder.path().join("organism.yaml"), file(webhook)).unwrap();
    let pid = organism.child.id().and_then(|id| Pid::from_raw(id as i32));
    kill_process(pid.unwrap(), Signal::HUP).unwrap();
    for words in ["read again", "web: connected as at the start; restart"] {
        let line = within(organism.err.next_line()).await.unwrap().unwrap();
        assert!(line.contains(words), "{line}");
    }
    let response = organism.post("one", "echo", "still there").await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
}
