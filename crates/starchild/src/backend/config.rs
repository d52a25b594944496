//! `handler.yaml`: which backend answers for an agent, and how it is set up.

use super::answer_in::AnswerIn;
use protocol::{AgentId, Budget, MAX_NAME_CHARS, Wake, WakePolicy};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

/// The server where none is named.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";
const MAX_FILE_BYTES: usize = 256 * 1024;
const MAX_TIMEOUT_SECONDS: u64 = 24 * 3600;
const MAX_CONTEXT_MESSAGES: u32 = 200;

/// The kinds of backends there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// The `codex` command line.
    Codex,
    /// The `claude` command line.
    Claude,
    /// Any server that speaks like OpenAI's.
    Openai,
    /// No model: says that it is here.
    Plain,
    /// A shell body of the owner's.
    Custom,
    /// A script of the owner's that decides everything itself.
    Handler,
    /// The owner's hosted agent.
    Starchild,
    /// A coding agent that speaks the Agent Client Protocol.
    Acp,
    /// Any agent that speaks A2A.
    A2a,
    /// A model with tools, from an `agent.yaml`.
    Agent,
    /// Many listeners around one pump, from an `organism.yaml`.
    Organism,
}

impl BackendKind {
    /// Every kind there is.
    pub const ALL: [Self; 11] = [
        Self::Codex,
        Self::Claude,
        Self::Openai,
        Self::Plain,
        Self::Custom,
        Self::Handler,
        Self::Starchild,
        Self::Acp,
        Self::A2a,
        Self::Agent,
        Self::Organism,
    ];

    /// The word in `handler.yaml` and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Openai => "openai",
            Self::Plain => "plain",
            Self::Custom => "custom",
            Self::Handler => "handler",
            Self::Starchild => "starchild",
            Self::Acp => "acp",
            Self::A2a => "a2a",
            Self::Agent => "agent",
            Self::Organism => "organism",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BackendKind {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str).join(", ");
            format!("{word} is no backend; want one of {words}")
        })
    }
}

/// What `handler.yaml` says. Paths in it count from the agent's folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendConfig {
    /// The room server.
    #[serde(default = "default_server")]
    pub server: String,
    /// Which backend answers.
    pub backend: BackendKind,
    /// The name that the agent joins rooms with; [`default_name`] where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The script of the `handler` backend.
    #[serde(default)]
    pub handler_path: Option<PathBuf>,
    /// `custom`: a shell body; `codex`, `claude` and `acp`: the command to run.
    #[serde(default)]
    pub command: Option<String>,
    /// Further arguments of the command.
    #[serde(default)]
    pub args: Vec<String>,
    /// The model, where the backend has several.
    #[serde(default)]
    pub model: Option<String>,
    /// What the agent is told before the room's rules.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// How long an answer may take.
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u64,
    /// How many messages before the one to answer are shown to the backend.
    #[serde(default = "default_context_messages")]
    pub context_messages: u32,
    /// `acp`: the file that says what the agent may do.
    #[serde(default)]
    pub permissions: Option<PathBuf>,
    /// `agent`: its `agent.yaml`.
    #[serde(default)]
    pub agent: Option<PathBuf>,
    /// `organism`: its `organism.yaml`.
    #[serde(default)]
    pub organism: Option<PathBuf>,
    /// `a2a`: the agent's address, or its card's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `a2a`: the variable of the daemon's environment that holds the bearer for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// In which rooms it answers; [`AnswerIn::usual`] where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_in: Option<AnswerIn>,
    /// Variables of the daemon's environment that the backend's program gets besides.
    #[serde(default)]
    pub env: Vec<String>,
    /// What wakes it; as the backend usually has it where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Wake>,
    /// What it may spend in a room in a day.
    #[serde(default)]
    pub budget: Budget,
    /// Whether the room sees the arguments of the tools that it uses.
    #[serde(default)]
    pub show_arguments: bool,
    /// Keys that nobody knows; they are warned of.
    #[serde(flatten, skip_serializing)]
    pub unknown: BTreeMap<String, serde_json::Value>,
}

fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(fits)
}

fn default_server() -> String {
    DEFAULT_SERVER.to_owned()
}

fn default_timeout_seconds() -> u64 {
    120
}

fn default_context_messages() -> u32 {
    20
}

