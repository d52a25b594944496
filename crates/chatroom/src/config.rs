//! Settings: defaults, then the TOML file, then the environment, then the command line.
//!
//! A setting's environment variable is `SC_CHATROOM__` and its path in capitals joined by two
//! underscores. An unknown key is an error, so a typing mistake never passes for a setting.

use ipnet::IpNet;
use serde::Deserialize;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};
use toml::{Table, Value};

const ENV_PREFIX: &str = "SC_CHATROOM__";

/// Why the settings could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, std::io::Error),
    #[error("{0} is no valid configuration: {1}")]
    File(PathBuf, toml::de::Error),
    #[error("the environment variable {0} does not fit: {1}")]
    Env(String, toml::de::Error),
    #[error("the configuration does not fit: {0}")]
    Values(toml::de::Error),
}

macro_rules! settings {
    ($($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $ty:ty = $default:expr),* $(,)? })+) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Deserialize)]
            #[serde(default, deny_unknown_fields)]
            pub struct $name { $($(#[$fmeta])* pub $field: $ty),* }

            impl Default for $name {
                fn default() -> Self {
                    Self { $($field: $default),* }
                }
            }
        )+
    };
}

settings! {
    /// All settings.
    Config {
        /// Where to listen.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// The folder for the database and the keys.
        data: PathBuf = PathBuf::from("./data"),
        /// What links begin with; the listening address where absent.
        public_url: Option<String> = None,
        /// `postgres://…`; SQLite in the data folder where absent.
        database_url: Option<String> = None,
        /// `nats://…`, for several nodes on one database.
        bus: Option<String> = None,
        /// How long the server may take to end after SIGTERM, whatever runs.
        shutdown_seconds: u64 = 10,
        /// How long a query that reads may take.
        query_seconds: u64 = 10,
        /// Who may sign user tokens.
        auth: Auth = Auth::default(),
        /// Which networks count as what.
        network: Network = Network::default(),
        /// Which web pages may call.
        cors: Cors = Cors::default(),
        /// How much anyone may do.
        limits: Limits = Limits::default(),
        /// How long tokens last.
        tokens: Tokens = Tokens::default(),
        /// The live stream.
        stream: Stream = Stream::default(),
        /// Searching what was said.
        search: Search = Search::default(),
        /// Calling agents that run elsewhere.
        fanout: Fanout = Fanout::default(),
        /// The way from a command line to its owner's agent.
        bridge: Bridge = Bridge::default(),
        /// The door for MCP clients.
        mcp: Mcp = Mcp::default(),
        /// The door for A2A clients.
        a2a: A2a = A2a::default(),
        /// What is served to those who run agents.
        assets: Assets = Assets::default(),
        /// The log.
        log: Log = Log::default(),
    }

    /// Who may sign user tokens. With nothing set, the server's own key in the data folder.
    Auth {
        /// An RSA public key in PEM; tokens are RS256.
        public_key_file: Option<PathBuf> = None,
        /// A JWKS file; tokens are RS256.
        jwks_file: Option<PathBuf> = None,
        /// Where a JWKS is read from, at start and every ten minutes; tokens are RS256.
        jwks_url: Option<String> = None,
        /// A shared secret; tokens are HS256.
        hs256_secret: Option<String> = None,
        /// Whom a provider's tokens must be for (`aud`): one name, or a list of which one will do.
        audience: Names = Names::default(),
        /// Who must have issued them (`iss`): one name, or a list of which one will do.
        issuer: Names = Names::default(),
        /// The folder with this server's own keys; `keys` in the data folder where absent.
        keys_dir: Option<PathBuf> = None,
    }

    /// Which networks count as what.
    Network {
        /// Networks that user tokens may come from.
        internal: Vec<IpNet> = default_internal(),
        /// Proxies whose `X-Forwarded-For` counts.
        trusted_proxies: Vec<IpNet> = Vec::new(),
    }

    /// Which web pages may call.
    Cors {
        /// Origins such as `https://example.org`; none means same-origin only.
        allowed_origins: Vec<String> = Vec::new(),
    }

    /// How much anyone may do. 0 means no limit.
    Limits {
        /// Messages a minute, for each agent in each room.
        agent_messages_per_minute: i64 = 6,
        /// Seconds between two messages of an agent in a room.
        agent_cooldown_seconds: i64 = 15,
        /// Messages an hour under one room key.
        web_messages_per_hour_per_key: i64 = 20,
        /// Messages an hour under room keys from one address.
        web_messages_per_hour_per_ip: i64 = 60,
        /// Messages an hour of a person who signed in, in all rooms; neither limit above is theirs.
        person_messages_per_hour: i64 = 600,
        /// Anonymous reads a minute, for each address and room.
        visitor_reads_per_minute: i64 = 30,
        /// Invites an hour that visitors make for themselves, for each address and room.
        auto_invites_per_hour: i64 = 5,
        /// Tokens a minute that are minted with one credential.
        token_mints_per_minute: i64 = 1,
        /// Calls a minute through the CLI bridge, for each container.
        bridge_per_minute: i64 = 30,
        /// Members of a room.
        members_per_room: i64 = 20,
        /// Members of a reserved room.
        reserved_members_per_room: i64 = 10_000,
        /// Agents an hour that join the reserved rooms without a token, for each address.
        auto_joins_per_hour: i64 = 60,
        /// Active room keys of a user in a room.
        room_keys_per_user: i64 = 3,
        /// How long an invite may be good for, at most: a day, and never more than 30.
        invite_ttl_seconds: i64 = 86_400,
        /// Answers a minute that are collected from an agent in a room; the next ones wait.
        agent_replies_per_minute: i64 = 30,
        /// Messages of one agent after another's in a room, until a person writes.
        agent_exchanges_without_person: i64 = 60,
        /// The same in a reserved room, where all newcomers meet.
        reserved_agent_exchanges_without_person: i64 = 1000,
        /// How long a message may be edited or deleted.
        edit_window_seconds: i64 = 300,
        /// Edits and deletions a minute, for each member.
        edits_per_minute: i64 = 60,
        /// Reactions a minute, given or taken back, for each member.
        reactions_per_minute: i64 = 120,
        /// Read positions a minute, for each member.
        read_marks_per_minute: i64 = 240,
        /// How often in ten seconds a member says what it does, in each room.
        typing_per_10_seconds: i64 = 100,
        /// How often an hour a user stops agents, has messages answered anew, or asks for consents and
        /// decides them.
        turn_changes_per_hour: i64 = 600,
        /// Rooms an hour that a user makes.
        rooms_per_hour: i64 = 120,
        /// Invites an hour that a user makes or revokes.
        invites_per_hour: i64 = 300,
        /// Changes an hour to rooms, their rules and their data, for each user.
        room_changes_per_hour: i64 = 300,
        /// Keys and tokens an hour that are made or revoked, for each user.
        key_changes_per_hour: i64 = 300,
        /// Joins an hour, for each user, or for each address of those who have no token.
        joins_per_hour: i64 = 300,
        /// Changes an hour to members: their endpoints, names and cards, and leaving.
        member_changes_per_hour: i64 = 600,
        /// All writes a minute from one address, messages excepted.
        writes_per_minute_per_address: i64 = 1200,
        /// Streams that are open at once with one key, or by one user.
        streams_per_key: usize = 100,
        /// Streams that are open at once from one address.
        streams_per_address: usize = 1000,
        /// Connections that are open at once from one address.
        connections_per_address: usize = 2000,
        /// Seconds that a request's head may take, and that a connection may be idle.
        head_seconds: u64 = 15,
        /// Seconds that a request's body may take.
        body_seconds: u64 = 30,
    }

    /// How long tokens last, in seconds.
    Tokens {
        /// Room keys and member tokens.
        room_key_ttl_seconds: i64 = 7 * 24 * 3600,
        /// Identity tokens.
        identity_ttl_seconds: i64 = 90 * 24 * 3600,
    }

    /// The live stream.
    Stream {
        /// Seconds of silence after which a stream gets a sign of life.
        heartbeat_seconds: u64 = 15,
        /// How many messages a stream may be behind and still resume.
        replay_limit: i64 = 10_000,
        /// How many edits, reactions and other events without a seq are kept for each room.
        retain_events: i64 = 10_000,
        /// How many commits are held in memory for the readers of a room.
        buffer: usize = 1024,
    }

    /// Searching what was said.
    Search {
        /// Whether messages can be searched. Switched on later, what was said meanwhile is caught up
        /// with.
        enabled: bool = true,
    }

    /// Calling agents that run elsewhere.
    Fanout {
        /// Seconds to wait after the first failure of a call, after the second, and so on. After
        /// as many failures as there are numbers the member is stale.
        retry_seconds: Vec<u64> = vec![1, 4, 16, 64, 256],
        /// Who may name a private or loopback endpoint.
        private_endpoints: PrivateEndpoints = PrivateEndpoints::Trusted,
        /// The header that carries a member's container id.
        routing_header: RoutingHeader = RoutingHeader("fly-force-instance-id".to_owned()),
        /// Seconds an answer may take from the call to its end.
        reply_seconds: u64 = 120,
        /// Seconds an answer may pause.
        idle_seconds: u64 = 60,
        /// Bytes of an answer that are read; one that is longer fails.
        reply_bytes: usize = 1024 * 1024,
        /// Calls at once, in all.
        calls_at_once: usize = 2048,
        /// Calls at once to endpoints of one host.
        calls_per_host: usize = 256,
        /// Calls at once to one member, over all its rooms.
        calls_per_member: usize = 16,
    }

    /// The way from a command line to its owner's agent.
    Bridge {
        /// The agent that is called where neither the short code nor a membership names one.
        agent_url: Option<String> = None,
        /// Seconds an answer may pause.
        idle_seconds: u64 = 300,
    }

    /// The door for MCP clients.
    Mcp {
        /// Seconds after which a session ends that nobody uses.
        session_idle_seconds: u64 = 1800,
        /// Sessions that one user, or one room key, may have open on a node.
        sessions_per_user: usize = 32,
        /// Sessions that may be open on a node.
        sessions: usize = 4096,
    }

    /// The door for A2A clients.
    A2a {
        /// Seconds that a message which waits for its answer is held at the most.
        wait_seconds: u64 = 300,
        /// Seconds after which a task ends that nobody has answered.
        task_seconds: i64 = 3600,
    }

    /// What is served to those who run agents.
    Assets {
        /// The folder with the `starchild` programs; the one of the server's own program where
        /// absent.
        folder: Option<PathBuf> = None,
    }

    /// The log.
    Log {
        /// `error`, `warn`, `info`, `debug` or `trace`, or a filter such as `info,sqlx=warn`.
        level: String = "info".to_owned(),
        /// Lines for people, or JSON.
        format: LogFormat = LogFormat::Text,
    }
}

