//! Several providers as one: the next is asked where one gives no answer.

use super::{Context, Event, EventStream, Provider};
use futures_util::stream::{self, StreamExt};
use std::sync::Arc;

/// The field of a reply's metadata that names the model which stood in.
pub(crate) const ANSWERED_BY: &str = "answeredBy";

/// A chain of providers. The first that answers is listened to; that it was not
/// the first is told as a warning.
pub struct Fallback(Vec<Arc<dyn Provider>>);

impl Fallback {
    /// A chain of `first` and those that stand in for it, in their order.
    pub fn new(first: Arc<dyn Provider>, others: Vec<Arc<dyn Provider>>) -> Self {
        let mut all = vec![first];
        all.extend(others);
        Self(all)
    }
}

struct Walk<'a> {
    chain: &'a [Arc<dyn Provider>],
    prompt: &'a str,
    context: &'a Context,
    heard: EventStream<'a>,
    said: bool,
}

impl Provider for Fallback {
    fn name(&self) -> &str {
        self.0.first().map_or("none", |first| first.name())
    }

    fn model(&self) -> Option<&str> {
        self.0.first()?.model()
    }

    fn with_model(&self, model: &str) -> Option<Arc<dyn Provider>> {
        let (first, others) = self.0.split_first()?;
        Some(Arc::new(Self::new(
            first.with_model(model)?,
            others.to_vec(),
        )))
    }

    fn structured_output(&self) -> bool {
        self.0.iter().all(|provider| provider.structured_output())
    }

    fn stream<'a>(&'a self, prompt: &'a str, context: &'a Context) -> EventStream<'a> {
        let Some((first, rest)) = self.0.split_first() else {
            return stream::empty().boxed();
        };
        let walk = Walk {
            chain: rest,
            prompt,
            context,
            heard: first.stream(prompt, context),
            said: false,
        };
        stream::unfold((walk, first.name()), |(mut walk, name)| async move {
            match walk.heard.next().await? {
                Ok(event) => {
                    walk.said |= event.is_said();
                    Some((Ok(event), (walk, name)))
                }
                Err(failure) => match walk.chain.split_first().filter(|_| !walk.said) {
                    None => Some((Err(failure), (walk, name))),
                    Some((next, rest)) => {
                        let note = format!("{name} gave no answer ({failure}), so {} is asked", next.name());
                        tracing::warn!(from = name, to = next.name(), error = %failure, "another model is asked");
                        walk.chain = rest;
                        let model = next.model().map(|model| {
                            Ok(Event::Extra(ANSWERED_BY.into(), model.into()))
                        });
                        let heard = next.stream(walk.prompt, walk.context);
                        walk.heard = stream::iter(model).chain(heard).boxed();
                        Some((Ok(Event::Warning(note)), (walk, next.name())))
                    }
                },
            }
        })
        .boxed()
    }
}
