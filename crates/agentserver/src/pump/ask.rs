//! Questions to peers from inside a handler: one, or many at once.

use super::Meter;
use crate::core::{AskId, Form, Outgoing};
use crate::handler::{HandlerMetadata, Target};
use crate::payload::{Canonical, Payload};
use crate::system::SystemError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It was refused, or the peer failed; this is what was told.
    #[error("{}: {}", .0.code, .0.message)]
    Fault(SystemError),
    /// The peer was done without an answer.
    #[error("no answer was given")]
    NoAnswer,
    /// The deadline came first.
    #[error("no answer came in time")]
    Deadline,
}

impl HandlerMetadata {
    /// Asks a peer and waits for its answer. The question has a thread of its
    /// own. While it waits, the handler takes no place of its listener's; its
    /// own time-out goes on.
    pub async fn ask<P: Payload>(&self, peer: &str, payload: P) -> Result<Canonical, AskError> {
        self.meter.ask(peer, &payload).await
    }

    /// Asks several peers at once and waits for the first `enough` answers, or
    /// for all. Gives what each came to, in the order asked; those that were not
    /// waited for are cancelled, and come to [`AskError::Deadline`].
    pub async fn gather<P: Payload>(
        &self,
        questions: impl IntoIterator<Item = (String, P)>,
        enough: usize,
        deadline: Duration,
    ) -> Vec<Result<Canonical, AskError>> {
        let asks = questions.into_iter().enumerate();
        let mut open: FuturesUnordered<_> = asks
            .map(|(index, (peer, payload))| async move {
                (index, self.meter.ask(&peer, &payload).await)
            })
            .collect();
        let mut results: Vec<_> = (0..open.len()).map(|_| Err(AskError::Deadline)).collect();
        let until = Instant::now() + deadline;
        let mut answered = 0;
        while answered < enough
            && let Ok(Some((index, result))) = tokio::time::timeout_at(until, open.next()).await
        {
            answered += usize::from(result.is_ok());
            results[index] = result;
        }
        results
    }
}

impl Meter {
    async fn ask<P: Payload>(&self, peer: &str, payload: &P) -> Result<Canonical, AskError> {
        let gone = || AskError::NoAnswer;
        let shared = self.shared().ok_or_else(gone)?;
        let (payload, fit) = shared.written(&self.job().organism, payload.to_xml(), P::schema);
        let out = Outgoing {
            target: Target::Named(peer.to_owned()),
            payload,
            form: Form::Typed,
            fit,
        };
        let (sender, answer) = oneshot::channel();
        let now = shared.now();
        let id = shared.step(|state| {
            let id = state.core.ask(self.job().id, &out, now)?;
            state.asks.insert(id, sender);
            Ok(id)
        });
        let id = id.map_err(|told: Canonical| fault(&told))?;
        let _open = Open { meter: self, id };
        drop(shared);
        let answer = answer.await.ok().flatten().ok_or(AskError::NoAnswer)?;
        match answer.is::<SystemError>() {
            true => Err(fault(&answer)),
            false => Ok(answer),
        }
    }
}

fn fault(told: &Canonical) -> AskError {
    told.read().map_or(AskError::NoAnswer, AskError::Fault)
}

/// A question that is waited for, until it is dropped.
struct Open<'a> {
    meter: &'a Meter,
    id: AskId,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.meter.shared() {
            let now = shared.now();
            shared.step(|state| {
                if state.asks.remove(&self.id).is_some() {
                    state.core.forget_ask(self.id, now);
                }
            });
        }
    }
}
