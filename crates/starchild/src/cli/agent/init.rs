//! `starchild agent init`: an agent.yaml with every key explained. It asks you
//! for nothing: keys in the environment tell which API, and the API itself tells
//! which models it has.

use super::{Failure, models};
use crate::cli::show;
use clap::Args;
use openstarry::provider::ProviderKind;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

const TEMPLATE: &str = include_str!("agent.yaml");
/// Stands where the name of a model belongs.
const NO_MODEL: &str = "NAME_OF_A_MODEL";

/// What `init` takes.
#[derive(Args)]
pub struct InitArgs {
    /// Where to write it.
    #[arg(default_value = "agent.yaml")]
    path: PathBuf,
    /// Which API: openai, responses, anthropic, gemini or ollama.
    #[arg(long, value_parser = models::kind)]
    provider: Option<ProviderKind>,
    /// Which model.
    #[arg(long)]
    model: Option<String>,
    /// Where the API is.
    #[arg(long)]
    base_url: Option<String>,
    /// Replace a file that is there.
    #[arg(long)]
    force: bool,
}

/// Writes the file, and says what it found out.
pub async fn init(args: InitArgs) -> Result<ExitCode, Failure> {
    let found = find(&args, &|name| std::env::var(name).ok()).await;
    let text = fill(&found, args.base_url.as_deref());
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(!args.force)
        .create(true)
        .truncate(args.force);
    let mut file = options.open(&args.path).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AlreadyExists => " (--force replaces it)",
            _ => "",
        };
        format!("{}: {error}{hint}", args.path.display())
    })?;
    file.write_all(text.as_bytes())?;
    let (path, kind) = (args.path.display(), found.kind.word());
    // The model and the reason may be a server's words.
    show::print(&format!(
        "wrote {path}: {kind} with {}\n{}\n",
        found.model, found.because
    ))?;
    let config = match args.path.to_str() {
        Some("agent.yaml") => String::new(),
        _ => format!(" --config {}", args.path.display()),
    };
    println!("next: starchild agent run{config}");
    Ok(ExitCode::SUCCESS)
}

/// What was found out.
#[derive(Debug)]
struct Found {
    kind: ProviderKind,
    model: String,
    /// Where the server tells.
    context_tokens: Option<u64>,
    because: String,
}

async fn find(args: &InitArgs, env: &dyn Fn(&str) -> Option<String>) -> Found {
    let has_key = |kind: &ProviderKind| {
        let variable = kind.default_key_env();
        variable.is_some_and(|name| env(name).is_some_and(|key| !key.trim().is_empty()))
    };
    let keyed = [
        ProviderKind::Anthropic,
        ProviderKind::OpenAi,
        ProviderKind::Gemini,
    ];
    let (kind, because) = match args.provider {
        Some(kind) => (kind, "the provider is the one you named".to_owned()),
        None => match keyed.into_iter().find(has_key) {
            Some(kind) => {
                let variable = kind.default_key_env().unwrap_or_default();
                (kind, format!("{variable} is set"))
            }
            None => (
                ProviderKind::Ollama,
                "no key is set, so a local Ollama is used".into(),
            ),
        },
    };
    let (model, context_tokens, because) = match &args.model {
        Some(model) => (model.clone(), None, because),
        None => match models::newest(kind, args.base_url.as_deref(), env).await {
            Ok(model) => (
                model.id,
                model.context_tokens,
                format!("{because}; the model is its newest that talks"),
            ),
            Err(why) => {
                let because = format!(
                    "{because}; it did not tell its models ({why}): put the name of one in place of {NO_MODEL}"
                );
                (NO_MODEL.into(), None, because)
            }
        },
    };
    Found {
        kind,
        model,
        context_tokens,
        because,
    }
}

fn fill(found: &Found, base_url: Option<&str>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let base = match base_url {
        Some(url) => format!("base_url: {}", quoted(url)),
        None => format!("# base_url: {}", found.kind.default_base_url()),
    };
    let key = match found.kind.default_key_env() {
        Some(name) => format!("# key_env: {name}"),
        None => "# key_env: NAME_OF_A_VARIABLE".into(),
    };
    let context = match found.context_tokens {
        Some(tokens) => format!("context_tokens: {tokens}"),
        None => "# context_tokens: 100000".into(),
    };
    TEMPLATE
        .replace("{kind}", found.kind.word())
        .replace("{model}", &quoted(&found.model))
        .replace("{base_url}", &base)
        .replace("{key_env}", &key)
        .replace("{context_tokens}", &context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openstarry::config::AgentConfig;

    fn args() -> InitArgs {
        InitArgs {
            path: "agent.yaml".into(),
            provider: None,
            model: None,
            base_url: Some("http://127.0.0.1:1".into()),
            force: false,
        }
    }

    #[tokio::test]
    async fn the_environment_tells_which_model() {
        let found = find(&args(), &|name| {
            (name == "GEMINI_API_KEY").then(|| "k".into())
        })
        .await;
        assert_eq!(found.kind, ProviderKind::Gemini);
        let found = find(&args(), &|_| None).await;
        assert_eq!(found.kind, ProviderKind::Ollama);
        assert_eq!(found.model, NO_MODEL);
        assert!(
            found.because.contains("connection failed"),
            "{}",
            found.because
        );
    }

    #[test]
    fn what_is_written_is_an_agent_and_so_it_is_with_every_comment_taken_up() {
        for kind in ProviderKind::ALL {
            let found = Found {
                kind,
                model: "m".into(),
                context_tokens: Some(9000),
                because: String::new(),
            };
            let text = fill(&found, None);
            let config = AgentConfig::parse(&text).unwrap();
            assert_eq!(config.providers.iter().next().unwrap().kind, kind);
            assert!(config.tools.shell.is_none());
            let all: Vec<String> = text.lines().map(take_up).collect();
            let config = AgentConfig::parse(&all.join("\n")).unwrap_or_else(|error| {
                panic!("{error}\n{}", all.join("\n"));
            });
            assert!(config.tools.shell.is_some() && config.tools.retrieval.embeddings.is_some());
            assert!(config.limits.price.is_some() && !config.tools.mcp.is_empty());
        }
    }

    /// `  # key: value` becomes `  key: value`; sentences stay comments.
    fn take_up(line: &str) -> String {
        let Some((indent, rest)) = line.split_once("# ") else {
            return line.into();
        };
        let word = rest.split(':').next().unwrap_or_default();
        let is_key = rest.contains(':') && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        match indent.trim().is_empty() && is_key {
            true => format!("{indent}{rest}"),
            false => line.into(),
        }
    }
}
