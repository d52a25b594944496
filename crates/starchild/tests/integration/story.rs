//! The story that the README begins with, told with the real programs and a real browser, while they
//! are killed one after the other.

use crate::harness::eventually;
use crate::up::Team;
use client::Client;
use protocol::{Message, RoomId};
use serde_json::{Value, json};
use std::{path::PathBuf, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// A person at a browser.
struct Page {
    _browser: Child,
    told: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Page {
    fn open() -> Self {
        let modules = std::env::var("SC_TEST_WEB").unwrap_or_else(|_| {
            panic!("run web/tests/install.sh FOLDER and set SC_TEST_WEB=FOLDER")
        });
        let mut browser = Command::new("node")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/story/page.mjs"))
            .env("SC_TEST_WEB", modules)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            told: browser.stdin.take().unwrap(),
            answers: BufReader::new(browser.stdout.take().unwrap()).lines(),
            _browser: browser,
        }
    }

    async fn tell(&mut self, deed: Value) -> Value {
        let line = format!("{deed}\n");
        self.told.write_all(line.as_bytes()).await.unwrap();
        let answer = self.answers.next_line().await.unwrap();
        let answer = answer.unwrap_or_else(|| panic!("the browser is gone at {deed}"));
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        if let Some(why) = answer["failed"].as_str() {
            panic!("{deed}: {why}");
        }
        answer["done"].take()
    }

    async fn goes(&mut self, url: &str) {
        self.tell(json!({"do": "goes", "url": url})).await;
    }

    async fn reads(&mut self, words: &str, selector: &str) {
        let deed = json!({"do": "reads", "words": words, "selector": selector});
        self.tell(deed).await;
    }

    async fn clicks(&mut self, words: &str, selector: &str) {
        let deed = json!({"do": "clicks", "words": words, "selector": selector});
        self.tell(deed).await;
    }

    async fn writes(&mut self, words: &str) {
        self.tell(json!({"do": "writes", "words": words})).await;
    }

    async fn texts(&mut self, selector: &str) -> Vec<String> {
        let texts = self.tell(json!({"do": "texts", "selector": selector}));
        serde_json::from_value(texts.await).unwrap()
    }

    async fn strings(&mut self, deed: &str) -> Vec<String> {
        serde_json::from_value(self.tell(json!({"do": deed})).await).unwrap()
    }

    /// Waits until an agent is seen writing its answer.
    async fn sees_writing(&mut self, agent: &str) {
        self.tell(json!({"do": "sees", "agent": agent})).await;
    }
}

/// Ends a program of the team as a power cut would; it runs again when this is over.
async fn kill9(team: &Team, program: &str) {
    let pid = team.pid(program).unwrap().to_string();
    let killed = Command::new("kill").args(["-9", &pid]).status().await;
    assert!(killed.unwrap().success());
    eventually("it runs again", async || {
        team.pid(program).filter(|new| new.to_string() != pid)
    })
    .await;
    let client = Client::new(&team.url).unwrap();
    eventually("the server serves", async || client.health().await.ok()).await;
}

/// How often a tool ran, by the agents' own records.
fn runs_of(team: &Team, tool: &str) -> usize {
    let agents = std::fs::read_dir(team.folder.join(".starchild/home/sc-chatroom")).unwrap();
    let records = agents.map(|agent| agent.unwrap().path().join("agent/audit.jsonl"));
    let records = records.map(|path: PathBuf| std::fs::read_to_string(path).unwrap_or_default());
    let lines: Vec<Value> = records
        .flat_map(|text| {
            let lines: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            lines
        })
        .collect();
    let ran = |line: &&Value| line["tool"] == tool && line["verdict"] == "done";
    lines.iter().filter(ran).count()
}

/// All that was said, once nobody has said anything for a while.
async fn after_silence(team: &Team, room: &RoomId) -> Vec<Message> {
    eventually("the room falls silent", async || {
        let before = team.messages(room).await.len();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = team.messages(room).await;
        (after.len() == before).then_some(after)
    })
    .await
}

#[tokio::test]
async fn a_person_asks_allows_watches_and_whatever_is_killed_nothing_is_lost_or_doubled() {
    let mut team = Team::of_example("support");
    // Slow enough to be watched, and to be killed while it writes.
    let script = std::fs::read_to_string(team.folder.join("model.yaml")).unwrap();
    team.write(
        "model.yaml",
        &script.replace("delay_ms: 40", "delay_ms: 400"),
    );
    team.up().await;
    let room = team.room("support");
    let said = team.said();
    let link = said.split("Alice signs in: ").nth(1).unwrap();
    let link = link.lines().next().unwrap();

    let mut alice = Page::open();
    alice.goes(link).await;
    alice.clicks("support", "#rooms a").await;
    alice.reads("Orders", "#panel .member").await;
    alice.tell(json!({"do": "watches"})).await;
    let question = "@Triage please refund order 1042";
    alice.writes(question).await;
    // The organism triages, and the agent that has the tool asks before it uses it.
    alice
        .reads("@Orders please refund order 1042", "#messages .content")
        .await;
    alice
        .reads("Orders asks to use mcp__shop__refund", "#consents .consent")
        .await;
    kill9(&team, "orders").await;
    kill9(&team, "server").await;
    alice.reads("1042", "#consents .consent .detail").await;
    assert_eq!(alice.texts("#consents .consent").await.len(), 1);
    assert_eq!(runs_of(&team, "mcp__shop__refund"), 0, "before the yes");
    alice.clicks("Allow", "#consents button").await;
    alice.reads("allowed by Alice", "#consents").await;
    alice.sees_writing("Orders").await;
    let refunded = "That is done. Order 1042 (a teapot) is refunded: 24.00 euros. The money is there in three days.";
    alice.reads(refunded, "#messages .content").await;
    let seen = alice.strings("seen").await;
    let is_part = |text: &&String| refunded.starts_with(&***text) && text.len() < refunded.len();
    assert!(seen.iter().any(|text| is_part(&text)), "it grew: {seen:?}");
    assert_eq!(
        runs_of(&team, "mcp__shop__refund"),
        1,
        "one yes, one refund"
    );
    let costs = alice.texts("#messages .usage").await.join("\n");
    let told = ["script", " tokens", "$", "mcp__shop__refund"];
    assert!(told.iter().all(|part| costs.contains(part)), "{costs}");

    // Each of them is killed while it goes on: a server, a daemon that follows the room, a host that
    // the room calls, and the organism's.
    let mut asked = vec![question.to_owned()];
    for (n, (program, words, who)) in [
        ("server", "where is order 1042?", "Orders"),
        ("orders", "where is order 1043?", "Orders"),
        ("billing", "how do I pay the invoice?", "Billing"),
        ("triage", "what does a cup cost?", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let question = format!("@Triage {words} ({n})");
        alice.writes(&question).await;
        alice.reads(&question, "#messages .content").await;
        if !who.is_empty() {
            alice.sees_writing(who).await;
        }
        kill9(&team, program).await;
        asked.push(question);
    }
    for question in &asked {
        let passed_on = question.replace("@Triage ", "");
        eventually(question, async || {
            let said = team.messages(&room).await;
            let passed = said
                .iter()
                .find(|one| one.content.ends_with(&passed_on) && one.reply_to_seq.is_some())?;
            said.iter()
                .find(|one| one.reply_to_seq == Some(passed.seq))
                .map(drop)
        })
        .await;
    }
    let said = after_silence(&team, &room).await;
    let seqs: Vec<i64> = said.iter().map(|message| message.seq).collect();
    let all: Vec<i64> = (1..=seqs.len() as i64).collect();
    assert_eq!(seqs, all, "no gap and no double");
    for question in &asked {
        let same: Vec<_> = said.iter().filter(|one| one.content == *question).collect();
        let [one] = &same[..] else {
            panic!("{question} was said {} times: {said:?}", same.len())
        };
        let answers = |seq: i64| -> Vec<&Message> {
            let mut answers = said.iter().collect::<Vec<_>>();
            answers.retain(|one| one.reply_to_seq == Some(seq));
            answers
        };
        let passed_on = answers(one.seq);
        assert_eq!(passed_on.len(), 1, "{question}: {said:?}");
        let answered = answers(passed_on[0].seq);
        assert_eq!(answered.len(), 1, "{question}: {said:?}");
        assert!(answers(answered[0].seq).is_empty(), "{said:?}");
    }
    // The page has seen all of it, without being opened again.
    let chat: Vec<&Message> = said
        .iter()
        .filter(|one| one.sender_user_name.is_some())
        .collect();
    for message in &chat {
        let place = format!("#messages > li[data-seq='{}'] .content", message.seq);
        alice.reads(&message.content, &place).await;
    }
    let none = Vec::<String>::new();
    let failed = alice.texts("#typing .ended").await;
    assert_eq!(failed, none, "who has answered after all did not fail");
    assert_eq!(alice.strings("complaints").await, none);
    if let Ok(folder) = std::env::var("SC_TEST_SCREENSHOTS") {
        let file = format!("{folder}/story.png");
        alice.tell(json!({"do": "picture", "file": file})).await;
    }
    team.interrupt().await;
}
