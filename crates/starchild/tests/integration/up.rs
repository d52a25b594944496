//! `starchild up`: a team from one file, with the real server and the real daemons.

use crate::harness::{eventually, server_program};
use crate::stand_in::StandIn;
use client::{Client, MessageQuery, PostMessage};
use protocol::{Message, RoomId};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
};
use tempfile::TempDir;

const TEAM: &str = "
people: [Alice, Bob]
server:
  listen: 127.0.0.1:PORT
  settings: {limits.agent_cooldown_seconds: 0, limits.agent_messages_per_minute: 0}
rooms:
  lobby: {rules: Be kind.}
agents:
  parrot: {handler_path: parrot.sh}
";
const PARROT: &str = "#!/bin/sh\nread -r msg\ncase \"$msg\" in *'\"sender_user_id\":\"u_alice\"'*) ;; *) exit 0 ;; esac\nc=${msg##*'\"content\":\"'}\necho \"SAYS ${c%%'\"'*}\"\n";

/// A folder with a team, and `up` in the foreground.
pub struct Team {
    pub folder: PathBuf,
    _temporary: Option<TempDir>,
    pub url: String,
    up: Option<Child>,
    said: Arc<Mutex<String>>,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Team {
    /// A team with this file, PORT in it being a free one.
    pub fn new(file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::at(folder.path().to_owned(), Some(folder), file)
    }

    fn at(folder: PathBuf, temporary: Option<TempDir>, file: &str) -> Self {
        let port = free_port().to_string();
        std::fs::write(folder.join("starchild.yaml"), file.replace("PORT", &port)).unwrap();
        Self {
            folder,
            _temporary: temporary,
            url: format!("http://127.0.0.1:{port}"),
            up: None,
            said: Arc::default(),
        }
    }

    /// A copy of one of the examples, on a free port.
    pub fn of_example(name: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples")
            .join(name);
        let folder = tempfile::tempdir().unwrap();
        let copied = Command::new("cp")
            .arg("-r")
            .arg(source.join("."))
            .arg(folder.path())
            .status();
        assert!(copied.unwrap().success());
        let file = std::fs::read_to_string(folder.path().join("starchild.yaml")).unwrap();
        let file = file.replace("127.0.0.1:8080", "127.0.0.1:PORT");
        assert!(file.contains("PORT"), "the example says where it listens");
        let file = file.replace("127.0.0.1:8100", &format!("127.0.0.1:{}", free_port()));
        Self::at(folder.path().to_owned(), Some(folder), &file)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let program = server_program();
        let mut command = Command::new(env!("CARGO_BIN_EXE_starchild"));
        let path = std::env::var("PATH").unwrap_or_default();
        let beside = program.parent().unwrap().display();
        command
            .args(args)
            .current_dir(&self.folder)
            .env("PATH", format!("{beside}:{path}"));
        command
    }

    pub fn types(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Takes it up in the foreground, until the links are there.
    pub async fn up(&mut self) {
        let mut command = self.command(&["up"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        *self.said.lock().unwrap() = String::new();
        let pipes: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for pipe in pipes {
            let said = self.said.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    said.lock().unwrap().push_str(&(line + "\n"));
                }
            });
        }
        self.up = Some(child);
        eventually("the team is up", async || {
            let said = self.said();
            let ended = self.up.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {said}");
            (said.contains("signs in: ") && self.status()["ready"] == true).then_some(())
        })
        .await;
    }

    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub async fn says(&self, words: &str) {
        eventually(words, async || self.said().contains(words).then_some(())).await;
    }

    pub fn kill9(&mut self) {
        let mut up = self.up.take().unwrap();
        up.kill().unwrap();
        up.wait().unwrap();
    }

    /// Ctrl-C, as the terminal sends it to `up`.
    pub async fn interrupt(&mut self) {
        let mut up = self.up.take().unwrap();
        let pid = up.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let status = eventually("up ends", async || up.try_wait().unwrap()).await;
        assert!(status.success(), "{}", self.said());
    }

    pub fn status(&self) -> Value {
        let output = self.types(&["ps", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub fn pid(&self, program: &str) -> Option<u64> {
        self.status()["programs"][program]["pid"].as_u64()
    }

    /// A person, with a token of the team's own server.
    pub fn person(&self, user: &str, name: &str) -> Client {
        let output = Command::new(server_program())
            .args(["token", "--user", user, "--name", name])
            .args(["--type", "access", "--data"])
            .arg(self.folder.join(".starchild/server"))
            .output()
            .unwrap();
        let token = String::from_utf8(output.stdout).unwrap();
        Client::new(&self.url)
            .unwrap()
            .with_token(token.trim())
            .unwrap()
    }

    pub fn room(&self, name: &str) -> RoomId {
        let status = self.status();
        status["rooms"][name]
            .as_str()
            .unwrap_or_else(|| panic!("{status}"))
            .parse()
            .unwrap()
    }

    pub async fn members(&self, room: &RoomId) -> Vec<protocol::MemberView> {
        let alice = self.person("u_alice", "Alice");
        alice.members(room).await.unwrap().members
    }

    pub async fn messages(&self, room: &RoomId) -> Vec<Message> {
        let query = MessageQuery {
            since: Some(0),
            limit: Some(200),
            ..Default::default()
        };
        self.person("u_alice", "Alice")
            .messages(room, &query)
            .await
            .unwrap()
            .messages
    }

    /// Alice says something, and the answer comes.
    pub async fn ask(&self, room: &RoomId, content: &str) -> Message {
        let message = PostMessage {
            content: content.into(),
            ..Default::default()
        };
        let alice = self.person("u_alice", "Alice");
        let seq = alice.post_message(room, &message, None).await.unwrap().seq;
        let what = format!("{content:?} is answered");
        eventually(&what, async || {
            let said = self.messages(room).await;
            said.into_iter()
                .find(|message| message.reply_to_seq == Some(seq))
        })
        .await
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- up ---\n{}", self.said());
            let log = self.folder.join(".starchild/logs/server.log");
            let log = std::fs::read_to_string(log).unwrap_or_default();
            eprintln!("--- server.log ---\n{log}");
        }
        if let Some(mut up) = self.up.take() {
            let _ = Command::new("kill")
                .args(["-TERM", &up.id().to_string()])
                .status();
            let _ = up.wait();
        } else {
            let _ = self.types(&["down"]);
        }
    }
}

fn is_alive(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_team_comes_up_answers_changes_with_its_file_and_goes_down() {
    let mut team = Team::new(TEAM);
    team.write("parrot.sh", &PARROT.replace("SAYS", "re"));
    team.up().await;
    let said = team.said();
    assert!(
        said.contains("Alice signs in: ") && said.contains("Bob signs in: "),
        "{said}"
    );
    let room = team.room("lobby");
    assert_eq!(team.ask(&room, "one").await.content, "re one");
    let rules = team.person("u_alice", "Alice").rules(&room).await.unwrap();
    assert_eq!(rules.content, "Be kind.");
    team.says("[lobby] Parrot: re one").await;

    // A broken file is told, and the team goes on.
    let file = team.folder.join("starchild.yaml");
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, good.replace("rules:", "ruels:")).unwrap();
    team.says("did you mean rules?").await;
    assert_eq!(team.ask(&room, "two").await.content, "re two");
    // A change is applied: new rules, another agent, a script that was edited.
    let more = good.replace("Be kind.", "Be brief.") + "  echo_two: {backend: plain, name: Echo}\n";
    std::fs::write(&file, more).unwrap();
    team.says("echo_two is in lobby").await;
    let rules = team.person("u_alice", "Alice").rules(&room).await.unwrap();
    assert_eq!(rules.content, "Be brief.");
    assert!(
        team.members(&room)
            .await
            .iter()
            .any(|one| one.user_name.as_deref() == Some("Echo"))
    );
    team.write("parrot.sh", &PARROT.replace("SAYS", "RE"));
    team.says("parrot is started anew").await;
    assert_eq!(team.ask(&room, "three").await.content, "RE three");
    std::fs::write(&file, &good).unwrap();
    team.says("echo_two is gone").await;
    assert!(
        !team
            .members(&room)
            .await
            .iter()
            .any(|one| one.user_name.as_deref() == Some("Echo"))
    );

    // Ctrl-C takes all down; nothing is left running.
    let pids: Vec<u64> = ["server", "parrot"]
        .iter()
        .map(|name| team.pid(name).unwrap())
        .collect();
    team.interrupt().await;
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "{pids:?}");

    // A second `up` makes nothing twice.
    team.up().await;
    assert_eq!(team.room("lobby"), room);
    assert!(!team.said().contains("made the room"), "{}", team.said());
    let members = team.members(&room).await.len();
    assert_eq!(members, 3, "Alice, Bob and the parrot");
    let alice = team.person("u_alice", "Alice");
    let rooms = alice.rooms().await.unwrap().rooms;
    assert_eq!(rooms.iter().filter(|room| room.name == "lobby").count(), 1);
    assert_eq!(team.ask(&room, "four").await.content, "RE four");
}

#[tokio::test]
async fn what_is_killed_is_started_again_and_a_killed_up_leaves_nothing_in_the_way() {
    let mut team = Team::new(TEAM);
    team.write("parrot.sh", &PARROT.replace("SAYS", "re"));
    team.up().await;
    let room = team.room("lobby");
    for program in ["server", "parrot"] {
        let pid = team.pid(program).unwrap();
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(killed.unwrap().success());
        team.says(&format!("{program} ended")).await;
        eventually("it runs again", async || {
            team.pid(program).filter(|new| *new != pid)
        })
        .await;
        let client = Client::new(&team.url).unwrap();
        eventually("the server serves", async || client.health().await.ok()).await;
        assert_eq!(
            team.ask(&room, program).await.content,
            format!("re {program}")
        );
    }
    let pids: Vec<u64> = ["server", "parrot"]
        .iter()
        .map(|name| team.pid(name).unwrap())
        .collect();
    team.kill9();
    assert!(
        pids.iter().all(|pid| is_alive(*pid)),
        "they are orphans now"
    );
    team.up().await;
    assert!(
        pids.iter().all(|pid| !is_alive(*pid)),
        "what was left is ended"
    );
    assert_eq!(team.ask(&room, "again").await.content, "re again");
}

#[tokio::test]
async fn a_team_runs_apart_from_the_terminal_and_a_port_that_is_taken_is_said() {
    let team = Team::new(TEAM);
    team.write("parrot.sh", &PARROT.replace("SAYS", "re"));
    let output = team.types(&["up", "-d"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("Alice signs in: "),
        "{output:?}"
    );
    let room = team.room("lobby");
    assert_eq!(team.ask(&room, "hello").await.content, "re hello");
    // The links are for whoever took it up, and nobody else who can read files here.
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(team.folder.join(".starchild/logs/up.log")), 0o600);
    assert_eq!(mode(team.folder.join(".starchild")), 0o700);
    let again = team.types(&["up"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("up already"),
        "{again:?}"
    );
    // Another team in the same place.
    let other = Team::new(&TEAM.replace("127.0.0.1:PORT", &team.url["http://".len()..]));
    other.write("parrot.sh", PARROT);
    let taken = other.types(&["up", "-d"]);
    assert!(
        String::from_utf8_lossy(&taken.stderr).contains("listens at"),
        "{taken:?}"
    );
    assert!(team.types(&["down"]).status.success());
    assert_eq!(team.status()["programs"], serde_json::json!({}));
    assert!(team.types(&["down"]).status.success(), "down twice is down");
}

#[tokio::test]
async fn init_writes_a_team_that_works_without_asking() {
    let mut team = Team::new("");
    std::fs::remove_file(team.folder.join("starchild.yaml")).unwrap();
    let init = [
        "init",
        "--yes",
        "--person",
        "Alice",
        "--room",
        "den",
        "--answers",
        "script",
    ];
    let output = team.types(&init);
    assert!(output.status.success(), "{output:?}");
    let again = team.types(&init);
    assert_eq!(again.status.code(), Some(1), "it writes over nothing");
    let file = team.folder.join("starchild.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let listen = &team.url["http://".len()..];
    std::fs::write(&file, format!("server: {{listen: \"{listen}\"}}\n{text}")).unwrap();
    team.up().await;
    let room = team.room("den");
    let answer = team.ask(&room, "@Helper hello").await;
    assert!(
        answer.content.contains("I follow a script"),
        "{}",
        answer.content
    );
}

#[tokio::test]
async fn init_takes_the_newest_model_that_the_server_has_and_makes_none_up() {
    let listed = serde_json::json!({"data": [
        {"id": "talker-1", "created": 1}, {"id": "talker-2", "created": 2},
        {"id": "embed-3", "created": 3},
    ]});
    let model = StandIn::always("200 OK", "application/json", &listed.to_string());
    let team = Team::new("");
    let file = team.folder.join("starchild.yaml");
    std::fs::remove_file(&file).unwrap();
    let init = |url: &str| {
        let words = ["init", "--yes", "--person", "Alice", "--answers", "openai"];
        team.types(&[&words[..], &["--base-url", url]].concat())
    };
    let untold = init("http://127.0.0.1:1/v1");
    assert_eq!(untold.status.code(), Some(1), "{untold:?}");
    let said = String::from_utf8_lossy(&untold.stderr).into_owned();
    assert!(said.contains("--model NAME"), "{said}");
    assert!(!file.exists(), "nothing is made up");
    let url = format!("{}/v1", model.url());
    let output = init(&url);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let wanted = format!("default: {{kind: openai, model: \"talker-2\", base_url: \"{url}\"}}");
    assert!(text.contains(&wanted), "{text}");
}

#[tokio::test]
async fn a_hosted_agent_is_called_leaves_rooms_and_becomes_one_that_follows_them() {
    let host = format!("127.0.0.1:{}", free_port());
    let file = TEAM
        .replace("settings: {", "settings: {fanout.private_endpoints: all, ")
        .replace("agents:", "  attic: {}\nagents:")
        .replace("parrot.sh}", &format!("parrot.sh, host: \"{host}\"}}"));
    let mut team = Team::new(&file);
    team.write("parrot.sh", &PARROT.replace("SAYS", "re"));
    team.up().await;
    let (lobby, attic) = (team.room("lobby"), team.room("attic"));
    for room in [&lobby, &attic] {
        assert_eq!(team.ask(room, "one").await.content, "re one");
    }
    let path = team.folder.join("starchild.yaml");
    let file = std::fs::read_to_string(&path).unwrap();
    let one_room = file.replace("parrot.sh, ", "parrot.sh, rooms: [lobby], ");
    std::fs::write(&path, &one_room).unwrap();
    team.says("parrot left").await;
    let parrot = async |room: &RoomId| {
        let members = team.members(room).await.into_iter();
        members
            .filter(|one| one.user_name.as_deref() == Some("Parrot"))
            .collect::<Vec<_>>()
    };
    assert!(parrot(&attic).await.is_empty());
    assert_eq!(team.ask(&lobby, "two").await.content, "re two");
    assert!(parrot(&lobby).await[0].has_agent_endpoint);

    // From now on it follows the room, and the room calls nobody.
    let pulled = one_room.replace(&format!(", host: \"{host}\""), "");
    std::fs::write(&path, &pulled).unwrap();
    team.says("parrot is in lobby\n").await;
    assert_eq!(team.ask(&lobby, "three").await.content, "re three");
    assert!(!parrot(&lobby).await[0].has_agent_endpoint);
    let said = team.messages(&lobby).await;
    let answers = said.iter().filter(|one| one.content == "re three");
    assert_eq!(answers.count(), 1, "{said:?}");

    std::fs::write(&path, &one_room).unwrap();
    eventually("it is called again", async || {
        let parrot = parrot(&lobby).await;
        parrot.first()?.has_agent_endpoint.then_some(())
    })
    .await;
    assert_eq!(team.ask(&lobby, "four").await.content, "re four");
    let without = one_room.split("agents:").next().unwrap();
    std::fs::write(&path, without).unwrap();
    team.says("parrot is gone").await;
    assert!(parrot(&lobby).await.is_empty());
    team.interrupt().await;
}
