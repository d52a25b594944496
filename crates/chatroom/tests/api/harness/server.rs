//! Starting, stopping and killing the real server.

use super::{
    DEADLINE,
    caller::Caller,
    database::{Database, copy_sqlite_template},
    proxy::Proxy,
    token::{PROGRAM, shared_keys, sign, user_token},
};
use std::{
    fs::{DirBuilder, File},
    io::{BufRead, BufReader},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Where messages are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Embedded.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

/// The limits that count requests. Tests about something else switch them off.
const RATE_LIMITS: [&str; 23] = [
    "agent_messages_per_minute",
    "agent_cooldown_seconds",
    "web_messages_per_hour_per_key",
    "web_messages_per_hour_per_ip",
    "person_messages_per_hour",
    "visitor_reads_per_minute",
    "auto_invites_per_hour",
    "token_mints_per_minute",
    "bridge_per_minute",
    "edits_per_minute",
    "reactions_per_minute",
    "read_marks_per_minute",
    "rooms_per_hour",
    "invites_per_hour",
    "room_changes_per_hour",
    "key_changes_per_hour",
    "joins_per_hour",
    "member_changes_per_hour",
    "turn_changes_per_hour",
    "writes_per_minute_per_address",
    "agent_replies_per_minute",
    "agent_exchanges_without_person",
    "reserved_agent_exchanges_without_person",
];

/// How a test wants its server.
#[derive(Clone, PartialEq)]
pub struct Setup {
    engine: Engine,
    own_keys: bool,
    empty_database: bool,
    env: Vec<(String, String)>,
}

impl Setup {
    /// A server without rate limits, behind a proxy on this machine that it trusts.
    pub fn new(engine: Engine) -> Self {
        let setup = Self {
            engine,
            own_keys: false,
            empty_database: false,
            env: Vec::new(),
        };
        RATE_LIMITS
            .iter()
            .fold(setup, |setup, limit| setup.limit(limit, 0))
            .env("NETWORK__TRUSTED_PROXIES", r#"["127.0.0.1/32"]"#)
            .env("LOG__LEVEL", "info")
    }

    /// The rate limits as the document has them.
    pub fn with_the_documents_limits(mut self) -> Self {
        self.env.retain(|(name, _)| !name.contains("__LIMITS__"));
        self
    }

    /// One limit.
    pub fn limit(self, name: &str, value: i64) -> Self {
        let name = format!("LIMITS__{}", name.to_uppercase());
        self.env(&name, &value.to_string())
    }

    /// One setting, by its path in capitals joined by two underscores.
    pub fn env(mut self, path: &str, value: &str) -> Self {
        let name = format!("SC_CHATROOM__{path}");
        self.env.retain(|(other, _)| *other != name);
        self.env.push((name, value.to_owned()));
        self
    }

    /// A server that makes its own keys in its data folder, as one does that nobody configured.
    pub fn with_its_own_keys(mut self) -> Self {
        self.own_keys = true;
        self
    }

    /// A server that finds its database without tables, as on its very first start.
    pub fn on_an_empty_database(mut self) -> Self {
        self.empty_database = true;
        self
    }

    /// Which engine the test runs on.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Starts a server with nothing in it.
    pub async fn start(self) -> TestServer {
        let folder = scratch_folder();
        let data = folder.path().join("data");
        let database = match self.engine {
            Engine::Sqlite if self.own_keys || self.empty_database => None,
            Engine::Sqlite => {
                DirBuilder::new().mode(0o700).create(&data).unwrap();
                copy_sqlite_template(&data.join("chatroom.db")).await;
                None
            }
            Engine::Postgres if self.empty_database => Some(Database::create_empty().await),
            Engine::Postgres => Some(Database::create().await),
        };
        let keys = match self.own_keys {
            true => data.join("keys"),
            false => shared_keys().to_owned(),
        };
        let mut server = TestServer {
            setup: self,
            keys,
            data,
            running: None,
            printed: Arc::default(),
            base_url: String::new(),
            _database: database,
            folder,
        };
        server.launch().await;
        server
    }
}

/// A server of this test's own, stopped when the test ends.
pub struct TestServer {
    setup: Setup,
    keys: PathBuf,
    data: PathBuf,
    running: Option<Child>,
    printed: Arc<Mutex<String>>,
    base_url: String,
    // After the child, so that the server is gone before its database is.
    _database: Option<Database>,
    folder: TempDir,
}

impl TestServer {
    /// The engine it runs on.
    pub fn engine(&self) -> Engine {
        self.setup.engine
    }

    /// Where it listens, without a slash at the end.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// A folder for the test's own files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Nobody in particular.
    pub fn anonymous(&self) -> Caller {
        Caller::new(&self.base_url)
    }

    /// A caller with a user token: `u_alice` is called Alice.
    pub fn user(&self, id: &str) -> Caller {
        let name = id.strip_prefix("u_").unwrap_or(id);
        let name = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        self.user_named(id, &name)
    }

    /// A caller with a user token and this name in it.
    pub fn user_named(&self, id: &str, name: &str) -> Caller {
        self.anonymous()
            .with_token(&user_token(id, name, "container"))
            .known_as(id)
    }

    /// A caller with a user token of another type, `access` or `admin`.
    pub fn user_of_type(&self, id: &str, token_type: &str) -> Caller {
        self.anonymous()
            .with_token(&user_token(id, "", token_type))
            .known_as(id)
    }

    /// The typed client, with a caller's token.
    pub fn client(&self, caller: &Caller) -> client::Client {
        let client = client::Client::new(&self.base_url).unwrap();
        match caller.token() {
            Some(token) => client.with_token(token).unwrap(),
            None => client,
        }
    }

    /// A second server on the same PostgreSQL database, which goes with this one.
    pub async fn another_node(&self) -> Self {
        self.node_on(&self.database().shared_url()).await
    }

    /// The same, which reaches the database over this network.
    pub async fn another_node_through(&self, network: &Proxy) -> Self {
        let mut url = reqwest::Url::parse(&self.database().shared_url()).unwrap();
        url.set_ip_host(network.address().ip()).unwrap();
        url.set_port(Some(network.address().port())).unwrap();
        self.node_on(url.as_str()).await
    }

    /// Where its database server listens, `host:port`.
    pub fn database_address(&self) -> String {
        let url = reqwest::Url::parse(&self.database().url()).unwrap();
        format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432))
    }

    fn database(&self) -> &Database {
        let database = self._database.as_ref();
        database.expect("nodes share a PostgreSQL database")
    }

    async fn node_on(&self, database_url: &str) -> Self {
        let folder = scratch_folder();
        let mut node = Self {
            setup: self.setup.clone().env("DATABASE_URL", database_url),
            keys: self.keys.clone(),
            data: folder.path().join("data"),
            running: None,
            printed: Arc::default(),
            base_url: String::new(),
            _database: None,
            folder,
        };
        node.launch().await;
        node
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().id()
    }

    /// Kilobytes of memory that it has resident.
    pub fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().split_whitespace().next().unwrap();
        number.parse().unwrap()
    }

    /// The processor time that it has taken so far.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        // The name, in parentheses, may hold spaces; user and system time are 12th and 13th after.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// What it has printed since its last start.
    pub fn printed(&self) -> String {
        self.printed.lock().unwrap().clone()
    }

    /// What it has written to its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap()
    }

    /// Ends it at once, as a power cut would.
    pub fn kill9(&mut self) {
        if let Some(mut child) = self.running.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Asks it to end, and waits until it has.
    pub async fn terminate(&mut self) -> ExitStatus {
        let mut child = self.running.take().unwrap();
        signal(&child, "TERM");
        let asked = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            if asked.elapsed() > DEADLINE {
                child.kill().unwrap();
                panic!("the server did not end after SIGTERM:\n{}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Stops it where it stands, as a machine does that hangs.
    pub fn freeze(&self) {
        signal(self.running.as_ref().unwrap(), "STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        signal(self.running.as_ref().unwrap(), "CONT");
    }

    /// Holds a room's row in PostgreSQL, as a transaction does that does not end, until what this
    /// gives is dropped.
    pub async fn holds_room(&self, room: &str) -> impl Drop + use<> {
        self._database.as_ref().unwrap().lock_room(room).await
    }

    /// Holds PostgreSQL's lock on migrations, as a node does that changes the tables, until what this
    /// gives is dropped.
    pub async fn holds_migrations(&self) -> impl Drop + use<> {
        self.database().lock_migrations().await
    }

    /// How many transactions in PostgreSQL wait for their node to go on.
    pub async fn idle_transactions(&self) -> i64 {
        self._database.as_ref().unwrap().idle_transactions().await
    }

    /// Asks it to end, without waiting.
    pub fn ask_to_end(&self) {
        signal(self.running.as_ref().unwrap(), "TERM");
    }

    /// Starts it again on the same data, if need be after asking it to end. It listens elsewhere
    /// then: callers made before know the old address.
    pub async fn restart(&mut self) {
        if self.running.is_some() {
            let status = self.terminate().await;
            assert!(status.success(), "{status}:\n{}", self.log());
        }
        self.launch().await;
    }

    /// Runs the server's program with these arguments beside the server, as it is set up.
    pub async fn run_aside(&self, args: &[&str]) -> Output {
        let mut command = self.command();
        command.args(args);
        if let Some(database) = &self._database {
            command.env("SC_CHATROOM__DATABASE_URL", database.url());
        }
        let mut command = tokio::process::Command::from(command);
        let running = command.kill_on_drop(true).output();
        let output = tokio::time::timeout(DEADLINE, running).await;
        output.expect("the program ends").unwrap()
    }

    /// A token that `sc-chatroom token` signs with these arguments.
    pub fn token(&self, args: &[&str]) -> String {
        sign(&self.keys, args)
    }

    /// From the next start on, the data is in this folder.
    pub fn move_data_to(&mut self, data: &Path) {
        self.data = data.to_owned();
    }

    /// The same for the data and the keys.
    pub fn move_to(&mut self, data: &Path) {
        self.move_data_to(data);
        self.keys = data.join("keys");
    }

    /// Every byte that the database holds.
    pub async fn stored_bytes(&self) -> Vec<u8> {
        match &self._database {
            Some(database) => database.dump().await,
            None => {
                let files = std::fs::read_dir(&self.data).unwrap();
                let files = files
                    .map(|file| file.unwrap().path())
                    .filter(|file| file.is_file());
                files
                    .flat_map(|file| std::fs::read(file).unwrap())
                    .collect()
            }
        }
    }

    /// Runs statements in the database, behind the server's back.
    pub async fn run_sql(&self, sqlite: &str, postgres: &str) {
        match &self._database {
            Some(database) => database.run(postgres).await,
            None => {
                let file = self.data.join("chatroom.db");
                let connection = rusqlite::Connection::open(file).unwrap();
                connection.busy_timeout(DEADLINE).unwrap();
                connection.execute_batch(sqlite).unwrap();
            }
        }
    }

    /// The number that a query gives, asked behind the server's back.
    pub async fn count(&self, sql: &str) -> i64 {
        match &self._database {
            Some(database) => database.count(sql).await,
            None => {
                let file = self.data.join("chatroom.db");
                let connection = rusqlite::Connection::open(file).unwrap();
                connection.query_row(sql, [], |row| row.get(0)).unwrap()
            }
        }
    }

    /// How many queries run at this moment.
    pub async fn running_queries(&self) -> usize {
        match &self._database {
            Some(database) => database.running_queries().await,
            None => {
                let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
                let running = tasks.filter(|task| {
                    let path = task.as_ref().unwrap().path().join("stat");
                    // A thread may have ended meanwhile.
                    let stat = std::fs::read_to_string(path).unwrap_or_default();
                    stat.contains("(sqlx-sqlite") && stat.contains(") R ")
                });
                running.count()
            }
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SC_CHATROOM__")) {
            command.env_remove(name);
        }
        command
            .env("SC_CHATROOM__AUTH__KEYS_DIR", &self.keys)
            .envs(self.setup.env.iter().cloned());
        command
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("stderr.log")
    }

    async fn launch(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_file())
            .unwrap();
        let mut command = self.command();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(&self.data)
            .stdout(Stdio::piped())
            .stderr(log);
        if let Some(database) = &self._database {
            command.args(["--database-url", &database.url()]);
        }
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        self.running = Some(child);

        self.printed = Arc::default();
        let printed = self.printed.clone();
        let (told, line) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            let _ = stdout.read_line(&mut line);
            let _ = told.send(line.clone());
            // Keeps the pipe open and empty for as long as the server lives.
            while !line.is_empty() {
                printed.lock().unwrap().push_str(&line);
                line.clear();
                let _ = stdout.read_line(&mut line);
            }
        });
        let line = tokio::time::timeout(DEADLINE, line).await;
        let Ok(Ok(line)) = line else {
            panic!("the server did not start:\n{}", self.log());
        };
        let url = line
            .trim_end()
            .strip_prefix("Open ")
            .and_then(|url| url.strip_suffix('/'));
        let Some(url) = url else {
            panic!("the server said {line:?} and no address:\n{}", self.log());
        };
        self.base_url = match url.starts_with("http://127.0.0.1:") {
            true => url.to_owned(),
            // It told its public address; where it listens is in the log.
            false => {
                let log = self.log();
                let (_, address) = log.rsplit_once("address=").unwrap();
                format!("http://{}", address.split_whitespace().next().unwrap())
            }
        };
    }
}

impl Drop for TestServer {
    /// A panic in here, after another, would end all the tests without a word.
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let log = std::fs::read(self.log_file()).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            eprintln!("--- the server's log ---\n{log}");
        }
    }
}

/// A folder for a server's files: in memory where the test command knows that there is room, since
/// nothing in it has to last.
fn scratch_folder() -> TempDir {
    let folder = match std::env::var_os("SC_TEST_SCRATCH") {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    folder.unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("sh")
        .arg("-c")
        .arg(format!("kill -{name} {}", child.id()))
        .status();
    assert!(sent.unwrap().success());
}
