//! `POST /chat/stream`: the backend's answer, as an event stream. A caller that goes away cancels
//! the call.

use super::{
    HostState,
    answer_diff::{AnswerDiff, Frame},
    call::{ChatRequest, Incoming, RoomCall, direct_message},
    keys::Refused,
    refusal::{Refusal, read_json},
    rooms::HostedRoom,
    threads,
};
use crate::{
    backend::{BackendError, Call, Inbound, Me, Reply, Usage, answer_in::AnswerIn},
    daemon::{
        credentials::key::now,
        room::addressed::{Addressed, addressed_to},
    },
};
use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::post,
};
use client::ClientError;
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinHandle};

const MAX_BODY_BYTES: usize = 512 * 1024;
const MAX_BEARER_BYTES: usize = 4096;
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Frames that wait for a slow reader; then the backend waits.
const MAX_FRAMES: usize = 64;
/// Answers that are remembered, for callers who did not get them.
const MAX_ANSWERS: usize = 256;

/// The route.
pub fn router(host: Arc<HostState>) -> Router {
    Router::new()
        .route("/chat/stream", post(chat))
        .with_state(host)
}

async fn chat(
    State(host): State<Arc<HostState>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let bearer = bearer(&headers)?;
    if !host.keys.knows(bearer, now()) {
        return Err(Refusal::key_invalid());
    }
    let request: ChatRequest = read_json(body, MAX_BODY_BYTES).await?;
    let admitted = host.keys.admit(bearer, &request.thread_id, now());
    let key = admitted.map_err(|refused| match refused {
        Refused::Unknown => Refusal::key_invalid(),
        Refused::Scope => Refusal::scope_insufficient(),
        Refused::Rate { after } => Refusal::rate_limited(after),
    })?;
    let thread_lock = host.threads.lock_of(&request.thread_id);
    let thread_lock = thread_lock.ok_or_else(Refusal::busy)?;
    let delivery = headers.get("x-delivery-id");
    let delivery = delivery.and_then(|id| id.to_str().ok());
    let delivery = delivery.map(|id| format!("{key} {id}"));
    let incoming = request.understood()?;
    let (frames, coming) = mpsc::channel(MAX_FRAMES);
    let work = tokio::spawn(async move {
        let guard = tokio::time::timeout(host.timeout, threads::wait(thread_lock)).await;
        let mut outlet = Outlet::new(frames, &incoming);
        let answered = match guard {
            Ok(_guard) => host.answer(incoming, &key, delivery, &mut outlet).await,
            Err(_) => Answered::Failed("the thread is busy; try again in a moment".into()),
        };
        outlet.finish(answered).await;
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("working");
    let stream = Sse::new(until_gone(coming, work)).keep_alive(keep_alive);
    Ok(([(header::CACHE_CONTROL, "no-store")], stream).into_response())
}

/// The key that a request shows.
pub fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let given = headers.get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok());
    let bearer = given.and_then(|value| value.strip_prefix("Bearer "));
    let bearer = bearer.ok_or_else(Refusal::missing_bearer)?.trim();
    match bearer.len() <= MAX_BEARER_BYTES {
        true => Ok(bearer),
        false => Err(Refusal::key_invalid()),
    }
}

/// The frames as they come. Dropped, because the caller is gone, it ends the work.
fn until_gone(
    coming: mpsc::Receiver<Event>,
    work: JoinHandle<()>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    struct Work(JoinHandle<()>);
    impl Drop for Work {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let state = (coming, Work(work));
    stream::unfold(state, async |(mut coming, work)| {
        let frame = coming.recv().await?;
        Some((Ok(frame), (coming, work)))
    })
    .boxed()
}

/// A caller that goes away while a person is asked may come again with the same message: the question
/// waits for it. Where somebody stopped the answer, the room has taken the question back.
struct CallerGone<'a>(&'a Call);

impl Drop for CallerGone<'_> {
    fn drop(&mut self) {
        if self.0.progress().questions > 0 {
            self.0.begin_shutdown();
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone)]
enum Answered {
    /// These words, at this cost.
    Text(String, Usage),
    /// Nothing, on purpose.
    Silent,
    /// Nothing, and nothing would come of a retry: the room goes on without it.
    Skipped(String),
    /// Nothing yet; the caller may try again.
    Failed(String),
}

/// The way to the caller.
struct Outlet {
    frames: mpsc::Sender<Event>,
    diff: AnswerDiff,
}