/// Who may name a private or loopback endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrivateEndpoints {
    /// Members who came with a user token.
    Trusted,
    /// Everybody.
    All,
    /// Nobody.
    None,
}

/// One name or a list of names.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct Names(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Names {
    fn from(names: OneOrMany) -> Self {
        match names {
            OneOrMany::One(name) => Self(vec![name]),
            OneOrMany::Many(names) => Self(names),
        }
    }
}

impl std::ops::Deref for Names {
    type Target = [String];
    fn deref(&self) -> &[String] {
        &self.0
    }
}

/// A header's name that was checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct RoutingHeader(String);

impl RoutingHeader {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RoutingHeader {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match axum::http::HeaderName::from_bytes(name.as_bytes()) {
            Ok(_) => Ok(Self(name)),
            Err(_) => Err(format!("{name:?} is no header's name")),
        }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

fn default_internal() -> Vec<IpNet> {
    [
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    ]
    .iter()
    .filter_map(|net| net.parse().ok())
    .collect()
}

impl Auth {
    /// Whether this server signs user tokens itself.
    pub fn is_own(&self) -> bool {
        self.public_key_file.is_none()
            && self.jwks_file.is_none()
            && self.jwks_url.is_none()
            && self.hs256_secret.is_none()
    }
}

impl Config {
    /// Reads the file, if one is named, and the environment over it.
    pub fn load(
        file: Option<&Path>,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut table = match file {
            None => Table::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| ConfigError::Read(path.to_owned(), error))?;
                let table: Table = toml::from_str(&text)
                    .map_err(|error| ConfigError::File(path.to_owned(), error))?;
                check(&table).map_err(|error| ConfigError::File(path.to_owned(), error))?;
                table
            }
        };
        for (name, text) in env {
            if let Some(path) = name.strip_prefix(ENV_PREFIX) {
                table =
                    overlay(table, path, &text).map_err(|error| ConfigError::Env(name, error))?;
            } else if name == "CORS_ALLOWED_ORIGINS" {
                let origins = text.split(',').map(str::trim).filter(|o| !o.is_empty());
                let list = Value::Array(origins.map(|o| Value::String(o.to_owned())).collect());
                table = with(table, &["cors", "allowed_origins"], list);
            }
        }
        Value::Table(table).try_into().map_err(ConfigError::Values)
    }

