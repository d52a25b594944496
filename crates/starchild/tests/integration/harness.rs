//! A server, its owner, and an agent's owner at the shell.

use client::{Client, Event, MessageQuery, PostMessage};
use protocol::{AutoJoin, CreateInvite, InviteCreated, Message, RoomId};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Longer than anything here takes, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(180);

/// Runs what the message says, if somebody else said it.
pub const OBEY: &str = "#!/bin/bash\nmsg=$(cat)\n[ \"$(jq -r .sender_user_id <<<\"$msg\")\" = u_alice ] || exit 0\neval \"$(jq -r .content <<<\"$msg\")\"\n";
/// Says what was said, without starting anything. For tests with many messages.
pub const PARROT: &str = "#!/bin/sh\nread -r msg\ncase \"$msg\" in *'\"sender_user_id\":\"u_alice\"'*) ;; *) exit 0 ;; esac\nc=${msg##*'\"content\":\"'}\necho \"re ${c%%'\"'*}\"\n";

/// Tries until there is something, or the deadline is over.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    // Less and less often: each look takes time from whoever works.
    let mut pause = Duration::from_millis(50);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "this never happened: {what}");
        tokio::time::sleep(pause).await;
        pause = pause.mul_f32(1.3).min(Duration::from_millis(150));
    }
}

/// The server's program: the one that `cargo xtask test` has just built, else built here and now,
/// so that no test meets a stale one.
pub fn server_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(program) = std::env::var_os("SC_TEST_SERVER") {
            return program.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // Of the whole workspace, as `cargo xtask test` builds it: the same dependencies serve.
        let built = Command::new(cargo)
            .args(["build", "--quiet", "--workspace", "--bin", "sc-chatroom"])
            .args(["--example", "acp_agent"])
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(built.status.success());
        // Cargo says where it is: these tests may have been built for another profile or folder.
        let messages = String::from_utf8(built.stdout).unwrap();
        let messages = messages
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let mut programs = messages.filter_map(|message: Value| {
            let is_server = message["target"]["name"] == "sc-chatroom";
            let program = message["executable"].as_str().filter(|_| is_server);
            program.map(PathBuf::from)
        });
        programs.next().expect("Cargo names the server")
    })
}

