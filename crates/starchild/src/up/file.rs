//! `starchild.yaml`: rooms, people, agents, organisms, models, and where the server is.

use super::UpError;
use crate::backend::config::BackendConfig;
use protocol::Visibility;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::{Path, PathBuf},
};

const MAX_FILE_BYTES: usize = 256 * 1024;
const MAX_AGENTS: usize = 64;
const MAX_ROOMS: usize = 64;
const MAX_RULES_BYTES: usize = 16 * 1024;
/// Where the server listens that is started here.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);
/// The model of agents that name none.
const DEFAULT_MODEL: &str = "default";

/// A team.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeamFile {
    /// What the team is called.
    pub name: Option<String>,
    /// Where the rooms are.
    #[serde(default)]
    pub server: ServerFile,
    /// Who signs in; the first owns the rooms.
    #[serde(default)]
    pub people: Vec<String>,
    /// What agents think with, each as `provider:` of an agent.yaml.
    #[serde(default)]
    pub models: BTreeMap<String, Value>,
    /// The rooms, by name.
    #[serde(default)]
    pub rooms: BTreeMap<String, RoomEntry>,
    /// The agents, by name.
    #[serde(default)]
    pub agents: BTreeMap<String, Map<String, Value>>,
    /// The organisms, by name.
    #[serde(default)]
    pub organisms: BTreeMap<String, Map<String, Value>>,
}

/// Where the rooms are.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFile {
    /// A server that runs already.
    pub url: Option<String>,
    /// The variable that holds a user token of that server; its user owns the rooms.
    #[serde(default = "default_token_env")]
    pub token_env: String,
    /// Where the server listens that is started here.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Settings of that server by their path, e.g. `limits.agent_cooldown_seconds: 0`.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

impl Default for ServerFile {
    fn default() -> Self {
        Self {
            url: None,
            token_env: default_token_env(),
            listen: LISTEN,
            settings: BTreeMap::new(),
        }
    }
}

fn default_token_env() -> String {
    "STARCHILD_USER_TOKEN".into()
}

fn default_listen() -> SocketAddr {
    LISTEN
}

/// A room.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomEntry {
    /// The rules that hold in it.
    pub rules: Option<String>,
    /// Who may read it.
    pub visibility: Option<Visibility>,
}

/// An agent or an organism, as it is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name in the file.
    pub key: String,
    /// The name it goes by in rooms.
    pub display_name: String,
    /// Whose rooms it is in, by name.
    pub rooms: Vec<String>,
    /// Where its rooms call it; otherwise it follows them.
    pub host: Option<SocketAddr>,
    /// Its handler.yaml, without the server.
    pub settings: Map<String, Value>,
    /// Its agent.yaml, where that stands in the file.
    pub agent_file: Option<Value>,
    /// The files that it depends on.
    pub watched: Vec<PathBuf>,
}

