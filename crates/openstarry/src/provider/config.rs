//! Which model to ask, and how.

use super::{
    Anthropic, CallLimits, Endpoint, Gemini, Model, Ollama, OpenAi, Provider, Responses, models,
};
use crate::pain::AgentPain;
use crate::segment::MediaKind;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How the addresses of Azure end.
const AZURE: &str = ".azure.com";

/// The APIs there are adapters for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI's chat completions, and what speaks like it.
    OpenAi,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// A local Ollama.
    Ollama,
}

impl ProviderKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::Responses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
    ];

    /// The word in `agent.yaml`.
    pub fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Where the API is unless told otherwise.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://localhost:11434",
        }
    }

    /// The variable that holds the key unless told otherwise.
    pub fn default_key_env(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::Responses => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// The header that takes the key.
    fn key_header(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses | Self::Ollama => BEARER,
            Self::Anthropic => "x-api-key",
            Self::Gemini => "x-goog-api-key",
        }
    }

    fn default_accepts(self) -> &'static [MediaKind] {
        match self {
            Self::OpenAi => &[MediaKind::Image, MediaKind::Audio],
            Self::Gemini => &[MediaKind::Image, MediaKind::Audio, MediaKind::Video],
            Self::Responses | Self::Anthropic | Self::Ollama => &[MediaKind::Image],
        }
    }
}

/// The tokens of most models' context.
pub(crate) const USUAL_CONTEXT: u64 = 128_000;
/// The header where a key goes after the word `Bearer`.
const BEARER: &str = "authorization";

/// The `provider` part of `agent.yaml`, and the builder of a provider:
///
/// ```
/// use openstarry::provider::{ProviderConfig, ProviderKind};
///
/// # fn main() -> Result<(), openstarry::pain::AgentPain> {
/// let provider = ProviderConfig::new(ProviderKind::Anthropic, "a-model")
///     .max_output_tokens(4096)
///     .header("anthropic-beta", "context-1m-2025-08-07")
///     .option("temperature", 0.2)
///     .build_with_key("sk-…")?;
/// assert_eq!(provider.model(), Some("a-model"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// Which API.
    pub kind: ProviderKind,
    /// Which model.
    pub model: String,
    /// Where the API is. A query in it follows every path.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The environment variable with the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The header that takes the key, where it is not the API's usual one.
    #[serde(default)]
    pub key_header: Option<String>,
    /// Further headers. A value `$NAME` is that environment variable's.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The most tokens of one reply.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
    /// The tokens of the model's context window.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// Media the model takes; what the API takes, unless told otherwise.
    #[serde(default)]
    pub accepts: Option<Vec<MediaKind>>,
    /// Put into the request body as they are.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Whether to use the API's cache for tools, instructions and the conversation.
    #[serde(default = "yes")]
    pub cache: bool,
    /// For the whole call; no limit unless told.
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    /// For the first byte of an answer, tries and waits included.
    #[serde(default)]
    pub first_byte_seconds: Option<f64>,
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

/// Looks up environment variables.
pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

impl ProviderConfig {
    /// The settings of `kind` with everything else at its default.
    pub fn new(kind: ProviderKind, model: impl Into<String>) -> Self {
        Self {
            kind,
            model: model.into(),
            base_url: None,
            key_env: None,
            key_header: None,
            headers: BTreeMap::new(),
            max_output_tokens: None,
            context_tokens: None,
            accepts: None,
            options: Map::new(),
            cache: true,
            timeout_seconds: None,
            first_byte_seconds: None,
            stall_seconds: None,
            retries: None,
            backoff_seconds: None,
        }
    }

    /// Another address.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// The environment variable with the key, where it has another name.
    pub fn key_env(mut self, name: impl Into<String>) -> Self {
        self.key_env = Some(name.into());
        self
    }