impl Outlet {
    fn new(frames: mpsc::Sender<Event>, incoming: &Incoming) -> Self {
        let diff = match incoming {
            Incoming::Room(_) => AnswerDiff::default(),
            Incoming::Direct { .. } => AnswerDiff::for_printer(),
        };
        Self { frames, diff }
    }

    /// Sends a frame. Where nobody reads any more, this task is about to be ended.
    async fn send(&self, frame: Value) {
        let _ = self
            .frames
            .send(Event::default().data(frame.to_string()))
            .await;
    }

    async fn tell(&mut self, activity: Option<&str>, text: &str) {
        for frame in self.diff.update(activity, text) {
            self.send(json_of(frame)).await;
        }
    }

    async fn finish(mut self, answered: Answered) {
        let diff = std::mem::take(&mut self.diff);
        match answered {
            Answered::Text(text, usage) => {
                for frame in diff.finish(&text) {
                    self.send(json_of(frame)).await;
                }
                self.send(usage_frame(&usage)).await;
            }
            Answered::Silent => {
                if let Some(frame) = diff.take_back() {
                    self.send(json_of(frame)).await;
                }
            }
            Answered::Skipped(why) => {
                if let Some(frame) = diff.take_back() {
                    self.send(json_of(frame)).await;
                }
                // No text and no error: the room posts nothing and does not call again.
                self.send(json!({"type": "skipped", "message": why})).await;
            }
            Answered::Failed(why) => {
                let told = json!({"type": "error", "message": why}).to_string();
                let told = Event::default().event("error").data(told);
                let _ = self.frames.send(told).await;
                return;
            }
        }
        let _ = self.frames.send(Event::default().data("[DONE]")).await;
    }
}

fn json_of(frame: Frame) -> Value {
    match frame {
        Frame::Text(text) => json!({"type": "text", "text": text}),
        Frame::Restart => json!({"type": "restart"}),
        Frame::Tool(name) => json!({"type": "tool_use", "name": name}),
        Frame::Thinking => json!({"type": "thinking"}),
    }
}

fn usage_frame(usage: &Usage) -> Value {
    json!({
        "type": "usage",
        "model": usage.model,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "tools": usage.tools,
    })
}

impl HostState {
    async fn answer(
        &self,
        incoming: Incoming,
        key: &str,
        delivery: Option<String>,
        outlet: &mut Outlet,
    ) -> Answered {
        if let Some(known) = delivery.as_ref().and_then(|id| self.answers.get(id)) {
            return known;
        }
        let answered = match incoming {
            Incoming::Room(call) => self.answer_room(*call, key, outlet).await,
            Incoming::Direct { thread, text } => {
                let inbound = self.direct(&thread, text);
                let answered = self.ask(&inbound, outlet).await;
                // Somebody waits for words.
                answered.unwrap_or_else(|error| Answered::Failed(error.to_string()))
            }
        };
        if let Some(id) = delivery
            && !matches!(answered, Answered::Failed(_))
        {
            self.answers.keep(id, answered.clone());
        }
        answered
    }

    async fn answer_room(&self, call: RoomCall, key: &str, outlet: &mut Outlet) -> Answered {
        let hosted = self.rooms.with_key(key).await;
        let hosted = hosted.filter(|hosted| hosted.room_id == call.room);
        let span = tracing::info_span!("message", room = %call.room, seq = call.message.seq);
        let prepared = self.room_inbound(call, hosted.as_ref());
        let inbound = match tracing::Instrument::instrument(prepared, span.clone()).await {
            Ok(Some(inbound)) => inbound,
            Ok(None) => return Answered::Silent,
            Err(error) => return Answered::Failed(error.to_string()),
        };
        match tracing::Instrument::instrument(self.ask(&inbound, outlet), span).await {
            Ok(answered) => answered,
            Err(error @ (BackendError::Unavailable(_) | BackendError::Missing { .. })) => {
                tracing::warn!(%error, room = %inbound.room_id, "no answer; the room may call again");
                Answered::Failed(error.to_string())
            }
            Err(error) => {
                tracing::error!(%error, room = %inbound.room_id, "no answer; the message is skipped");
                Answered::Skipped(error.to_string())
            }
        }
    }

