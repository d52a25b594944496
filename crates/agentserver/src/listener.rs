//! Listeners: a name, what it accepts, whom it may send to, and the code behind it.

use crate::core::{Budget, ThreadId};
use crate::handler::{HandlerError, HandlerMetadata, Reply};
use crate::payload::{Canonical, Payload, Schema};
use crate::system::{Boot, Huh, SystemError, TodoClosed, TodoNudge, TodoRegistered};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

type Handle = Arc<
    dyn Fn(Canonical, HandlerMetadata) -> BoxFuture<'static, Result<Reply, HandlerError>>
        + Send
        + Sync,
>;
type OnEnd = Arc<dyn Fn(ThreadId) + Send + Sync>;

/// A listener, before it joins an organism. Nothing is checked until then.
#[derive(Clone)]
pub struct Listener {
    pub(crate) name: Arc<str>,
    pub(crate) description: String,
    pub(crate) is_agent: bool,
    pub(crate) is_broadcast: bool,
    pub(crate) peers: Vec<String>,
    pub(crate) timeout: Duration,
    pub(crate) concurrency: usize,
    pub(crate) is_concurrent: bool,
    pub(crate) budget: Option<Budget>,
    pub(crate) answer: Option<Schema>,
    pub(crate) payload_bytes: usize,
    /// Few enough that a look at each is the quickest way to find one.
    accepted: Vec<(Schema, Handle)>,
    on_end: Option<OnEnd>,
}

impl Listener {
    /// A listener that accepts nothing yet and may send to nobody.
    pub fn named(name: impl AsRef<str>) -> Self {
        Self {
            name: Arc::from(name.as_ref()),
            description: String::new(),
            is_agent: false,
            is_broadcast: false,
            peers: Vec::new(),
            timeout: Duration::from_secs(60),
            concurrency: 16,
            is_concurrent: false,
            budget: None,
            answer: None,
            payload_bytes: usize::MAX,
            accepted: Vec::new(),
            on_end: None,
        }
    }

    /// What it does, in a sentence that agents read.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// An agent is told its own name and may send to its peers alone, its
    /// caller not among them unless listed.
    pub fn agent(mut self, is_agent: bool) -> Self {
        self.is_agent = is_agent;
        self
    }

    /// Whom it may send to.
    pub fn peers<S: Into<String>>(mut self, peers: impl IntoIterator<Item = S>) -> Self {
        self.peers = peers.into_iter().map(Into::into).collect();
        self
    }

    /// Whether it shares payloads sent without a target with other such listeners.
    pub fn broadcast(mut self, is_broadcast: bool) -> Self {
        self.is_broadcast = is_broadcast;
        self
    }

    /// How long one message may take; 60 s unless said.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether it may handle several calls of one caller at a time, each in a
    /// thread of its own; unless said, they are handled one after the other, in
    /// the order sent, in one thread.
    pub fn concurrent(mut self, is_concurrent: bool) -> Self {
        self.is_concurrent = is_concurrent;
        self
    }

    /// What one call of it, and all that follows from the call, may use. What is
    /// left of its caller's budget bounds it too.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// The type of its answers: sent without a target it goes to the caller,
    /// whoever else accepts it.
    pub fn answers(mut self, schema: Schema) -> Self {
        self.answer = Some(schema);
        self
    }

