//! What `organism.yaml` says under `models`.

use openstarry::pain::AgentPain;
use openstarry::provider::{Provider, ProviderConfig, ProviderKind, Script};
use openstarry::segment::Usage;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The providers, and how to choose among them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelsFile {
    #[serde(default)]
    pub(super) strategy: Strategy,
    pub(super) backends: Vec<ProviderFile>,
}

/// Which provider is asked first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Strategy {
    /// The one of the lowest priority number.
    #[default]
    Failover,
    /// Each in its turn.
    RoundRobin,
    /// The one with the fewest questions open.
    LeastLoaded,
}

/// One provider.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderFile {
    #[serde(default = "openai")]
    kind: ProviderKind,
    #[serde(default)]
    base_url: Option<String>,
    #[serde(default)]
    model: Option<String>,
    /// The file of a model that follows a script, in place of all of the above.
    #[serde(default)]
    script: Option<PathBuf>,
    /// The environment variable that holds the key.
    #[serde(default)]
    key_env: Option<String>,
    #[serde(default)]
    pub(super) priority: i32,
    #[serde(default)]
    requests_per_minute: Option<u32>,
    #[serde(default = "timeout_seconds")]
    timeout_seconds: f64,
    #[serde(default)]
    pub(super) price: Price,
}

/// What a million tokens cost, in whatever currency the budgets are in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Price {
    input: f64,
    output: f64,
}

impl Price {
    /// What these tokens cost, in millionths.
    pub(super) fn of(&self, usage: Usage) -> u64 {
        let read = usage.input_tokens as f64 * self.input;
        let written = usage.output_tokens as f64 * self.output;
        (read + written).max(0.0).ceil() as u64
    }
}

fn openai() -> ProviderKind {
    ProviderKind::OpenAi
}

fn timeout_seconds() -> f64 {
    120.0
}

impl ModelsFile {
    /// The environment variables that hold keys.
    pub fn key_variables(&self) -> Vec<String> {
        let variables = self.backends.iter().filter_map(ProviderFile::key_variable);
        variables.map(str::to_owned).collect()
    }
}

impl ProviderFile {
    /// How often it may be asked.
    pub(super) fn per_minute(&self) -> u32 {
        let unless_said = if self.script.is_some() { u32::MAX } else { 60 };
        self.requests_per_minute.unwrap_or(unless_said)
    }

    /// The provider. It asks once: the pool asks again. A script counts from this
    /// folder.
    pub(super) fn provider(
        &self,
        folder: &Path,
        key: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Arc<dyn Provider>, AgentPain> {
        let wrong = |words: &str| Err(AgentPain::Config(words.to_owned()));
        match (&self.model, &self.script) {
            (Some(model), None) => self.api(model).build(key),
            (None, Some(_)) if self.base_url.is_some() || self.key_env.is_some() => {
                wrong("a `script` has no `base_url` and no `key_env`")
            }
            (None, Some(script)) => Ok(Arc::new(Script::load(&folder.join(script))?)),
            _ => wrong("a backend needs a `model`, or a `script` in its place"),
        }
    }

    /// The variable that holds the key. The API's usual one is for the API's
    /// own address: another server is sent a key only where the file says so.
    pub(super) fn key_variable(&self) -> Option<&str> {
        match (&self.key_env, &self.base_url) {
            _ if self.script.is_some() => None,
            (Some(variable), _) => Some(variable),
            (None, None) => self.kind.default_key_env(),
            (None, Some(_)) => None,
        }
    }

    fn api(&self, model: &str) -> ProviderConfig {
        ProviderConfig {
            base_url: self.base_url.clone(),
            key_env: self.key_env.clone(),
            timeout_seconds: Some(self.timeout_seconds),
            stall_seconds: Some(self.timeout_seconds),
            retries: Some(0),
            ..ProviderConfig::new(self.kind, model)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::organism::config::File;

    fn variables(backend: &str) -> Vec<String> {
        let file = File::parse(&format!(
            "listeners: []\nmodels: {{backends: [{{model: m, {backend}}}]}}"
        ));
        file.unwrap().models.unwrap().key_variables()
    }

    #[test]
    fn a_usual_key_is_for_the_usual_address_alone() {
        assert_eq!(variables("kind: anthropic"), ["ANTHROPIC_API_KEY"]);
        assert_eq!(variables("priority: 1"), ["OPENAI_API_KEY"]);
        assert!(variables("kind: ollama").is_empty());
        assert!(variables("base_url: 'http://127.0.0.1:9'").is_empty());
        assert_eq!(
            variables("base_url: 'http://127.0.0.1:9', key_env: OURS"),
            ["OURS"]
        );
    }
}
