//! A provider in the pool: how often it may be asked, and how many
//! questions are open.

use super::ModelError;
use super::bucket::Bucket;
use super::file::{Price, ProviderFile};
use openstarry::pain::AgentPain;
use openstarry::provider::{Context, Provider};
use openstarry::segment::{ProviderResponse, StopReason, Usage};
use openstarry::session::span;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tracing::Instrument;

/// What is taken of an answer.
const ANSWER: usize = 4 << 20;

/// One of the providers that a file names.
pub struct PooledProvider {
    /// Or why there is none.
    provider: Result<Arc<dyn Provider>, String>,
    pub priority: i32,
    price: Price,
    open: AtomicUsize,
    bucket: Mutex<Bucket>,
}

impl PooledProvider {
    /// The provider of a file. What is wrong in the file is an error at once; a
    /// key that is missing is one when the model is asked, since files are also
    /// checked and drawn where there are no keys.
    pub fn new(file: &ProviderFile, folder: &Path) -> Result<Self, AgentPain> {
        file.provider(folder, &|_| Some("any".to_owned()))?;
        let key = |name: &str| {
            let variable = file.key_variable().filter(|variable| *variable == name)?;
            std::env::var(variable).ok()
        };
        let provider = file.provider(folder, &key);
        let provider = provider.map_err(|error| error.to_string());
        let mut pooled = Self::of(provider, file.priority, file.per_minute());
        pooled.price = file.price;
        Ok(pooled)
    }

    pub fn of(provider: Result<Arc<dyn Provider>, String>, priority: i32, per_minute: u32) -> Self {
        Self {
            provider,
            priority,
            price: Price::default(),
            open: AtomicUsize::new(0),
            bucket: Mutex::new(Bucket::new(per_minute, Instant::now())),
        }
    }

    /// Questions it has not answered yet.
    pub fn load(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Counts a question until what is given back is dropped.
    pub fn occupy(&self) -> Open<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(&self.open)
    }

    /// Asks once, as soon as the bucket allows.
    pub async fn ask(
        &self,
        conversation: &str,
        context: &Context,
        prompt: &str,
    ) -> Result<ModelReply, ModelError> {
        let provider = self.provider.as_ref();
        let provider = provider.map_err(|reason| ModelError::NoKey(reason.clone()))?;
        let _open = self.occupy();
        while let Err(wait) = self.take() {
            tokio::time::sleep(wait).await;
        }
        let span = span::chat(&**provider, conversation);
        let reply = provider.generate(prompt, context);
        let reply = checked(reply.instrument(span.clone()).await?)?;
        span::answered(&span, &reply);
        let usage = reply.metadata.usage.unwrap_or_else(|| Usage {
            input_tokens: tokens(&context.system) + tokens(prompt),
            output_tokens: tokens(&reply.text()),
            estimated: true,
            ..Usage::default()
        });
        Ok(ModelReply {
            tokens: usage.total(),
            money: self.price.of(usage),
            reply,
        })
    }

    fn take(&self) -> Result<(), std::time::Duration> {
        self.bucket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(Instant::now())
    }
}

/// What a model said, and what it cost.
pub struct ModelReply {
    /// Its words and calls.
    pub reply: ProviderResponse,
    /// Tokens read and written; about so many where the API does not tell.
    pub tokens: u64,
    /// In millionths of the currency of the prices.
    pub money: u64,
}

/// About four bytes are a token.
fn tokens(text: &str) -> u64 {
    text.len() as u64 / 4
}

/// A reply that says something. One that had nothing to say and ended well said
/// that.
fn checked(reply: ProviderResponse) -> Result<ProviderResponse, ModelError> {
    let text = reply.text();
    let is_silent = text.is_empty() && reply.calls().next().is_none();
    match &reply.metadata.stop_reason {
        _ if text.len() > ANSWER => Err(ModelError::TooLong(ANSWER)),
        Some(StopReason::EndTurn) | None => Ok(reply),
        Some(reason) if is_silent => Err(ModelError::Silent(reason.clone())),
        Some(_) => Ok(reply),
    }
}

/// A question, for as long as it is open, however it ends.
pub struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openstarry::provider::{Event, Fold};
    use std::time::Duration;

    fn heard(events: impl IntoIterator<Item = Event>) -> Result<String, ModelError> {
        let mut fold = Fold::new("test");
        events.into_iter().for_each(|event| fold.push(event));
        checked(fold.finish(Duration::ZERO)).map(|reply| reply.text())
    }

    #[test]
    fn thoughts_are_no_words_and_silence_is_told_unless_it_was_meant() {
        let thought = || Event::Reasoning("hm".into());
        let said = [
            thought(),
            Event::Text("hi".into()),
            Event::Finish(StopReason::EndTurn),
        ];
        assert_eq!(heard(said).unwrap(), "hi");
        assert_eq!(heard([Event::Finish(StopReason::EndTurn)]).unwrap(), "");
        let cut = heard([thought(), Event::Finish(StopReason::MaxTokens)]);
        assert!(matches!(
            cut,
            Err(ModelError::Silent(StopReason::MaxTokens))
        ));
        let long = heard([Event::Text("x".repeat(ANSWER + 1))]);
        assert!(matches!(long, Err(ModelError::TooLong(_))));
    }
}
