//! Which model to ask, and how.

use super::{Anthropic, CallLimits, Endpoint, Gemini, Ollama, OpenAi, Provider};
use crate::pain::AgentPain;
use crate::segment::MediaKind;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// The APIs there are adapters for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI's chat completions, and what speaks like it.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// A local Ollama.
    Ollama,
}

impl ProviderKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The word in `agent.yaml`.
    pub fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Where the API is unless told otherwise.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://localhost:11434",
        }
    }

    /// The variable that holds the key unless told otherwise.
    pub fn default_key_env(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    fn default_accepts(self) -> &'static [MediaKind] {
        match self {
            Self::OpenAi => &[MediaKind::Image, MediaKind::Audio],
            Self::Gemini => &[MediaKind::Image, MediaKind::Audio, MediaKind::Video],
            Self::Anthropic | Self::Ollama => &[MediaKind::Image],
        }
    }
}

/// The `provider` part of `agent.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// Which API.
    pub kind: ProviderKind,
    /// Which model.
    pub model: String,
    /// Where the API is.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The environment variable with the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The most tokens of one reply.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
    /// Media the model takes; what the API takes, unless told otherwise.
    #[serde(default)]
    pub accepts: Option<Vec<MediaKind>>,
    /// Put into the request body as they are.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Whether to use the API's cache for tools and instructions.
    #[serde(default = "yes")]
    pub cache: bool,
    /// For the whole call.
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    /// For silence in a stream.
    #[serde(default)]
    pub stall_seconds: Option<f64>,
    /// How often to try again.
    #[serde(default)]
    pub retries: Option<u32>,
    /// The first wait between tries.
    #[serde(default)]
    pub backoff_seconds: Option<f64>,
}

fn yes() -> bool {
    true
}

impl ProviderConfig {
    /// The settings of `kind` with everything else at its default.
    pub fn new(kind: ProviderKind, model: impl Into<String>) -> Self {
        Self {
            kind,
            model: model.into(),
            base_url: None,
            key_env: None,
            max_output_tokens: None,
            accepts: None,
            options: Map::new(),
            cache: true,
            timeout_seconds: None,
            stall_seconds: None,
            retries: None,
            backoff_seconds: None,
        }
    }

    /// The name: the kind, and the address where it is not the API's own.
    pub fn name(&self) -> String {
        match &self.base_url {
            None => self.kind.word().into(),
            Some(base) => {
                let place = base
                    .split_once("://")
                    .map_or(base.as_str(), |(_, rest)| rest);
                let place = place.split('/').next().unwrap_or_default();
                format!("{}@{place}", self.kind.word())
            }
        }
    }

    /// Makes the provider. `env` looks up variables. A key that is missing is an
    /// error at the API's own address, and goes unsent at another.
    pub fn build(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Arc<dyn Provider>, AgentPain> {
        let key = self.key(env)?;
        let base = self
            .base_url
            .as_deref()
            .unwrap_or(self.kind.default_base_url());
        let endpoint = Endpoint::new(base, self.limits()?)?;
        Ok(match self.kind {
            ProviderKind::OpenAi => Arc::new(OpenAi::new(self, endpoint, key)?),
            ProviderKind::Anthropic => Arc::new(Anthropic::new(self, endpoint, key)?),
            ProviderKind::Gemini => Arc::new(Gemini::new(self, endpoint, key)?),
            ProviderKind::Ollama => Arc::new(Ollama::new(self, endpoint, key)?),
        })
    }

    pub(crate) fn takes(&self, kind: MediaKind) -> bool {
        let accepts = self.accepts.as_deref();
        accepts
            .unwrap_or(self.kind.default_accepts())
            .contains(&kind)
    }

    fn key(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, AgentPain> {
        let asked = self.key_env.as_deref();
        let Some(variable) = asked.or(self.kind.default_key_env()) else {
            return Ok(None);
        };
        let key = env(variable).filter(|key| !key.trim().is_empty());
        if key.is_none() && (asked.is_some() || self.base_url.is_none()) {
            return Err(AgentPain::Config(format!(
                "no key for {}: set {variable}",
                self.kind.word()
            )));
        }
        Ok(key.map(|key| key.trim().to_owned()))
    }

    fn limits(&self) -> Result<CallLimits, AgentPain> {
        let default = CallLimits::default();
        Ok(CallLimits {
            timeout: seconds("timeout_seconds", self.timeout_seconds, default.timeout)?,
            stall: seconds("stall_seconds", self.stall_seconds, default.stall)?,
            backoff: seconds("backoff_seconds", self.backoff_seconds, default.backoff)?,
            retries: self.retries.unwrap_or(default.retries).min(10),
            ..default
        })
    }
}

fn seconds(key: &str, value: Option<f64>, default: Duration) -> Result<Duration, AgentPain> {
    let Some(value) = value else {
        return Ok(default);
    };
    Duration::try_from_secs_f64(value)
        .ok()
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(86_400))
        .ok_or_else(|| AgentPain::Config(format!("{key}: want seconds above 0, up to a day")))
}
