//! `starchild init`: looks at what is on this machine, asks three questions, and writes a
//! `starchild.yaml` that works.

use crate::cli::{failure::Failure, show};
use clap::Args;
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
    answers: Option<Answers>,
    /// Take what is found, and ask nothing.
    #[arg(long, short)]
    yes: bool,
}

/// What answers in the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Anthropic,
    OpenAi,
    Gemini,
    Ollama,
    Codex,
    Claude,
    Acp,
    Script,
}

impl Answers {
    const ALL: [Self; 8] = [
        Self::Anthropic,
        Self::OpenAi,
        Self::Gemini,
        Self::Ollama,
        Self::Codex,
        Self::Claude,
        Self::Acp,
        Self::Script,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Acp => "acp",
            Self::Script => "script",
        }
    }

    /// Why it can be offered, where it is here.
    fn found(self) -> Option<String> {
        let variable = |name: &str| {
            let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
            is_set.then(|| format!("{name} is set"))
        };
        let program = |name: &str| {
            let path = std::env::var_os("PATH")?;
            let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
            let place = places.find(|place| place.is_file())?;
            Some(place.display().to_string())
        };
        match self {
            Self::Anthropic => variable("ANTHROPIC_API_KEY"),
            Self::OpenAi => variable("OPENAI_API_KEY"),
            Self::Gemini => variable("GEMINI_API_KEY"),
            Self::Ollama => {
                let connected = TcpStream::connect_timeout(&OLLAMA, Duration::from_millis(200));
                connected
                    .ok()
                    .map(|_| format!("a model server answers at {OLLAMA}"))
            }
            Self::Codex => program("codex"),
            Self::Claude => program("claude"),
            Self::Acp => program("codex-acp")
                .or_else(|| program("gemini"))
                .or_else(|| program("opencode")),
            Self::Script => Some("a scripted model, without a network".into()),
        }
    }

    /// The agent's part of the file, and what else the file needs.
    fn agent(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => (
                "models:\n  default: {kind: anthropic, model: claude-sonnet-4-5}\n",
                INLINE,
            ),
            Self::OpenAi => (
                "models:\n  default: {kind: openai, model: gpt-5-mini}\n",
                INLINE,
            ),
            Self::Gemini => (
                "models:\n  default: {kind: gemini, model: gemini-2.5-flash}\n",
                INLINE,
            ),
            Self::Ollama => (
                "models:\n  default: {kind: ollama, model: llama3.2}\n",
                INLINE,
            ),
            Self::Script => (
                "models:\n  default: script model.yaml   # for a real one: {kind: anthropic, model: …}\n",
                INLINE,
            ),
            Self::Codex => ("", "    backend: codex\n"),
            Self::Claude => ("", "    backend: claude\n"),
            Self::Acp => (
                "",
                "    backend: acp\n    command: codex-acp   # any agent that speaks the Agent Client Protocol\n",
            ),
        }
    }
}

const INLINE: &str = "    agent:\n      system: You help the people in this room. Be brief.\n";
const SCRIPT: &str = "# What the scripted model says: the first rule that fits. docs/agents.md tells of all keys.\nrules:\n  - when: hello|hi\\b\n    say: Hello! I follow a script, so I know little. Edit model.yaml, or give me a real model in starchild.yaml.\n  - say: My script has no answer to that. Edit model.yaml, or give me a real model in starchild.yaml.\n";

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Answers {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|one| one.word() == word);
        known.ok_or_else(|| format!("want one of {}", Self::ALL.map(Self::word).join(", ")))
    }
}

/// Writes the file.
pub fn init(args: InitArgs) -> Result<(), Failure> {
    let path = args.folder.join(FILE);
    if path.exists() {
        return Err(
            Failure::permanent(format!("{} is there already", path.display()))
                .with_hint("Edit it, or take the team up: starchild up"),
        );
    }
    let found: Vec<(Answers, String)> = Answers::ALL
        .into_iter()
        .filter_map(|one| Some((one, one.found()?)))
        .collect();
    for (one, why) in &found {
        show::note(&format!("found {one}: {why}"));
    }
    let asks = !args.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
    let usual = found.first().map_or(Answers::Script, |(one, _)| *one);
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
    let answers = answer(
        args.answers,
        asks,
        "What shall answer there?",
        usual.word(),
        |text| text.parse(),
    )?;
    let (models, agent) = answers.agent();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
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
    if answers == Answers::Script && !args.folder.join("model.yaml").exists() {
        write_new(&args.folder.join("model.yaml"), SCRIPT)?;
    }
    show::print(&format!("{}\n", path.display()))?;
    show::note(&format!(
        "Next: starchild up {}, and in the room: @Helper hello",
        args.folder.display()
    ));
    Ok(())
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
        eprint!("{question} [{usual}] ");
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