    /// Where this server's own keys are.
    pub fn keys_dir(&self) -> PathBuf {
        self.auth
            .keys_dir
            .clone()
            .unwrap_or_else(|| self.data.join("keys"))
    }

    /// The SQLite file.
    pub fn sqlite_file(&self) -> PathBuf {
        self.data.join("chatroom.db")
    }
}

fn check(table: &Table) -> Result<(), toml::de::Error> {
    Value::Table(table.clone()).try_into::<Config>().map(drop)
}

/// Sets what an environment variable says: as a TOML value where that fits, else as text.
fn overlay(table: Table, path: &str, text: &str) -> Result<Table, toml::de::Error> {
    let path = path.to_lowercase();
    let keys: Vec<&str> = path.split("__").collect();
    let literal = toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut parsed| parsed.remove("value"));
    if let Some(value) = literal {
        let candidate = with(table.clone(), &keys, value);
        if check(&candidate).is_ok() {
            return Ok(candidate);
        }
    }
    let candidate = with(table, &keys, Value::String(text.to_owned()));
    check(&candidate).map(|()| candidate)
}

fn with(mut table: Table, keys: &[&str], value: Value) -> Table {
    match keys {
        [] => {}
        [key] => {
            table.insert((*key).to_owned(), value);
        }
        [key, rest @ ..] => {
            let inner = match table.remove(*key) {
                Some(Value::Table(inner)) => inner,
                _ => Table::new(),
            };
            table.insert((*key).to_owned(), Value::Table(with(inner, rest, value)));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_env(vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::load(
            None,
            vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())),
        )
    }

    #[test]
    fn every_limit_has_the_documents_default() {
        let limits = Config::default().limits;
        assert_eq!(limits.agent_messages_per_minute, 6);
        assert_eq!(limits.agent_cooldown_seconds, 15);
        assert_eq!(limits.web_messages_per_hour_per_key, 20);
        assert_eq!(limits.web_messages_per_hour_per_ip, 60);
        assert_eq!(limits.visitor_reads_per_minute, 30);
        assert_eq!(limits.auto_invites_per_hour, 5);
        assert_eq!(limits.token_mints_per_minute, 1);
        assert_eq!(limits.members_per_room, 20);
        assert_eq!(limits.room_keys_per_user, 3);
    }

    #[test]
    fn the_environment_goes_over_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "[limits]\nagent_cooldown_seconds = 3\nmembers_per_room = 7\n",
        )
        .unwrap();
        let env = [(
            "SC_CHATROOM__LIMITS__AGENT_COOLDOWN_SECONDS".to_owned(),
            "0".to_owned(),
        )];
        let config = Config::load(Some(file.path()), env).unwrap();
        assert_eq!(config.limits.agent_cooldown_seconds, 0);
        assert_eq!(config.limits.members_per_room, 7);
    }

    #[test]
    fn a_number_passes_as_text_where_text_is_wanted() {
        let config = from_env(&[("SC_CHATROOM__AUTH__HS256_SECRET", "12345")]).unwrap();
        assert_eq!(config.auth.hs256_secret.as_deref(), Some("12345"));
    }

    #[test]
    fn lists_are_toml_lists() {
        let config = from_env(&[("SC_CHATROOM__NETWORK__INTERNAL", r#"["10.1.0.0/16"]"#)]).unwrap();
        assert_eq!(config.network.internal, ["10.1.0.0/16".parse().unwrap()]);
        let config = from_env(&[(
            "CORS_ALLOWED_ORIGINS",
            "https://a.example, https://b.example",
        )])
        .unwrap();
        assert_eq!(
            config.cors.allowed_origins,
            ["https://a.example", "https://b.example"]
        );
    }

    #[test]
    fn an_unknown_setting_is_an_error_that_names_it() {
        let error = from_env(&[("SC_CHATROOM__LIMITS__AGENT_COOLDWN", "1")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("SC_CHATROOM__LIMITS__AGENT_COOLDWN"),
            "{error}"
        );
        assert!(error.contains("agent_cooldown_seconds"), "{error}");
    }

    #[test]
    fn a_routing_header_is_a_headers_name() {
        let config = from_env(&[("SC_CHATROOM__FANOUT__ROUTING_HEADER", "x-route")]).unwrap();
        assert_eq!(config.fanout.routing_header.as_str(), "x-route");
        assert!(from_env(&[("SC_CHATROOM__FANOUT__ROUTING_HEADER", "no header")]).is_err());
    }

    #[test]
    fn the_example_file_names_every_setting_with_its_default() {
        let text = include_str!("../../../sc-chatroom.example.toml");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let example = Config::load(Some(file.path()), []).unwrap();
        assert_eq!(format!("{example:?}"), format!("{:?}", Config::default()));
        for line in format!("{:#?}", Config::default()).lines() {
            if let Some((name, value)) = line.trim().split_once(": ")
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
                && !value.ends_with('{')
            {
                assert!(
                    text.contains(&format!("{name} = ")),
                    "the example does not name {name}"
                );
            }
        }
    }
}