impl TeamFile {
    /// Reads the file; the error names the line and what was meant.
    pub fn load(path: &Path) -> Result<Self, UpError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::NotFound => "; starchild init writes one",
                _ => "",
            };
            UpError::File(format!("cannot read {shown}: {error}{hint}"))
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder).map_err(|why| UpError::File(format!("{shown}: {why}")))
    }

    /// Reads a text.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        if text.len() > MAX_FILE_BYTES {
            return Err(format!("it has more than {MAX_FILE_BYTES} bytes"));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: 24, max_nodes: 10_000, max_events: 50_000,
                max_aliases: 50, max_anchors: 50, max_documents: 1,
            },
        };
        let file: Self = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| in_a_line(&error.to_string()))?;
        file.check(text)?;
        file.plans(text, folder)?;
        Ok(file)
    }

    fn check(&self, text: &str) -> Result<(), String> {
        if self.rooms.len() > MAX_ROOMS || self.agents.len() + self.organisms.len() > MAX_AGENTS {
            return Err(format!(
                "a team has at most {MAX_ROOMS} rooms and {MAX_AGENTS} agents and organisms"
            ));
        }
        if self.rooms.is_empty() {
            return Err("it names no room; say e.g. rooms: {lobby: {}}".into());
        }
        for (name, room) in &self.rooms {
            let at = line_of(text, &["rooms", name]);
            if name.is_empty() || name.chars().count() > 200 {
                return Err(format!("{at}a room's name has 1 to 200 characters"));
            }
            if room
                .rules
                .as_ref()
                .is_some_and(|rules| rules.len() > MAX_RULES_BYTES)
            {
                return Err(format!("{at}rules have at most {MAX_RULES_BYTES} bytes"));
            }
        }
        if self.people.is_empty() && self.server.url.is_none() {
            return Err(
                "it names nobody; say e.g. people: [Alice]. The first one owns the rooms".into(),
            );
        }
        let mut keys = BTreeSet::new();
        for key in self.agents.keys().chain(self.organisms.keys()) {
            if !keys.insert(key) {
                return Err(format!("{key} is an agent and an organism; rename one"));
            }
        }
        for (path, value) in &self.server.settings {
            let at = line_of(text, &["server", "settings", path]);
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
            if path.is_empty() || !path.chars().all(fits) || value.is_object() {
                return Err(format!(
                    "{at}{path:?} is no setting; write its path, e.g. limits.agent_cooldown_seconds: 0"
                ));
            }
        }
        Ok(())
    }

    /// The agents and organisms as they are to be.
    pub fn plans(&self, text: &str, folder: &Path) -> Result<Vec<Plan>, String> {
        let agents = self
            .agents
            .iter()
            .map(|(key, entry)| ("agents", key, entry));
        let organisms = self.organisms.iter();
        let organisms = organisms.map(|(key, entry)| ("organisms", key, entry));
        let plans = agents.chain(organisms);
        plans
            .map(|(section, key, entry)| self.plan(text, folder, section, key, entry))
            .collect()
    }

    fn plan(
        &self,
        text: &str,
        folder: &Path,
        section: &str,
        key: &str,
        entry: &Map<String, Value>,
    ) -> Result<Plan, String> {
        let wrong = |field: &str, why: String| {
            let at = line_of(text, &[section, key, field]);
            Err(format!("{at}{section}.{key}: {why}"))
        };
        let mut settings = entry.clone();
        let rooms: Vec<String> = match settings.remove("rooms") {
            None => self.rooms.keys().cloned().collect(),
            Some(rooms) => match serde_json::from_value(rooms) {
                Ok(rooms) => rooms,
                Err(_) => return wrong("rooms", "rooms is a list of names".into()),
            },
        };
        if let Some(room) = rooms.iter().find(|room| !self.rooms.contains_key(*room)) {
            let known: Vec<&str> = self.rooms.keys().map(String::as_str).collect();
            let meant = did_you_mean(room, &known);
            return wrong("rooms", format!("there is no room {room:?}{meant}"));
        }
        let display_name = match settings.remove("name") {
            None => title(key),
            Some(Value::String(name)) if (1..=64).contains(&name.chars().count()) => name,
            Some(_) => return wrong("name", "name has 1 to 64 characters".into()),
        };
        let host = match settings.remove("host").map(serde_json::from_value) {
            None => None,
            Some(Ok(host)) => Some(host),
            Some(Err(_)) => {
                let why = "host is where its rooms call it, e.g. 127.0.0.1:8100";
                return wrong("host", why.into());
            }
        };
        let mut watched = Vec::new();
        if section == "organisms" {
            let file = settings.remove("file").unwrap_or(json!("organism.yaml"));
            settings.insert("organism".into(), file);
            settings.insert("backend".into(), json!("organism"));
        }
        let mut agent_file = None;
        if let Some(Value::Object(_)) = settings.get("agent") {
            let mut agent = settings.remove("agent").unwrap_or_default();
            let model = match settings.remove("model") {
                None => DEFAULT_MODEL.to_owned(),
                Some(Value::String(model)) => model,
                Some(_) => return wrong("model", "model is the name of one of the models".into()),
            };
            let names_provider = agent.get("provider").or(agent.get("providers")).is_some();
            if !names_provider {
                let Some(provider) = self.models.get(&model) else {
                    let known: Vec<&str> = self.models.keys().map(String::as_str).collect();
                    let meant = did_you_mean(&model, &known);
                    return wrong(
                        "model",
                        format!("there is no model {model:?}{meant}; models: lists them"),
                    );
                };
                agent["provider"] = absolute_script(provider, folder, &mut watched);
            }
            match agent.get("workspace").and_then(Value::as_str) {
                Some(workspace) => agent["workspace"] = json!(folder.join(workspace)),
                // The team's own folder holds its keys.
                None => {
                    let tools = agent.as_object_mut();
                    let tools = tools.map(|agent| agent.entry("tools").or_insert(json!({})));
                    if let Some(Value::Object(tools)) = tools {
                        tools.entry("fs").or_insert(json!("off"));
                    }
                }
            }
            if let Some(Value::Object(servers)) = agent.pointer_mut("/tools/mcp") {
                for server in servers.values_mut() {
                    absolute_files(server, folder, &mut watched);
                }
            }
            agent_file = Some(agent);
            settings.insert("agent".into(), json!("agent.yaml"));
            settings.entry("backend").or_insert(json!("agent"));
        }
        for field in ["agent", "organism", "handler_path", "permissions"] {
            if agent_file.is_some() && field == "agent" {
                continue;
            }
            if let Some(Value::String(path)) = settings.get(field) {
                let path = folder.join(path);
                settings.insert(field.into(), json!(path));
                watched.push(path);
            }
        }
        if settings.contains_key("handler_path") {
            settings.entry("backend").or_insert(json!("handler"));
        } else if settings.contains_key("agent") {
            settings.entry("backend").or_insert(json!("agent"));
        }
        settings.entry("backend").or_insert(json!("plain"));
        if settings.contains_key("server") {
            return wrong(
                "server",
                "the server is the team's; say it under server:".into(),
            );
        }
        // An inline agent's file is checked when it is made.
        let config = match BackendConfig::parse(&Value::Object(settings.clone()).to_string()) {
            Ok(config) => config,
            Err(why) => return wrong("backend", why),
        };
        if let Some(unknown) = config.unknown.keys().next() {
            let meant = did_you_mean(unknown, &AGENT_KEYS);
            return wrong(unknown, format!("nobody knows the key {unknown}{meant}"));
        }
        Ok(Plan {
            key: key.to_owned(),
            display_name,
            rooms,
            host,
            settings,
            agent_file,
            watched,
        })
    }
}

