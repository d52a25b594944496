//! What coding agents may do while strangers write their prompts: nothing but answer, unless their
//! owner chooses otherwise. And which keys each of them needs.

use std::path::PathBuf;

/// The variables with which each coding agent finds its model, by a word of its command.
const KEYS: [(&str, &[&str]); 4] = [
    (
        "codex",
        &[
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "CODEX_API_KEY",
            "CODEX_HOME",
        ],
    ),
    (
        "claude",
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
        ],
    ),
    (
        "gemini",
        &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "GEMINI_MODEL",
        ],
    ),
    ("opencode", &["OPENCODE_API_KEY", "OPENCODE_CONFIG"]),
];

/// The variables of the agent that these words start.
pub fn keys<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<&'static str> {
    let names: Vec<String> = words
        .into_iter()
        .map(|word| word.rsplit('/').next().unwrap_or(word).to_lowercase())
        .collect();
    let started = |agent: &str| names.iter().any(|name| name.contains(agent));
    KEYS.iter()
        .filter(|(agent, _)| started(agent))
        .flat_map(|(_, keys)| keys.iter().copied())
        .collect()
}

/// `codex` by itself reads every file of its owner's in its read-only sandbox, and runs the tools
/// of the owner's MCP servers. So it gets no tools.
const CODEX: [&str; 9] = [
    "features.shell_tool=false",
    "features.unified_exec=false",
    "features.view_image=false",
    "features.multi_agent=false",
    "features.goals=false",
    "features.apps=false",
    "features.plugins=false",
    "features.hooks=false",
    "web_search=\"disabled\"",
];
/// With any of these, the owner has chosen.
const CODEX_CHOICES: [&str; 8] = [
    "--sandbox",
    "-s",
    "--profile",
    "-p",
    "--full-auto",
    "--approve-for-me",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
];

/// The arguments that keep `codex` to answering; none where the owner's say what it may do.
pub fn codex_limits(owners: &[String]) -> Vec<String> {
    if has_chosen(owners, &CODEX_CHOICES) {
        return Vec::new();
    }
    let servers = codex_mcp_servers().into_iter();
    let servers = servers.map(|name| format!("mcp_servers.{name}.enabled=false"));
    let settings = CODEX.into_iter().map(str::to_owned).chain(servers);
    ["--sandbox", "read-only"]
        .map(str::to_owned)
        .into_iter()
        .chain(settings.flat_map(|setting| ["-c".to_owned(), setting]))
        .collect()
}

/// The MCP servers that the owner has set `codex` up with. They can only be switched off by name.
fn codex_mcp_servers() -> Vec<String> {
    let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".codex")));
    let text = home.and_then(|home| std::fs::read_to_string(home.join("config.toml")).ok());
    mcp_servers(&text.unwrap_or_default())
}

fn mcp_servers(config: &str) -> Vec<String> {
    let config = config.parse::<toml::Table>().unwrap_or_default();
    let servers = config.get("mcp_servers").and_then(toml::Value::as_table);
    servers
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

/// `claude` without its tools, and without the owner's MCP servers.
const CLAUDE: [&str; 3] = ["--tools", "", "--strict-mcp-config"];
/// With any of these, the owner has chosen.
const CLAUDE_CHOICES: [&str; 5] = [
    "--tools",
    "--allowedTools",
    "--allowed-tools",
    "--permission-mode",
    "--dangerously-skip-permissions",
];

/// The arguments that keep `claude` to answering; none where the owner's say what it may do.
pub fn claude_limits(owners: &[String]) -> Vec<String> {
    match has_chosen(owners, &CLAUDE_CHOICES) {
        true => Vec::new(),
        false => CLAUDE.map(str::to_owned).to_vec(),
    }
}

fn has_chosen(owners: &[String], choices: &[&str]) -> bool {
    owners.iter().any(|argument| {
        let flag = argument
            .split_once('=')
            .map_or(argument.as_str(), |(flag, _)| flag);
        choices.contains(&flag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_owners_choice_stands_alone() {
        for chosen in [
            "--sandbox workspace-write",
            "-s read-only",
            "--sandbox=x --foo",
        ] {
            assert!(codex_limits(&words(chosen)).is_empty(), "{chosen}");
        }
        let strict = codex_limits(&words("--color never"));
        assert_eq!(strict[..2], ["--sandbox", "read-only"]);
        assert!(strict.contains(&"features.shell_tool=false".to_owned()));
        assert!(claude_limits(&words("--permission-mode plan")).is_empty());
        assert_eq!(claude_limits(&[]), CLAUDE);
    }

    #[test]
    fn mcp_servers_are_found_by_name() {
        let config =
            "model = \"m\"\n[mcp_servers.mail]\ncommand = \"x\"\n[mcp_servers.git]\nurl = \"y\"\n";
        assert_eq!(mcp_servers(config), ["git", "mail"]);
        assert!(mcp_servers("not = [toml").is_empty());
    }

    #[test]
    fn an_agent_gets_its_own_keys_and_no_others() {
        assert!(keys(["npx", "@zed-industries/codex-acp"]).contains(&"OPENAI_API_KEY"));
        assert_eq!(
            keys(["/opt/Gemini", "--experimental-acp"]),
            [
                "GEMINI_API_KEY",
                "GOOGLE_API_KEY",
                "GOOGLE_GEMINI_BASE_URL",
                "GEMINI_MODEL"
            ]
        );
        assert!(keys(["my-agent"]).is_empty());
    }
}
