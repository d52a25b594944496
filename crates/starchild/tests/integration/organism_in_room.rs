//! An organism enters a room: `backend: organism`, with commands as its listeners.

use crate::harness::{Owner, Room, Server, eventually};
use serde_json::json;
use std::path::Path;
use tempfile::TempDir;

/// Answers with what it was told, after it has written down that it worked.
const DESK: &str = r#"
organism: desk
payloads:
  - {name: Question, fields: [{name: text}, {name: sender_kind}, {name: seq, type: integer}]}
  - {name: Answer, fields: [{name: text}]}
listeners:
  - name: clerk
    accepts: [Question]
    kind: {process: {command: [sh, clerk.sh], format: json, write: [.]}}
gateways:
  - {name: room, peers: [clerk], kind: {room: {payload: Question}}}
"#;
const CLERK: &str = r#"
read -r question
echo x >> "$ORGANISM_FOLDER/worked"
case "$question" in *slowly*) while [ ! -e "$ORGANISM_FOLDER/go" ]; do sleep 0.05; done ;; esac
case "$question" in *badly*) exit 3 ;; esac
text=$(printf %s "$question" | sed 's/\\/\\\\/g; s/"/\\"/g')
printf '{"Answer": {"text": "%s"}}' "$text"
"#;

pub struct World {
    server: Server,
    pub room: Room,
    pub owner: Owner,
    project: TempDir,
}

impl World {
    pub async fn new() -> Self {
        let server = Server::start().await;
        let room = Room::new(&server.alice()).await;
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join("organism.yaml"), DESK).unwrap();
        std::fs::write(project.path().join("clerk.sh"), CLERK).unwrap();
        let mut owner = Owner {
            folder: tempfile::tempdir().unwrap(),
            agent: String::new(),
            env: Vec::new(),
        };
        let file = project.path().join("organism.yaml");
        let (file, url) = (file.to_str().unwrap(), server.url());
        let add = [
            "byoa",
            "add",
            "--prefix",
            "help_desk",
            "--backend",
            "organism",
        ];
        let add = [&add[..], &["--organism-file", file, "--server", &url]].concat();
        owner.agent = owner.types(&add).await.trim().to_owned();
        owner.joins(&room).await;
        Self {
            server,
            room,
            owner,
            project,
        }
    }

    pub fn mention(&self, words: &str) -> String {
        format!("@ext_{} {words}", self.owner.agent)
    }

    /// How often the listener worked.
    fn worked(&self) -> usize {
        let lines = std::fs::read_to_string(self.project.path().join("worked"));
        lines.unwrap_or_default().lines().count()
    }

    pub fn touch(&self, name: &str) {
        std::fs::write(Path::join(self.project.path(), name), "").unwrap();
    }
}

#[tokio::test]
async fn a_message_becomes_a_payload_and_the_answer_a_post() {
    let world = World::new().await;
    let _daemon = world.owner.runs().await;
    let words = world.mention("what is <new> & \"true\"?\u{7}");
    let answer = world.room.ask(&words).await;
    let asked: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let text = words.trim_end_matches('\u{7}');
    // Alice speaks with a user token, so the server counts her among the agents.
    let fields = json!({"text": text, "sender_kind": "agent", "seq": 2});
    assert_eq!(asked, json!({"Question": fields}));
}

#[tokio::test]
async fn a_kill_in_the_middle_loses_no_answer_and_doubles_none() {
    let mut world = World::new().await;
    let mut daemon = world.owner.runs().await;
    let slow = world.room.say(&world.mention("slowly, please")).await;
    eventually("the listener works", async || {
        (world.worked() == 1).then_some(())
    })
    .await;
    daemon.kill9();
    world.touch("go");
    let mut daemon = world.owner.runs().await;
    world.room.answer(slow).await;
    // And at no particular moment.
    for n in 0..5 {
        let seq = world.room.say(&world.mention(&format!("number {n}"))).await;
        tokio::time::sleep(std::time::Duration::from_millis(40 * n)).await;
        daemon.kill9();
        if n == 2 {
            world.server.kill();
            world.server.launch();
        }
        daemon = world.owner.runs().await;
        world.room.answer(seq).await;
        assert_eq!(world.room.answers(seq).await.len(), 1, "number {n}");
    }
    assert_eq!(world.room.answers(slow).await.len(), 1);
}

#[tokio::test]
async fn a_listener_that_fails_is_in_the_log_and_the_next_message_is_answered() {
    let world = World::new().await;
    let _daemon = world.owner.runs().await;
    world.room.say(&world.mention("badly")).await;
    let answer = world.room.ask(&world.mention("well")).await;
    assert!(answer.contains("well"), "{answer}");
    let log = world.owner.log();
    assert!(log.contains("no answer; the message is skipped"), "{log}");
}

#[tokio::test]
async fn an_organism_without_a_room_says_what_is_missing() {
    let world = World::new().await;
    let file = world.project.path().join("organism.yaml");
    for (was, is, hint) in [
        (
            "kind: {room: {payload: Question}}",
            "kind: stdin",
            "gateway of the kind room",
        ),
        (
            "{payload: Question}",
            "{payload: Answer}",
            "no peer of the room's gateway accepts",
        ),
        (
            "{name: text}, {name: sender_kind}",
            "{name: sender_kind}",
            "no field text",
        ),
    ] {
        std::fs::write(&file, DESK.replace(was, is)).unwrap();
        let run = world.owner.tries(&["run", "--foreground"]).await;
        let told = String::from_utf8(run.stderr).unwrap();
        assert!(!run.status.success() && told.contains(hint), "{is}: {told}");
    }
}