    /// How many messages it handles at once; 16 unless said.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency.max(1);
        self
    }

    /// How large a payload it accepts; as large as the pump does unless said.
    pub fn payload_bytes(mut self, bytes: usize) -> Self {
        self.payload_bytes = bytes;
        self
    }

    /// Accepts a payload type with an async handler.
    pub fn on<P, H, F, R>(self, handler: H) -> Self
    where
        P: Payload,
        H: Fn(P, HandlerMetadata) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Into<Reply>,
    {
        self.handle(P::schema(), move |payload, metadata| {
            match P::from_xml(payload.xml()) {
                Ok(payload) => handler(payload, metadata)
                    .map(|result| result.map(Into::into))
                    .boxed(),
                Err(error) => std::future::ready(Err(HandlerError::from(error))).boxed(),
            }
        })
    }

    /// Accepts a payload type with a handler that blocks: it runs on a thread of
    /// its own, where it cannot keep others from running. After its time-out it
    /// is no longer waited for; whether it ends then is its own affair.
    pub fn on_blocking<P, H, R>(self, handler: H) -> Self
    where
        P: Payload,
        H: Fn(P, HandlerMetadata) -> Result<R, HandlerError> + Send + Sync + 'static,
        R: Into<Reply> + Send + 'static,
    {
        let handler = Arc::new(handler);
        self.on(move |payload: P, metadata| {
            let handler = handler.clone();
            async move {
                let run = tokio::task::spawn_blocking(move || handler(payload, metadata));
                run.await?
            }
        })
    }

    /// Accepts a payload type that has no Rust struct; the handler reads XML.
    pub fn on_schema<H, F, R>(self, schema: Schema, handler: H) -> Self
    where
        H: Fn(Canonical, HandlerMetadata) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Into<Reply>,
    {
        self.handle(schema, move |payload, metadata| {
            handler(payload, metadata)
                .map(|result| result.map(Into::into))
                .boxed()
        })
    }

    /// Takes all that the pump itself may send, as XML: for listeners such as
    /// models, that read whatever comes.
    pub fn on_system<H, F, R>(self, handler: H) -> Self
    where
        H: Fn(Canonical, HandlerMetadata) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Into<Reply>,
    {
        [
            SystemError::schema(),
            Huh::schema(),
            TodoRegistered::schema(),
            TodoClosed::schema(),
            TodoNudge::schema(),
        ]
        .into_iter()
        .fold(self, |listener, schema| {
            match listener.accepts(&schema.namespace, &schema.name) {
                true => listener,
                false => listener.on_schema(schema, handler.clone()),
            }
        })
    }

    /// Called when a thread of this listener ends, to free what it kept for it.
    pub fn on_thread_end(mut self, hook: impl Fn(ThreadId) + Send + Sync + 'static) -> Self {
        self.on_end = Some(Arc::new(hook));
        self
    }

    fn handle(
        mut self,
        schema: Schema,
        handler: impl Fn(Canonical, HandlerMetadata) -> BoxFuture<'static, Result<Reply, HandlerError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.accepted
            .retain(|(known, _)| known.name != schema.name || known.namespace != schema.namespace);
        self.accepted.push((schema, Arc::new(handler)));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn key(&self) -> Arc<str> {
        key(&self.name)
    }

    pub(crate) fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.accepted.iter().map(|(schema, _)| schema)
    }

    /// What it accepts from others; system payloads are nobody else's to send.
    pub(crate) fn offers(&self) -> impl Iterator<Item = &Schema> {
        self.schemas().filter(|schema| !is_system(schema))
    }

    pub(crate) fn accepts(&self, namespace: &str, root: &str) -> bool {
        self.handler(namespace, root).is_some()
    }

    fn handler(&self, namespace: &str, root: &str) -> Option<&Handle> {
        let mut accepted = self.accepted.iter();
        let found =
            accepted.find(|(schema, _)| schema.name == root && schema.namespace == namespace);
        found.map(|(_, handler)| handler)
    }

    pub(crate) fn call(
        &self,
        payload: Canonical,
        metadata: HandlerMetadata,
    ) -> BoxFuture<'static, Result<Reply, HandlerError>> {
        match self.handler(payload.namespace(), payload.root()) {
            Some(handler) => handler(payload, metadata),
            None => std::future::ready(Err("no handler for this payload".into())).boxed(),
        }
    }

    /// Whether it wants to know when a thread ends.
    pub(crate) fn keeps_state(&self) -> bool {
        self.on_end.is_some()
    }

    pub(crate) fn thread_ended(&self, thread: ThreadId) {
        if let Some(hook) = &self.on_end {
            hook(thread);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("name", &self.name)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

/// Names are compared without case.
pub(crate) fn key(name: &str) -> Arc<str> {
    Arc::from(lowercase(name))
}

/// The text of a name's key, which is most often the name as it is.
pub(crate) fn lowercase(name: &str) -> Cow<'_, str> {
    let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    match name.bytes().all(is_lower) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.to_lowercase()),
    }
}

/// Whether only the pump may send this type.
fn is_system(schema: &Schema) -> bool {
    is_system_type(&schema.namespace, &schema.name)
}

pub(crate) fn is_system_type(namespace: &str, root: &str) -> bool {
    // Each message is asked. Names differ where namespaces seldom do.
    [
        (SystemError::NAME, SystemError::NAMESPACE),
        (Huh::NAME, Huh::NAMESPACE),
        (Boot::NAME, Boot::NAMESPACE),
        (TodoRegistered::NAME, TodoRegistered::NAMESPACE),
        (TodoClosed::NAME, TodoClosed::NAMESPACE),
        (TodoNudge::NAME, TodoNudge::NAMESPACE),
    ]
    .contains(&(root, namespace))
}