    /// A further header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The most tokens of one reply.
    pub fn max_output_tokens(mut self, tokens: u64) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// A field of the request body, as it is.
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.insert(name.into(), value.into());
        self
    }

    /// The name: the kind, and the address where it is not the API's own.
    pub fn name(&self) -> String {
        match &self.base_url {
            None => self.kind.word().into(),
            Some(base) => format!("{}@{}", self.kind.word(), authority(base)),
        }
    }

    /// Whether OpenAI itself is asked.
    pub(crate) fn is_at_openai(&self) -> bool {
        let base = self.base_url.as_deref();
        base.is_none_or(|base| host(base) == "api.openai.com")
    }

    /// Whether OpenAI's models are asked, there or at Azure. They take a limit by
    /// another name than servers that speak like them.
    pub(crate) fn has_openai_models(&self) -> bool {
        let base = self.base_url.as_deref();
        self.is_at_openai() || base.is_some_and(|base| host(base).ends_with(AZURE))
    }

    /// Makes the provider. `env` looks up variables. A key that is missing is an
    /// error at the API's own address, and goes unsent at another.
    pub fn build(&self, env: Env<'_>) -> Result<Arc<dyn Provider>, AgentPain> {
        self.with_key(self.key(env)?, env)
    }

    /// Makes the provider with the key that the environment has: under the API's
    /// usual name ([`ProviderKind::default_key_env`]), or that of `key_env`.
    pub fn build_from_env(&self) -> Result<Arc<dyn Provider>, AgentPain> {
        self.build(&|name| std::env::var(name).ok())
    }

    /// Makes the provider with a key at hand.
    pub fn build_with_key(&self, key: impl Into<String>) -> Result<Arc<dyn Provider>, AgentPain> {
        self.with_key(Some(key.into()), &|name| std::env::var(name).ok())
    }

    /// Asks the server which models there are.
    pub async fn models(&self, env: Env<'_>) -> Result<Vec<Model>, AgentPain> {
        let endpoint = self.endpoint(self.key(env)?, env)?;
        models::list(self.kind, &endpoint).await
    }

    fn with_key(&self, key: Option<String>, env: Env<'_>) -> Result<Arc<dyn Provider>, AgentPain> {
        let endpoint = self.endpoint(key, env)?;
        Ok(match self.kind {
            ProviderKind::OpenAi => Arc::new(OpenAi::new(self, endpoint)),
            ProviderKind::Responses => Arc::new(Responses::new(self, endpoint)),
            ProviderKind::Anthropic => Arc::new(Anthropic::new(self, endpoint)),
            ProviderKind::Gemini => Arc::new(Gemini::new(self, endpoint)),
            ProviderKind::Ollama => Arc::new(Ollama::new(self, endpoint)),
        })
    }

    fn endpoint(&self, key: Option<String>, env: Env<'_>) -> Result<Endpoint, AgentPain> {
        let base = self.base_url.as_deref();
        let base = base.unwrap_or(self.kind.default_base_url());
        let mut endpoint = Endpoint::new(base, self.limits()?)?;
        if self.kind == ProviderKind::Anthropic {
            endpoint = endpoint.header("anthropic-version", "2023-06-01");
        }
        if let Some(key) = key {
            let usual = match host(base).ends_with(AZURE) {
                true => "api-key",
                false => self.kind.key_header(),
            };
            let header = self.key_header.as_deref().unwrap_or(usual);
            let value = match header.eq_ignore_ascii_case(BEARER) {
                true => format!("Bearer {key}"),
                false => key,
            };
            endpoint = endpoint.secret(header, &value)?;
        }
        for (name, value) in &self.headers {
            let value = match value.strip_prefix('$') {
                None => value.clone(),
                Some(variable) => env(variable)
                    .ok_or_else(|| AgentPain::Config(format!("headers.{name}: set {variable}")))?,
            };
            endpoint = endpoint.secret(name, value.trim())?;
        }
        Ok(endpoint)
    }

    /// The tokens of the model's context, as far as is known.
    pub(crate) fn context(&self) -> u64 {
        self.context_tokens.unwrap_or(match self.kind {
            ProviderKind::Ollama => 8_000,
            _ => USUAL_CONTEXT,
        })
    }

    pub(crate) fn takes(&self, kind: MediaKind) -> bool {
        let accepts = self.accepts.as_deref();
        accepts
            .unwrap_or(self.kind.default_accepts())
            .contains(&kind)
    }

    fn key(&self, env: Env<'_>) -> Result<Option<String>, AgentPain> {
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
        let or = |key, value, default| Ok(seconds(key, value)?.unwrap_or(default));
        Ok(CallLimits {
            timeout: seconds("timeout_seconds", self.timeout_seconds)?,
            first_byte: or(
                "first_byte_seconds",
                self.first_byte_seconds,
                default.first_byte,
            )?,
            stall: or("stall_seconds", self.stall_seconds, default.stall)?,
            backoff: or("backoff_seconds", self.backoff_seconds, default.backoff)?,
            retries: self.retries.unwrap_or(default.retries).min(10),
            ..default
        })
    }
}

/// The host of an address.
fn host(base: &str) -> &str {
    authority(base).split(':').next().unwrap_or_default()
}

/// The authority of an address: its host and port.
fn authority(base: &str) -> &str {
    let authority = base.split_once("://").map_or(base, |(_, rest)| rest);
    authority.split(['/', '?']).next().unwrap_or_default()
}

fn seconds(key: &str, value: Option<f64>) -> Result<Option<Duration>, AgentPain> {
    let Some(value) = value else {
        return Ok(None);
    };
    let time = Duration::try_from_secs_f64(value).ok();
    let time = time.filter(|time| !time.is_zero() && *time <= Duration::from_secs(86_400));
    match time {
        Some(time) => Ok(Some(time)),
        None => Err(AgentPain::Config(format!(
            "{key}: want seconds above 0, up to a day"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openais_models_are_known_by_their_address() {
        for (base, own, models) in [
            (None, true, true),
            (Some("https://api.openai.com/v1"), true, true),
            (
                Some("https://x.openai.azure.com/openai/deployments/d?api-version=1"),
                false,
                true,
            ),
            (Some("https://x.azure.com.evil.example/v1"), false, false),
            (Some("http://localhost:8000/v1"), false, false),
        ] {
            let mut config = ProviderConfig::new(ProviderKind::OpenAi, "m");
            config.base_url = base.map(String::from);
            assert_eq!(config.is_at_openai(), own, "{base:?}");
            assert_eq!(config.has_openai_models(), models, "{base:?}");
        }
    }
}
