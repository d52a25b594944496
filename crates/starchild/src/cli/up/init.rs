//! `starchild init`: looks at what is on this machine, asks three questions, and writes a
//! `starchild.yaml` that works.

use crate::cli::{agent::models, failure::Failure, show};
use clap::Args;
use openstarry::provider::ProviderKind;
use std::{
    fmt,
    io::{self, IsTerminal, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

const FILE: &str = "starchild.yaml";
const OLLAMA: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 11434);

/// What `init` takes.
#[derive(Args)]
pub struct InitArgs {
    /// Where to write starchild.yaml.
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Your name; you own the rooms.
    #[arg(long)]
    person: Option<String>,
    /// The room's name.
    #[arg(long)]
    room: Option<String>,
    /// What answers: anthropic, openai, gemini, ollama, codex, claude, acp or script.
    #[arg(long)]
    answers: Option<BackendChoice>,
    /// The model, where a model answers; otherwise the newest that its server has.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Where the model's server is.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Take what is found, and ask nothing.
    #[arg(long, short)]
    yes: bool,
}

/// What answers in the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackendChoice {
    Model(ProviderKind),
    Codex,
    Claude,
    Acp,
    Script,
}

/// Coding agents that speak the Agent Client Protocol: their programs, and how they are told to.
const ACP_AGENTS: [(&str, &str); 3] = [
    ("codex-acp", "codex-acp"),
    ("gemini", "gemini --experimental-acp"),
    ("opencode", "opencode acp"),
];

impl BackendChoice {
    const ALL: [Self; 8] = [
        Self::Model(ProviderKind::Anthropic),
        Self::Model(ProviderKind::OpenAi),
        Self::Model(ProviderKind::Gemini),
        Self::Model(ProviderKind::Ollama),
        Self::Codex,
        Self::Claude,
        Self::Acp,
        Self::Script,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Model(kind) => kind.word(),
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Acp => "acp",
            Self::Script => "script",
        }
    }

    /// Why it can be offered, where it is here.
    fn found(self) -> Option<String> {
        match self {
            Self::Model(ProviderKind::Ollama) => {
                let connected = TcpStream::connect_timeout(&OLLAMA, Duration::from_millis(200));
                connected
                    .ok()
                    .map(|_| format!("a model server answers at {OLLAMA}"))
            }
            Self::Model(kind) => {
                let name = kind.default_key_env()?;
                let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
                is_set.then(|| format!("{name} is set"))
            }
            Self::Codex => program("codex"),
            Self::Claude => program("claude"),
            Self::Acp => acp_agent().map(|(found, _)| found),
            Self::Script => Some("a scripted model, without a network".into()),
        }
    }
}

/// Where a program of this name is, on PATH.
fn program(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    let place = places.find(|place| place.is_file())?;
    Some(place.display().to_string())
}

/// The first ACP agent that is here, and how it is started.
fn acp_agent() -> Option<(String, &'static str)> {
    let mut known = ACP_AGENTS.into_iter();
    known.find_map(|(name, command)| Some((program(name)?, command)))
}

const SCRIPTED: &str =
    "models:\n  default: script model.yaml   # for a real one: {kind: anthropic, model: …}\n";
const INLINE: &str = "    agent:\n      system: You help the people in this room. Be brief.\n";
const SCRIPT: &str = "# What the scripted model says: the first rule that fits. docs/agents.md tells of all keys.\nrules:\n  - when: hello|hi\\b\n    say: Hello! I follow a script, so I know little. Edit model.yaml, or give me a real model in starchild.yaml.\n  - say: My script has no answer to that. Edit model.yaml, or give me a real model in starchild.yaml.\n";

impl fmt::Display for BackendChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for BackendChoice {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|one| one.word() == word);
        known.ok_or_else(|| format!("want one of {}", Self::ALL.map(Self::word).join(", ")))
    }
}