/// Why `handler.yaml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It says something that does not fit.
    #[error("{}: {why}", path.display())]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// What to change.
        why: String,
    },
}

impl BackendConfig {
    /// A backend with everything else as it is by default.
    #[cfg(test)]
    pub fn new(backend: BackendKind) -> Self {
        Self {
            server: default_server(),
            backend,
            name: None,
            handler_path: None,
            command: None,
            args: Vec::new(),
            model: None,
            system_prompt: None,
            timeout_seconds: default_timeout_seconds(),
            context_messages: default_context_messages(),
            permissions: None,
            agent: None,
            organism: None,
            url: None,
            token_env: None,
            answer_in: None,
            env: Vec::new(),
            wake: None,
            budget: Budget::default(),
            show_arguments: false,
            unknown: BTreeMap::new(),
        }
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Read {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(&text).map_err(|why| ConfigError::Invalid {
            path: path.to_owned(),
            why,
        })
    }

    /// Reads a text; the error says what to change.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_FILE_BYTES {
            return Err(format!("it has more than {MAX_FILE_BYTES} bytes"));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: 16, max_nodes: 2_000, max_events: 10_000,
                max_aliases: 10, max_anchors: 10, max_documents: 1,
            },
        };
        let config: Self = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| error.to_string())?;
        config.check()?;
        Ok(config)
    }

    /// How long an answer may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }

    /// In which rooms it answers.
    pub fn answer_in(&self) -> AnswerIn {
        let usual = || AnswerIn::usual(self.backend);
        self.answer_in.clone().unwrap_or_else(usual)
    }

    /// What wakes it and what it may spend, as its owner wants.
    pub fn wake_policy(&self) -> WakePolicy {
        let usual = match self.backend {
            BackendKind::Handler => Wake::Everything,
            _ => Wake::Threads,
        };
        WakePolicy {
            wake: self.wake.unwrap_or(usual),
            budget: self.budget.clone(),
        }
    }

    fn check(&self) -> Result<(), String> {
        self.check_limits()?;
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&self.timeout_seconds) {
            return Err(format!("timeout_seconds is 1 to {MAX_TIMEOUT_SECONDS}"));
        }
        if self.context_messages > MAX_CONTEXT_MESSAGES {
            return Err(format!("context_messages is 0 to {MAX_CONTEXT_MESSAGES}"));
        }
        if let Some(name) = self.env.iter().find(|name| !is_variable(name)) {
            return Err(format!(
                "env lists names of variables, and {name:?} is none"
            ));
        }
        if let Some(name) = &self.token_env
            && !is_variable(name)
        {
            return Err(format!("token_env names a variable, and {name:?} is none"));
        }
        if let Some(name) = &self.name
            && !(1..=MAX_NAME_CHARS).contains(&name.trim().chars().count())
        {
            return Err(format!("name has 1 to {MAX_NAME_CHARS} characters"));
        }
        let missing = |key: &str, example: &str| {
            let backend = self.backend;
            Err(format!("backend {backend} needs {key}, e.g. {example}"))
        };
        match self.backend {
            BackendKind::Handler if self.handler_path.is_none() => {
                missing("handler_path", "handler_path: ./handler.sh")
            }
            BackendKind::Custom if self.command.is_none() => {
                missing("command", "command: \"date\"")
            }
            BackendKind::A2a if self.url.is_none() => missing("url", "url: https://agent.example"),
            BackendKind::Agent if self.agent.is_none() => {
                missing("agent", "agent: /home/me/helper/agent.yaml")
            }
            BackendKind::Organism if self.organism.is_none() => {
                missing("organism", "organism: /home/me/desk/organism.yaml")
            }
            _ => Ok(()),
        }
    }

    fn check_limits(&self) -> Result<(), String> {
        let Budget {
            turns,
            tokens,
            cost_usd,
        } = &self.budget;
        let is_negative = [turns, tokens].into_iter().flatten().any(|n| *n < 0);
        if is_negative || cost_usd.is_some_and(|cost| !(0.0..=1e6).contains(&cost)) {
            return Err("budget has numbers from 0 on, e.g. {turns: 50, cost_usd: 1.5}".into());
        }
        Ok(())
    }
}