    /// Has the backend answer, and tells how the answer grows.
    async fn ask(&self, inbound: &Inbound, outlet: &mut Outlet) -> Result<Answered, BackendError> {
        let call = Call::default();
        let mut progress = call.watch();
        let mut answer = self.backend.answer(inbound, &call);
        // Dropped before the answer is.
        let _gone = CallerGone(&call);
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut answer => break reply?,
                Ok(()) = progress.changed() => {
                    let now = progress.borrow_and_update().clone();
                    outlet.tell(now.activity.as_deref(), &now.text).await;
                }
            }
        };
        let reply = match reply {
            // Every backend's words are cut alike.
            Reply::Text(text) => Reply::from_output(&text),
            Reply::Silent => Reply::Silent,
        };
        Ok(match reply {
            Reply::Text(text) => Answered::Text(text, call.progress().usage),
            Reply::Silent => Answered::Silent,
        })
    }

    /// What the backend is told of a room's message; nothing where it is not for the agent.
    async fn room_inbound(
        &self,
        call: RoomCall,
        hosted: Option<&HostedRoom>,
    ) -> Result<Option<Inbound>, ClientError> {
        if matches!(&self.answer_in, AnswerIn::Rooms(rooms) if !rooms.contains(&call.room)) {
            return Ok(None);
        }
        let me = match (hosted, &call.recipient) {
            // The room's server knows best, also whose agent it is.
            (Some(hosted), _) => self.rooms.me(hosted).await?,
            (None, Some(recipient)) => recipient.clone(),
            (None, None) => self.me(),
        };
        let only_addressed = self.backend.answers_only_addressed();
        if only_addressed && !self.is_addressed(&call, &me, hosted).await? {
            return Ok(None);
        }
        let (mut rules, mut client) = (None, self.server.clone());
        if let Some(hosted) = hosted {
            client = self.rooms.backend_client(hosted).await?;
            if only_addressed {
                rules = self.rooms.rules(hosted, call.message.rules_version).await?;
            }
        }
        let room_name = match hosted {
            Some(hosted) => format!("{}@{}", call.room, hosted.server),
            None => call.room.to_string(),
        };
        Ok(Some(Inbound {
            room_name,
            room_id: call.room,
            message: call.message,
            client,
            me,
            rules,
            recent: call.recent,
            session: self.session.clone(),
        }))
    }

    async fn is_addressed(
        &self,
        call: &RoomCall,
        me: &Me,
        hosted: Option<&HostedRoom>,
    ) -> Result<bool, ClientError> {
        let seq = match addressed_to(&call.message, me) {
            Addressed::Yes => return Ok(true),
            Addressed::No | Addressed::Never => return Ok(false),
            Addressed::IfMine(seq) => seq,
        };
        if let Some(said) = call.recent.iter().find(|said| said.seq == seq) {
            return Ok(said.sender_user_id == me.user_id);
        }
        match hosted {
            Some(hosted) => match self.rooms.is_mine(hosted, seq).await {
                Err(error) if !error.is_transient() => Ok(false),
                outcome => outcome,
            },
            None => Ok(false),
        }
    }

    /// A question of the owner's, as if its thread were a room of their own.
    pub(super) fn direct(&self, thread: &str, text: String) -> Inbound {
        static LAST: AtomicI64 = AtomicI64::new(0);
        // Later questions have higher numbers, over restarts too.
        let clock = now().saturating_mul(1000);
        let next = |last: i64| Some(clock.max(last + 1));
        let seq = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let seq = clock.max(seq.unwrap_or(0) + 1);
        let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = thread.chars().map(fits).take(60).collect();
        let name = format!("rm_{name}");
        Inbound {
            // Letters, digits and dashes are always a room's id.
            room_id: name.parse().unwrap_or_else(|_| protocol::RoomId::welcome()),
            room_name: format!("thread {thread}"),
            message: direct_message(seq, text),
            client: self.server.clone(),
            me: self.me(),
            rules: None,
            recent: Vec::new(),
            session: self.session.clone(),
        }
    }

    fn me(&self) -> Me {
        let user_id = self.agent.user_id().to_string();
        Me {
            mention_key: format!("@{user_id}"),
            user_name: None,
            owner_user_id: None,
            user_id,
        }
    }
}

/// Answers of calls that may come again because they were not received: the same delivery gets the
/// same answer, and the backend is not asked twice.
#[derive(Default)]
pub struct AnswerCache(Mutex<VecDeque<(String, Answered)>>);

impl AnswerCache {
    fn get(&self, delivery: &str) -> Option<Answered> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers.iter().find(|(id, _)| id == delivery);
        known.map(|(_, answered)| answered.clone())
    }

    fn keep(&self, delivery: String, answered: Answered) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_ANSWERS {
            answers.pop_front();
        }
        answers.push_back((delivery, answered));
    }
}
