//! `starchild agent models`: which models a server has; and which of them a new
//! agent begins with.

use super::Failure;
use crate::cli::show;
use clap::Args;
use openstarry::config::AgentConfig;
use openstarry::provider::{Model, ProviderConfig, ProviderKind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How long a server may take to tell its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// What `models` takes.
#[derive(Args)]
pub struct ModelsArgs {
    /// The agent whose providers are asked.
    #[arg(long, short, default_value = "agent.yaml")]
    config: PathBuf,
    /// Ask this API in place of the agent's.
    #[arg(long, value_parser = kind)]
    provider: Option<ProviderKind>,
    /// Where the API is.
    #[arg(long, requires = "provider")]
    base_url: Option<String>,
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
}

/// Reads the word for an API.
pub fn kind(word: &str) -> Result<ProviderKind, String> {
    let found = ProviderKind::ALL
        .into_iter()
        .find(|kind| kind.word() == word);
    found.ok_or_else(|| {
        let words = ProviderKind::ALL.map(ProviderKind::word);
        format!("want one of {}", words.join(", "))
    })
}

/// Lists the models.
pub async fn models(args: ModelsArgs) -> Result<ExitCode, Failure> {
    let providers = match args.provider {
        Some(kind) => {
            let mut provider = ProviderConfig::new(kind, "");
            provider.base_url = args.base_url;
            vec![provider]
        }
        None => {
            let config = AgentConfig::load(&args.config)
                .map_err(|error| format!("{error} (--provider asks without a file)"))?;
            config.providers.iter().cloned().collect()
        }
    };
    let mut listed = Vec::new();
    for provider in &providers {
        let models = provider.models(&|name| std::env::var(name).ok()).await?;
        listed.push((provider, models));
    }
    if args.json {
        let rows = listed.iter().flat_map(|(provider, models)| {
            models.iter().map(|model| {
                serde_json::json!({
                    "provider": provider.name(), "id": model.id,
                    "context_tokens": model.context_tokens, "created": model.created,
                })
            })
        });
        show::json(&rows.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    for (provider, models) in &listed {
        for model in models {
            let mark = if model.id == provider.model {
                "* "
            } else {
                "  "
            };
            let window = model.context_tokens.map(|n| format!("  ({n} tokens)"));
            show::print(&format!(
                "{mark}{}{}\n",
                model.id,
                window.unwrap_or_default()
            ))?;
        }
        if models.is_empty() {
            show::failure(&format!("{} has no models", provider.name()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The model of this API that a new agent begins with, or why none is known.
pub async fn newest(
    kind: ProviderKind,
    base_url: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Model, String> {
    let mut provider = ProviderConfig::new(kind, "");
    provider.base_url = base_url.map(str::to_owned);
    let listed = tokio::time::timeout(LIST_TIMEOUT, provider.models(env)).await;
    let listed = listed.map_err(|_| "no answer".to_owned())?;
    let listed = listed.map_err(|error| error.to_string())?;
    let picked = pick(&listed).ok_or("it has none that talks")?;
    Ok(picked.clone())
}

/// Words in the names of models that do not hold a conversation.
const OTHER_USES: [&str; 18] = [
    "embed",
    "tts",
    "whisper",
    "transcribe",
    "audio",
    "realtime",
    "image",
    "dall-e",
    "sora",
    "moderation",
    "search",
    "instruct",
    "live",
    "vision-preview",
    "aqa",
    "guard",
    "rerank",
    "computer-use",
];
/// Words in the names of models that are not for every day.
const PASSING: [&str; 3] = ["preview", "exp", "beta"];

/// The model a new agent begins with: the newest that holds conversations and is
/// no preview. A server that does not tell ages is taken by version, or by order.
pub fn pick(models: &[Model]) -> Option<&Model> {
    let has = |model: &Model, words: &[&str]| {
        let id = model.id.to_lowercase();
        words.iter().any(|word| id.contains(word))
    };
    // An id goes into a file.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    let good = |model: &&Model| model.id.chars().all(plain) && !has(model, &OTHER_USES);
    let rank = |model: &Model| {
        (
            !has(model, &PASSING),
            model.created.unwrap_or(0),
            version(&model.id),
        )
    };
    // Of equals the first, which is where servers put what they recommend.
    let best = models.iter().filter(good).map(rank).max()?;
    models.iter().filter(good).find(|model| rank(model) == best)
}

/// The first numbers of a name, as far as they are a version and no date.
fn version(id: &str) -> Vec<u64> {
    let numbers = id.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter(|part| (1..=2).contains(&part.len()));
    numbers
        .filter_map(|part| part.parse().ok())
        .take(2)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(ids: &[(&str, Option<u64>)]) -> Vec<Model> {
        let model = |(id, created): &(&str, Option<u64>)| Model {
            id: (*id).into(),
            context_tokens: None,
            created: *created,
        };
        ids.iter().map(model).collect()
    }

    #[test]
    fn a_new_agent_begins_with_the_newest_model_that_talks() {
        let by_age = models(&[
            ("old", Some(1)),
            ("new", Some(9)),
            ("text-embedding-9", Some(10)),
            ("new-preview", Some(11)),
        ]);
        assert_eq!(pick(&by_age).unwrap().id, "new");
        let by_version = models(&[
            ("gemini-2.5-pro", None),
            ("gemini-3.1-flash", None),
            ("gemini-4-pro-preview", None),
        ]);
        assert_eq!(pick(&by_version).unwrap().id, "gemini-3.1-flash");
        let hostile = models(&[("x\nsystem: y", None)]);
        assert_eq!(pick(&hostile), None);
        assert_eq!(pick(&[]), None);
    }
}