/// The name of an agent that was given none: `Tidy Falcon` for `tidy_falcon-227a4218`.
pub fn default_name(agent: &AgentId) -> String {
    let id = agent.as_str();
    let prefix = id.rsplit_once('-').map_or(id, |(prefix, _)| prefix);
    let words = prefix.split(['_', '.']).filter(|word| !word.is_empty());
    let words: Vec<String> = words
        .map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect()
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_and_its_script_are_enough() {
        let config =
            BackendConfig::parse("backend: handler\nhandler_path: ./handler.sh\n").unwrap();
        assert_eq!(config.server, DEFAULT_SERVER);
        assert_eq!(config.timeout(), Duration::from_secs(120));
        assert_eq!(config.handler_path.unwrap(), Path::new("./handler.sh"));
    }

    #[test]
    fn answer_in_is_a_word_or_a_list_of_rooms() {
        let read = |text: &str| BackendConfig::parse(text).unwrap().answer_in();
        let rooms =
            |ids: &[&str]| AnswerIn::Rooms(ids.iter().map(|id| id.parse().unwrap()).collect());
        assert_eq!(read("backend: codex"), AnswerIn::Joined);
        assert_eq!(read("backend: plain"), AnswerIn::All);
        assert_eq!(read("backend: codex\nanswer_in: all"), AnswerIn::All);
        let listed = read("backend: codex\nanswer_in: [rm_8f3kz2, rm_bugs]");
        assert_eq!(listed, rooms(&["rm_8f3kz2", "rm_bugs"]));
        assert_eq!(
            read("backend: codex\nanswer_in: rm_bugs"),
            rooms(&["rm_bugs"])
        );
        assert_eq!(read("backend: codex\nanswer_in: []"), rooms(&[]));
    }

    #[test]
    fn an_agent_has_a_name_from_birth() {
        for (id, name) in [
            ("tidy_falcon-227a4218", "Tidy Falcon"),
            ("my.coder_2x-227a4218", "My Coder 2x"),
            ("__otters__-227a4218", "Otters"),
        ] {
            assert_eq!(default_name(&id.parse().unwrap()), name);
        }
    }

    #[test]
    fn wake_and_budget_are_the_owners() {
        let read = |text: &str| BackendConfig::parse(text).unwrap().wake_policy();
        assert_eq!(read("backend: codex").wake, Wake::Threads);
        assert_eq!(
            read("backend: handler\nhandler_path: x").wake,
            Wake::Everything
        );
        let policy = read("backend: codex\nwake: mentions\nbudget: {turns: 5, cost_usd: 0.5}");
        assert_eq!(policy.wake, Wake::Mentions);
        assert_eq!(
            (policy.budget.turns, policy.budget.cost_usd),
            (Some(5), Some(0.5))
        );
    }

    #[test]
    fn unknown_keys_are_kept_apart() {
        let config = BackendConfig::parse("backend: plain\ncommand: cat\ntimout: 3\n").unwrap();
        assert_eq!(config.unknown.keys().collect::<Vec<_>>(), ["timout"]);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for (text, hint) in [
            ("backend: handler", "handler_path"),
            ("backend: custom", "command"),
            ("backend: hander", "backend"),
            ("handler_path: x", "backend"),
            ("backend: plain\ntimeout_seconds: 0", "timeout_seconds"),
            ("backend: plain\ncontext_messages: 9999", "context_messages"),
            ("backend: plain\nanswer_in: everywhere", "answer_in"),
            ("backend: plain\nanswer_in: [rm_8f3kz2, x]", "answer_in"),
            ("backend: plain\nenv: [A=b]", "env"),
            ("backend: plain\nname: ' '", "name"),
            ("backend: plain\nwake: sometimes", "wake"),
            ("backend: plain\nbudget: {turns: -1}", "budget"),
            ("backend: plain\nbudget: {cost_usd: .nan}", "budget"),
        ] {
            let why = BackendConfig::parse(text).unwrap_err();
            assert!(why.contains(hint), "{text}: {why}");
        }
    }

    #[test]
    fn hostile_yaml_ends_with_an_error() {
        let bomb = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b]\nbackend: plain";
        let deep = format!("backend: plain\nx: {}", "[".repeat(10_000));
        let large = format!("backend: plain\nx: {}", "y".repeat(MAX_FILE_BYTES));
        for text in [bomb, &deep, &large, "\0\u{fffd}", "backend: [plain"] {
            assert!(BackendConfig::parse(text).is_err());
        }
    }
}