/// Writes the file.
pub async fn init(args: InitArgs) -> Result<(), Failure> {
    let path = args.folder.join(FILE);
    if path.exists() {
        return Err(
            Failure::permanent(format!("{} is there already", path.display()))
                .with_hint("Edit it, or take the team up: starchild up"),
        );
    }
    let found: Vec<(BackendChoice, String)> = BackendChoice::ALL
        .into_iter()
        .filter_map(|one| Some((one, one.found()?)))
        .collect();
    for (one, why) in &found {
        show::note(&format!("found {one}: {why}"));
    }
    let asks = !args.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
    let usual = found.first().map_or(BackendChoice::Script, |(one, _)| *one);
    let me = std::env::var("USER").unwrap_or_default();
    let me = title(&me);
    let person = answer(args.person, asks, "What is your name?", &me, plain)?;
    let room = answer(
        args.room,
        asks,
        "What shall the room be called?",
        "lobby",
        plain,
    )?;
    let all = BackendChoice::ALL.map(BackendChoice::word).join(", ");
    let answers = answer(
        args.answers,
        asks,
        &format!("What shall answer there? One of {all}."),
        usual.word(),
        |text| text.parse(),
    )?;
    let (models, agent) = match answers {
        BackendChoice::Model(kind) => {
            let model = match args.model {
                Some(model) => model,
                None => choose_model(kind, args.base_url.as_deref(), asks).await?,
            };
            let base = args
                .base_url
                .map(|url| format!(", base_url: {}", quoted(&url)));
            let (kind, model) = (kind.word(), quoted(&model));
            let base = base.unwrap_or_default();
            let models = format!("models:\n  default: {{kind: {kind}, model: {model}{base}}}\n");
            (models, INLINE.to_owned())
        }
        BackendChoice::Script => (SCRIPTED.to_owned(), INLINE.to_owned()),
        BackendChoice::Codex => (String::new(), "    backend: codex\n".into()),
        BackendChoice::Claude => (String::new(), "    backend: claude\n".into()),
        BackendChoice::Acp => {
            let command = acp_agent().map_or("codex-acp", |(_, command)| command);
            let agent = format!(
                "    backend: acp\n    command: {command}   # any agent that speaks the Agent Client Protocol\n"
            );
            (String::new(), agent)
        }
    };
    let (person, room) = (quoted(&person), quoted(&room));
    let text = format!(
        "# A team of people and agents; docs/up.md tells of every key.\n\
         people: [{person}]   # the first one owns the rooms\n\
         {models}\
         rooms:\n  {room}:\n    rules: Be kind and brief.\n\
         agents:\n  helper:\n{agent}"
    );
    crate::up::file::TeamFile::parse(&text, &args.folder).map_err(Failure::permanent)?;
    std::fs::create_dir_all(&args.folder)?;
    write_new(&path, &text)?;
    if answers == BackendChoice::Script && !args.folder.join("model.yaml").exists() {
        write_new(&args.folder.join("model.yaml"), SCRIPT)?;
    }
    show::print(&format!("{}\n", path.display()))?;
    let folder = match args.folder.to_str() {
        Some(".") => String::new(),
        _ => format!(" {}", args.folder.display()),
    };
    show::note(&format!(
        "Next: starchild up{folder}, and in the room: @Helper hello"
    ));
    Ok(())
}

/// The newest model that the server has; where it does not tell, the one that is named.
async fn choose_model(
    kind: ProviderKind,
    base_url: Option<&str>,
    asks: bool,
) -> Result<String, Failure> {
    let env = |name: &str| std::env::var(name).ok();
    let why = match models::newest(kind, base_url, &env).await {
        Ok(model) => {
            let id = &model.id;
            show::note(&format!(
                "the model is {id}, the newest of {kind} that talks; starchild agent models --provider {kind} lists all",
                kind = kind.word(),
            ));
            return Ok(model.id);
        }
        Err(why) => why,
    };
    let untold = format!("{} did not tell its models ({why})", kind.word());
    if !asks {
        return Err(Failure::permanent(untold).with_hint("Name one: --model NAME"));
    }
    show::note(&untold);
    answer(None, asks, "Which model?", "", plain)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// What was said with a flag, or is answered now, or is usual.
fn answer<T>(
    given: Option<T>,
    asks: bool,
    question: &str,
    usual: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Failure> {
    if let Some(given) = given {
        return Ok(given);
    }
    let mut lines = asks.then(|| io::stdin().lines());
    while let Some(lines) = &mut lines {
        match usual {
            "" => eprint!("{question} "),
            usual => eprint!("{question} [{usual}] "),
        }
        io::stderr().flush()?;
        let Some(line) = lines.next().transpose()? else {
            break;
        };
        let line = line.trim();
        match read(if line.is_empty() { usual } else { line }) {
            Ok(answer) => return Ok(answer),
            Err(why) => show::note(&why),
        }
    }
    read(usual).map_err(Failure::permanent)
}

fn plain(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.chars().count() <= 64 && !text.contains(char::is_control);
    match fits {
        true => Ok(text.to_owned()),
        false => Err("want 1 to 64 characters".into()),
    }
}

fn title(name: &str) -> String {
    let mut letters = name.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => "Me".into(),
    }
}
