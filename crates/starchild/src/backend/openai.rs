//! Any server that speaks like OpenAI's: `POST {OPENAI_BASE_URL}/chat/completions`.

use super::{Backend, BackendError, Call, Inbound, Reply, config::BackendConfig, prompt::Prompt};
use futures_util::{StreamExt, future::BoxFuture};
use openstarry::{
    pain::AgentPain,
    provider::{Context, Event, Fold, Provider, ProviderConfig, ProviderKind},
    segment::{ProviderResponse, StopReason},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const DEFAULT_MODEL: &str = "gpt-4o-mini";

/// A model behind an API.
pub struct Openai {
    provider: Arc<dyn Provider>,
    owner: Option<String>,
    timeout: Duration,
}

impl Openai {
    /// `env` looks up `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL`. A key is needed at
    /// OpenAI's own address alone.
    pub fn new(
        config: &BackendConfig,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, BackendError> {
        let set = |name| env(name).filter(|value| !value.trim().is_empty());
        let model = config.model.clone().or_else(|| set("OPENAI_MODEL"));
        let model = model.unwrap_or_else(|| DEFAULT_MODEL.into());
        let mut provider = ProviderConfig::new(ProviderKind::OpenAi, model);
        provider.base_url = set("OPENAI_BASE_URL").map(|url| url.trim().to_owned());
        provider.timeout_seconds = Some(config.timeout().as_secs_f64());
        let provider = provider.build(env).map_err(|pain| BackendError::Missing {
            what: pain.to_string(),
            hint: "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, where the daemon starts".into(),
        })?;
        Ok(Self {
            provider,
            owner: config.system_prompt.clone(),
            timeout: config.timeout(),
        })
    }

    async fn ask(&self, inbound: &Inbound, call: &Call) -> Result<Reply, BackendError> {
        let prompt = Prompt::new(inbound, self.owner.as_deref());
        let context = Context {
            system: prompt.instructions,
            ..Context::default()
        };
        let answer = self.hear(&prompt.material, &context, call);
        let answer = tokio::time::timeout(self.timeout, answer)
            .await
            .map_err(|_| BackendError::TimedOut(self.timeout))?
            .map_err(why)?;
        call.report_usage(|usage| {
            usage.model = answer.metadata.model.clone();
            if let Some(told) = answer.metadata.usage {
                usage.input_tokens = Some(told.input_tokens);
                usage.output_tokens = Some(told.output_tokens);
            }
        });
        match &answer.metadata.stop_reason {
            Some(StopReason::Refusal | StopReason::ContentFilter | StopReason::BlockedPrompt)
                if answer.text().trim().is_empty() =>
            {
                Err(BackendError::Failed("the model refused to answer".into()))
            }
            _ => Ok(Reply::from_output(&answer.text())),
        }
    }

    /// Listens to the model, and passes on what it says as it says it.
    async fn hear(
        &self,
        prompt: &str,
        context: &Context,
        call: &Call,
    ) -> Result<ProviderResponse, AgentPain> {
        let started = Instant::now();
        let mut fold = Fold::new(self.provider.name());
        let mut events = self.provider.stream(prompt, context);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if let Event::Text(text) = &event {
                        call.report_more_text(text);
                    }
                    fold.push(event);
                }
                Err(cause) => return Err(fold.interrupt(cause)),
            }
        }
        Ok(fold.finish(started.elapsed()))
    }
}

impl Backend for Openai {
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.ask(inbound, call))
    }
}

/// What may pass is tried again; a wrong key or a request that is refused is not.
fn why(pain: AgentPain) -> BackendError {
    let cause = match &pain {
        AgentPain::Interrupted { cause, .. } => cause,
        pain => pain,
    };
    match cause {
        AgentPain::Timeout(limit) => BackendError::TimedOut(*limit),
        AgentPain::RateLimited { .. }
        | AgentPain::Unavailable { .. }
        | AgentPain::Network(_)
        | AgentPain::Silent(_)
        | AgentPain::Stalled(_) => BackendError::Unavailable(pain.to_string()),
        AgentPain::Key(_) => BackendError::Failed(format!("{pain}; set OPENAI_API_KEY")),
        _ => BackendError::Failed(pain.to_string()),
    }
}
