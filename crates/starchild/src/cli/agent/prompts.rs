//! `/prompt`: prompts that MCP servers offer to people.

use openstarry::segment::ContentSegment;
use openstarry::tool::mcp::McpServer;
use serde_json::{Map, Value};

/// What came of the command.
pub enum Prompt {
    /// What there is.
    List(String),
    /// What to say to the model.
    Said(Vec<ContentSegment>),
}

/// Lists the prompts, or gets the one that is named: `server/name key=value …`.
pub async fn run(servers: &[McpServer], words: &str) -> Result<Prompt, String> {
    if words.is_empty() {
        return Ok(Prompt::List(list(servers).await));
    }
    let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let (server, prompt) = name
        .split_once('/')
        .ok_or("want /prompt server/name, and its arguments as key=value")?;
    let server = servers.iter().find(|known| known.name() == server);
    let server = server.ok_or_else(|| format!("there is no MCP server named {name}"))?;
    let words = shell_words::split(rest).map_err(|error| error.to_string())?;
    let pair = |word: &String| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_owned(), Value::from(value)))
    };
    let arguments = words.iter().map(pair).collect::<Option<Map<_, _>>>();
    let arguments =
        arguments.ok_or("want the arguments as key=value, with quotes around blanks")?;
    let said = server.prompt(prompt, arguments).await;
    Ok(Prompt::Said(said.map_err(|error| error.to_string())?))
}

async fn list(servers: &[McpServer]) -> String {
    let mut rows = Vec::new();
    for server in servers {
        match server.prompts().await {
            Err(error) => rows.push(format!("! {error}")),
            Ok(prompts) => rows.extend(prompts.into_iter().map(|prompt| {
                let argument = |(name, required): &(String, bool)| match required {
                    true => format!(" {name}="),
                    false => format!(" [{name}=]"),
                };
                let arguments: String = prompt.arguments.iter().map(argument).collect();
                let (name, about) = (prompt.name, prompt.about);
                format!("/prompt {}/{name}{arguments}  {about}", server.name())
            })),
        }
    }
    match rows.is_empty() {
        true => "No MCP server offers a prompt.".into(),
        false => rows.join("\n"),
    }
}