/// A folder for files that nothing has to outlast: in memory where the test command says so.
fn scratch_folder() -> TempDir {
    let folder = match std::env::var_os("SC_TEST_SCRATCH") {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    folder.unwrap()
}

/// Puts keys and tables into a server's data folder that the test command has made once; under
/// plain Cargo each server makes its own.
fn copy_first_data(to: &Path) {
    let Some(from) = std::env::var_os("SC_TEST_DATA") else {
        return;
    };
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

/// A room server, stopped when the test ends.
pub struct Server {
    folder: TempDir,
    port: u16,
    env: Vec<(String, String)>,
    running: Option<Child>,
}

impl Server {
    /// A server without rate limits.
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    /// A server without rate limits but these settings.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let none = [
            "AGENT_MESSAGES_PER_MINUTE",
            "AGENT_COOLDOWN_SECONDS",
            "AGENT_EXCHANGES_WITHOUT_PERSON",
            "AGENT_REPLIES_PER_MINUTE",
            "TOKEN_MINTS_PER_MINUTE",
        ];
        let none = none.map(|limit| (format!("SC_CHATROOM__LIMITS__{limit}"), "0".to_owned()));
        let more = settings
            .iter()
            .map(|(key, value)| (format!("SC_CHATROOM__{key}"), (*value).to_owned()));
        let folder = scratch_folder();
        copy_first_data(&folder.path().join("data"));
        let mut server = Self {
            folder,
            port: 0,
            env: none.into_iter().chain(more).collect(),
            running: None,
        };
        server.launch();
        server
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts it where it was before.
    pub fn launch(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("server.log"));
        let mut child = Command::new(server_program())
            .args(["serve", "--listen", &format!("127.0.0.1:{}", self.port)])
            .arg("--data")
            .arg(self.data())
            .envs(self.env.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(log.unwrap())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let port = line.trim().trim_end_matches('/').rsplit(':').next();
        let port = port.and_then(|port| port.parse().ok());
        // Once it has a port, it keeps it over restarts.
        self.port = port.unwrap_or_else(|| panic!("the server said {line:?}"));
        std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
        self.running = Some(child);
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Alice, who owns rooms.
    pub fn alice(&self) -> Client {
        let client = Client::new(&self.url()).unwrap();
        client.with_token(self.alice_token()).unwrap()
    }

    /// A person who has signed in.
    pub fn person(&self, user: &str, name: &str) -> Client {
        let person = ["--user", user, "--name", name, "--type", "access"];
        let client = Client::new(&self.url()).unwrap();
        client.with_token(self.token(&person)).unwrap()
    }

    pub fn alice_token(&self) -> String {
        self.user_token("u_alice", "Alice")
    }

    /// A token of a user's agent.
    pub fn user_token(&self, user: &str, name: &str) -> String {
        self.token(&["--user", user, "--name", name])
    }

    /// Signed once for all servers with the same key.
    fn token(&self, of: &[&str]) -> String {
        static SIGNED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
        let key = std::fs::read_to_string(self.data().join("keys/user-tokens.pem")).unwrap();
        let mut signed = SIGNED.lock().unwrap();
        let token = signed
            .entry(format!("{key}{of:?}"))
            .or_insert_with(|| self.sign(of));
        token.clone()
    }

    fn sign(&self, of: &[&str]) -> String {
        let token = Command::new(server_program())
            .arg("token")
            .args(of)
            .arg("--data")
            .arg(self.data())
            .output()
            .unwrap();
        String::from_utf8(token.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.path().join("server.log"));
            eprintln!("--- server.log ---\n{}", log.unwrap_or_default());
        }
    }
}

/// A room of Alice's.
pub struct Room {
    pub alice: Client,
    pub id: RoomId,
}

impl Room {
    pub async fn new(alice: &Client) -> Self {
        let id = alice.create_room("a room", None).await.unwrap().room_id;
        let alice = alice.clone();
        Self { alice, id }
    }

    /// A reserved room, with Alice in it.
    pub async fn reserved(alice: &Client, id: &str) -> Self {
        alice.auto_join(&AutoJoin::default()).await.unwrap();
        let id = id.parse().unwrap();
        let alice = alice.clone();
        Self { alice, id }
    }

    pub async fn invite(&self) -> InviteCreated {
        let invite = CreateInvite::default();
        self.alice.create_invite(&self.id, &invite).await.unwrap()
    }

    /// Alice says something.
    pub async fn say(&self, content: &str) -> i64 {
        let message = PostMessage {
            content: content.into(),
            ..Default::default()
        };
        let posted = self.alice.post_message(&self.id, &message, None).await;
        posted.unwrap().seq
    }

    /// Everything that was said.
    pub async fn said(&self) -> Vec<Message> {
        let mut all: Vec<Message> = Vec::new();
        loop {
            let query = MessageQuery {
                since: Some(all.last().map_or(0, |message| message.seq)),
                limit: Some(200),
                ..Default::default()
            };
            let page = self.alice.messages(&self.id, &query).await.unwrap();
            if page.messages.is_empty() {
                return all;
            }
            all.extend(page.messages);
        }
    }

    /// The answers to a message.
    pub async fn answers(&self, seq: i64) -> Vec<Message> {
        let mut said = self.said().await;
        said.retain(|message| message.reply_to_seq == Some(seq));
        said
    }

    /// The answer to a message, once there is one.
    pub async fn answer(&self, seq: i64) -> Message {
        let what = format!("message {seq} is answered");
        eventually(&what, async || self.answers(seq).await.pop()).await
    }

    /// The answer to what Alice says.
    pub async fn ask(&self, content: &str) -> String {
        let seq = self.say(content).await;
        self.answer(seq).await.content
    }
}

/// What somebody sees in a room, answers in the making included.
pub struct Watcher {
    events: Arc<Mutex<Vec<Event>>>,
    task: JoinHandle<()>,
}

impl Watcher {
    pub async fn new(room: &Room) -> Self {
        let mut stream = room.alice.stream_with_deltas(&room.id, None).await.unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = events.clone();
        let task = tokio::spawn(async move {
            while let Ok(Some((_, event))) = stream.next().await {
                seen.lock().unwrap().push(event);
            }
        });
        Self { events, task }
    }

    /// Everything so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Waits for an event.
    pub async fn sees<T>(&self, what: &str, look: impl Fn(&Event) -> Option<T>) -> T {
        eventually(what, async || self.events().iter().find_map(&look)).await
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The owner of an agent, at the shell.
pub struct Owner {
    pub folder: TempDir,
    pub agent: String,
    /// What the daemon finds in its environment besides.
    pub env: Vec<(&'static str, String)>,
}

impl Owner {
    /// An owner whose agent has this script.
    pub async fn with_handler(server: &Server, script: &str) -> Self {
        Self::with_settings(server, script, &[]).await
    }

    pub async fn with_settings(server: &Server, script: &str, settings: &[&str]) -> Self {
        Self::at(&server.url(), script, settings).await
    }

    /// An owner who has no agent yet.
    pub fn without_agent() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            agent: String::new(),
            env: Vec::new(),
        }
    }

    /// An owner who reaches the server at this address.
    pub async fn at(url: &str, script: &str, settings: &[&str]) -> Self {
        let mut owner = Self::without_agent();
        owner.write_script("handler.sh", script, 0o755);
        let mut add = vec![
            "byoa",
            "add",
            "--prefix",
            "curious_otter",
            "--backend",
            "handler",
            "--handler-path",
            "handler.sh",
            "--server",
            url,
        ];
        add.extend(settings);
        owner.agent = owner.types(&add).await.trim().to_owned();
        owner
    }

    pub fn write_script(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The agent's folder.
    pub fn place(&self) -> PathBuf {
        self.home().join("sc-chatroom").join(&self.agent)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.place().join("agent.log")).unwrap_or_default()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starchild"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("STARCHILD_HOME", self.home())
            .env_remove("STARCHILD_SERVER")
            .envs(self.env.iter().cloned());
        command
    }

    /// Types a command and gives what came of it.
    pub async fn tries(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        let running = tokio::task::spawn_blocking(move || command.output());
        running.await.unwrap().unwrap()
    }

    /// Types a command that works, and gives what it printed.
    pub async fn types(&self, args: &[&str]) -> String {
        let output = self.tries(args).await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Brings the agent into a room.
    pub async fn joins(&self, room: &Room) {
        let code = room.invite().await.short_code;
        self.types(&["room", "join", &code]).await;
    }

    /// Starts the daemon in this process's care, ready once it follows its rooms.
    pub async fn runs(&self) -> Daemon {
        let starts = |log: &str| log.matches("started agent=").count();
        let before = starts(&self.log());
        let daemon = self.starts();
        eventually("the daemon starts", async || {
            let log = self.log();
            let followed = log.rsplit("started agent=").next()?.contains("following");
            (starts(&log) > before && followed).then_some(())
        })
        .await;
        daemon
    }

    /// Starts the daemon and waits for nothing.
    pub fn starts(&self) -> Daemon {
        let mut command = self.command(&["run", "--foreground"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Daemon(child.unwrap())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- agent.log ---\n{}", self.log());
        }
    }
}

/// A daemon, killed when the test ends.
pub struct Daemon(pub Child);

impl Daemon {
    /// As a power cut would.
    pub fn kill9(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn terminate(&self) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended by itself.
    pub async fn ends(&mut self) -> std::process::ExitStatus {
        eventually("the daemon ends", async || self.0.try_wait().unwrap()).await
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Alice's room with an agent in it that runs.
pub async fn room_with(script: &str) -> (Server, Room, Owner, Daemon) {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, script).await;
    owner.joins(&room).await;
    let daemon = owner.runs().await;
    (server, room, owner, daemon)
}