/// What an agent's entry may say besides what handler.yaml may.
const AGENT_KEYS: [&str; 20] = [
    "rooms",
    "host",
    "name",
    "model",
    "agent",
    "organism",
    "file",
    "backend",
    "handler_path",
    "command",
    "args",
    "system_prompt",
    "timeout_seconds",
    "context_messages",
    "permissions",
    "answer_in",
    "env",
    "wake",
    "budget",
    "show_arguments",
];

/// A scripted model's file counts from the team's folder.
fn absolute_script(provider: &Value, folder: &Path, watched: &mut Vec<PathBuf>) -> Value {
    let text = provider.as_str().map(str::trim);
    let Some(file) = text.and_then(|text| text.strip_prefix("script")) else {
        return provider.clone();
    };
    let file = match file.trim() {
        "" => "script.yaml",
        file => file,
    };
    let path = folder.join(file);
    watched.push(path.clone());
    json!(format!("script {}", path.display()))
}

/// The files among a program's arguments count from the team's folder.
fn absolute_files(server: &mut Value, folder: &Path, watched: &mut Vec<PathBuf>) {
    let Some(Value::Array(args)) = server.get_mut("args") else {
        return;
    };
    for arg in args {
        let path = arg.as_str().map(|arg| folder.join(arg));
        if let Some(path) = path.filter(|path| path.is_file()) {
            *arg = json!(path);
            watched.push(path);
        }
    }
}

/// `tidy_falcon` is Tidy Falcon.
fn title(key: &str) -> String {
    let words = key
        .split(['_', '-', '.', ' '])
        .filter(|word| !word.is_empty());
    let words = words.map(|word| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect::<String>()
    });
    let title = words.collect::<Vec<_>>().join(" ");
    title.chars().take(64).collect()
}

/// What the parser says, in a line: with what was meant, and without the file's own words, which may
/// be secrets.
fn in_a_line(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let parts = line.split('"').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 1 { "\"…\"" } else { part });
    let line: String = parts.collect();
    let unknown = line.split('`').nth(1);
    let known = line.split("expected one of ").nth(1);
    match (line.contains("unknown field"), unknown, known) {
        (true, Some(unknown), Some(known)) => {
            let known: Vec<&str> = known
                .split(", ")
                .map(|word| word.trim_matches('`'))
                .collect();
            format!("{line}{}", did_you_mean(unknown, &known))
        }
        _ => line,
    }
}

