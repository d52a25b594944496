//! Answers that broke off are resumed. `rmcp` forgets an answer once it is given to a stream, and nobody may be
//! reading that stream by then; so what a request is answered with is kept here until it was asked for again, or
//! for a while.

use futures_util::{Stream, StreamExt, stream};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        common::server_side_http::{ServerSseMessage, SessionId},
        streamable_http_server::session::{
            RestoreOutcome, SessionManager,
            local::{LocalSessionManager, LocalSessionManagerError},
        },
    },
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// How long an answer is kept once it is complete.
const KEEP: Duration = Duration::from_secs(300);
/// How many complete answers of a session are kept.
const KEPT_PER_SESSION: usize = 16;
/// How many events of one answer are kept; the oldest are reports of progress.
const EVENTS_PER_ANSWER: usize = 64;

/// `rmcp`'s sessions, with answers that can be resumed after they were given.
#[derive(Default)]
pub struct ResumableSessions {
    pub local: LocalSessionManager,
    answers: Mutex<HashMap<SessionId, Vec<Arc<ResumableAnswer>>>>,
}

impl ResumableSessions {
    pub fn new(local: LocalSessionManager) -> Self {
        Self {
            local,
            answers: Mutex::default(),
        }
    }

    /// Keeps a new answer, and forgets what was kept long enough.
    async fn keep(&self, id: &SessionId, answer: &Arc<ResumableAnswer>) {
        let open = self.local.sessions.read().await;
        let mut answers = self.answers();
        answers.retain(|session, _| open.contains_key(session));
        let of_session = answers.entry(id.clone()).or_default();
        let complete = of_session.iter().filter(|answer| answer.is_complete());
        let mut too_many = complete.count().saturating_sub(KEPT_PER_SESSION);
        of_session.retain(|answer| {
            let is_over = answer.is_complete() && too_many > 0;
            too_many -= usize::from(is_over);
            !is_over && !answer.is_old()
        });
        of_session.push(answer.clone());
    }

    fn answer_with(&self, id: &SessionId, event_id: &str) -> Option<(Arc<ResumableAnswer>, usize)> {
        let answers = self.answers();
        let mut of_session = answers.get(id)?.iter();
        of_session.find_map(|answer| Some((answer.clone(), answer.position_after(event_id)?)))
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Arc<ResumableAnswer>>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a request is answered with, in the order of the events.
struct ResumableAnswer {
    events: watch::Sender<Events>,
}

#[derive(Default)]
struct Events {
    kept: VecDeque<ServerSseMessage>,
    /// How many were there before the oldest that is kept.
    dropped: usize,
    completed: Option<Instant>,
}

impl ResumableAnswer {
    /// Reads a stream to its end, whoever listens.
    fn of(events: impl Stream<Item = ServerSseMessage> + Send + 'static) -> Arc<Self> {
        let answer = Arc::new(Self {
            events: watch::Sender::default(),
        });
        let writing = answer.clone();
        tokio::spawn(async move {
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                writing.events.send_modify(|events| events.push(event));
            }
            writing
                .events
                .send_modify(|events| events.completed = Some(Instant::now()));
        });
        answer
    }

    fn is_complete(&self) -> bool {
        self.events.borrow().completed.is_some()
    }

    fn is_old(&self) -> bool {
        let events = self.events.borrow();
        events.completed.is_some_and(|at| at.elapsed() > KEEP)
    }

    fn position_after(&self, event_id: &str) -> Option<usize> {
        let events = self.events.borrow();
        let has_id = |event: &ServerSseMessage| event.event_id.as_deref() == Some(event_id);
        let index = events.kept.iter().position(has_id)?;
        Some(events.dropped + index + 1)
    }

    /// The events from this position on, those to come included.
    fn from(&self, position: usize) -> impl Stream<Item = ServerSseMessage> + Send + Sync + use<> {
        let events = self.events.subscribe();
        stream::unfold((events, position), async |(mut events, position)| {
            let next = events
                .wait_for(|events| events.completed.is_some() || events.next(position).is_some());
            let (position, event) = next.await.ok()?.next(position)?;
            Some((event, (events, position + 1)))
        })
    }
}

impl Events {
    fn push(&mut self, event: ServerSseMessage) {
        if self.kept.len() == EVENTS_PER_ANSWER {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(event);
    }

    /// The event at a position, or the oldest after it that is kept; and its position.
    fn next(&self, position: usize) -> Option<(usize, ServerSseMessage)> {
        let position = position.max(self.dropped);
        let event = self.kept.get(position - self.dropped)?;
        Some((position, event.clone()))
    }
}

impl SessionManager for ResumableSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.answers().remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let answer = ResumableAnswer::of(self.local.create_stream(id, message).await?);
        self.keep(id, &answer).await;
        Ok(answer.from(0))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        if let Some((answer, position)) = self.answer_with(id, &last_event_id) {
            return Ok(answer.from(position).left_stream());
        }
        let resumed = self.local.resume(id, last_event_id).await?;
        Ok(resumed.right_stream())
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.local.restore_session(id).await
    }
}