/// The nearest of the words, if one is near.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(word, known), *known));
    let near = near.filter(|(distance, known)| *distance <= known.len().max(3) / 3);
    near.min().map(|(_, known)| known)
}

fn did_you_mean(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or(String::new(), |near| format!("; did you mean {near}?"))
}

/// `line 7: `, where the key of this path stands in the text; empty where it cannot be told.
fn line_of(text: &str, path: &[&str]) -> String {
    let mut wanted = path.iter();
    let mut next = wanted.next();
    let mut found = None;
    let mut least = 0;
    for (number, line) in text.lines().enumerate() {
        let Some(key) = next else { break };
        let indent = line.len() - line.trim_start().len();
        let is_text = !line.trim().is_empty() && !line.trim_start().starts_with('#');
        if is_text && found.is_some() && indent < least {
            break;
        }
        let rest = line.trim_start().trim_start_matches(['"', '\'']);
        let is_key = rest.strip_prefix(key).is_some_and(|rest| {
            rest.trim_start_matches(['"', '\''])
                .trim_start()
                .starts_with(':')
        });
        if is_text && indent >= least && is_key {
            found = Some(number + 1);
            least = indent + 1;
            next = wanted.next();
        }
    }
    found.map_or(String::new(), |line| format!("line {line}: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: &str = "people: [Alice]\nmodels: {default: script model.yaml}\nrooms:\n  support: {rules: Be kind.}\nagents:\n  billing:\n    agent: {system: You know prices.}\n  echo_bot:\n    handler_path: ./echo.sh\n    rooms: [support]\n";

    fn parse(text: &str) -> Result<TeamFile, String> {
        TeamFile::parse(text, Path::new("/team"))
    }

    #[test]
    fn a_team_is_read() {
        let team = parse(TEAM).unwrap();
        let plans = team.plans(TEAM, Path::new("/team")).unwrap();
        let [billing, echo] = &plans[..] else {
            panic!("{plans:?}")
        };
        assert_eq!(billing.display_name, "Billing");
        assert_eq!(billing.rooms, ["support"]);
        let agent = billing.agent_file.as_ref().unwrap();
        assert_eq!(agent["provider"], "script /team/model.yaml");
        assert_eq!(agent["tools"]["fs"], "off", "the folder holds keys");
        assert_eq!(echo.display_name, "Echo Bot");
        assert_eq!(echo.settings["handler_path"], "/team/./echo.sh");
        assert_eq!(echo.settings["backend"], "handler");
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_line_and_what_was_meant() {
        for (from, to, line, meant) in [
            ("people:", "poeple:", "line 1", "people"),
            ("rules:", "ruels:", "line 4", "rules"),
            ("handler_path:", "handler_pth:", "line 9", "handler_path"),
            ("rooms: [support]", "rooms: [suport]", "line 10", "support"),
            (
                "rooms: [support]",
                "host: 8100",
                "line 10",
                "127.0.0.1:8100",
            ),
            (
                "agent: {",
                "model: defalt\n    agent: {",
                "line 7",
                "default",
            ),
            ("people: [Alice]", "people: []", "", "people"),
        ] {
            let why = parse(&TEAM.replacen(from, to, 1)).unwrap_err();
            assert!(why.contains(line) && why.contains(meant), "{to}: {why}");
        }
    }

    #[test]
    fn an_error_repeats_nothing_of_the_file() {
        for text in [
            "people: {key: \"sk-secret\"}",
            "rooms: sk-secret",
            "people: [A]\nserver: {listen: sk-secret}\nrooms: {a: {}}",
            "key sk-secret",
            "rooms: {a: {rules: [sk-secret]}}",
        ] {
            let why = parse(text).unwrap_err();
            assert!(!why.contains("sk-secret"), "{why}");
            assert_eq!(why.lines().count(), 1, "{why}");
        }
    }

    #[test]
    fn hostile_files_end_with_an_error() {
        let deep = format!("people: {}", "[".repeat(10_000));
        let large = format!("name: {}", "y".repeat(MAX_FILE_BYTES));
        let bomb = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]";
        for text in ["", "\0", "[]", "rooms: 3", bomb, &deep, &large] {
            assert!(parse(text).is_err());
        }
    }
}
