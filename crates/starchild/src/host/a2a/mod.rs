//! The agent for A2A clients, at `/a2a`: JSON-RPC and HTTP+JSON at the same address. A task is one turn of
//! the backend, a conversation is a thread, and a key opens what it opens for `/chat/stream`.

mod push;
mod tasks;
mod turn;

pub use push::Notifications;
pub use tasks::Tasks;

use super::{
    HostState,
    chat::bearer,
    keys::{Refused, Scope, is_thread},
    refusal::read_bytes,
};
use crate::daemon::credentials::key::now;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::any,
};
use futures_util::{StreamExt, stream::BoxStream};
use protocol::a2a::{
    A2aError, Binding, CARD_PATH, ErrorKind, HttpRequest, MEDIA_TYPE, Operation, OperationResult,
    PushConfig, Role, SendMessage, StreamResponse, TaskState, VERSION_HEADER,
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tasks::Entry;

const MAX_BODY_BYTES: usize = 512 * 1024;
/// As for `/chat/stream`.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long a message that waits for its answer is held.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

type Result<T, E = A2aError> = std::result::Result<T, E>;

/// The routes.
pub fn router(host: Arc<HostState>) -> Router {
    Router::new()
        .route("/a2a", any(enter))
        .route("/a2a/{*path}", any(enter))
        .with_state(host)
}

/// A caller whose key holds.
struct Caller {
    bearer: String,
    /// The key's name, whose tasks these are.
    key: String,
    scope: Scope,
}

enum MethodReply {
    Once(OperationResult),
    Stream(BoxStream<'static, StreamResponse>),
}

async fn enter(State(host): State<Arc<HostState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().strip_prefix("/a2a").unwrap_or_default();
    let path = format!("/{}", path.trim_start_matches('/'));
    if parts.method == Method::GET && path == CARD_PATH {
        return super::card::card(State(host)).await.into_response();
    }
    let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
    let query = query.map(|query| query.0).unwrap_or_default();
    let version = parts.headers.get(VERSION_HEADER);
    let head = HttpRequest {
        method: parts.method.as_str(),
        path: &path,
        query: &query,
        version: version.map(|value| value.to_str().unwrap_or("?")),
        body: &[],
    };
    let caller = match known(&host, &parts) {
        Ok(caller) => caller,
        Err(error) => return refused(&head.binding(), &error),
    };
    let body = match read_bytes(body, MAX_BODY_BYTES).await {
        Ok(body) => body,
        Err(refusal) => {
            let error = A2aError::invalid(refusal.message());
            return refused(&head.binding(), &error);
        }
    };
    let asked = HttpRequest {
        body: &body,
        ..head
    };
    let asked = asked.read();
    let (binding, operation) = match asked.operation {
        Ok(operation) => (asked.binding, operation),
        Err(error) => return refused(&asked.binding, &error),
    };
    match answer(host, caller, operation, &binding).await {
        Ok(MethodReply::Once(outcome)) => {
            let body = binding.write_result(&outcome).to_string();
            written(&binding, StatusCode::OK, body)
        }
        Ok(MethodReply::Stream(events)) => {
            let events = events.map(move |event| {
                let data = binding.event(&event).to_string();
                Ok::<_, Infallible>(Event::default().data(data))
            });
            let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("working");
            let stream = Sse::new(events).keep_alive(keep_alive);
            ([(header::CACHE_CONTROL, "no-store")], stream).into_response()
        }
        Err(error) => refused(&binding, &error),
    }
}

fn known(host: &HostState, parts: &Parts) -> Result<Caller> {
    let unauthenticated = || {
        A2aError::new(
            ErrorKind::Unauthenticated,
            "Send a key of this host as Authorization: Bearer sk_…",
        )
    };
    let bearer = bearer(&parts.headers).map_err(|_| unauthenticated())?;
    let (key, scope) = host
        .keys
        .known_as(bearer, now())
        .ok_or_else(unauthenticated)?;
    Ok(Caller {
        bearer: bearer.to_owned(),
        key,
        scope,
    })
}

async fn answer(
    host: Arc<HostState>,
    caller: Caller,
    operation: Operation,
    binding: &Binding,
) -> Result<MethodReply> {
    let older = matches!(binding, Binding::Rpc { older: true, .. });
    let task = |id: &str| {
        let found = host.tasks.find(id, &caller.key);
        found.ok_or_else(A2aError::task_not_found)
    };
    let outcome = match operation {
        Operation::SendMessage(request) => {
            let wanted = request.wanted()?;
            let (entry, is_new) = begin(&host, &caller, *request, older)?;
            if !wanted.return_immediately {
                // Whoever goes away without having learnt of the task ends it.
                let ends = EndsIfLeft(is_new.then_some(&entry));
                let _ = tokio::time::timeout(LONGEST_WAIT, entry.over()).await;
                ends.stays();
            }
            let task = entry.task().with_history(wanted.most_messages());
            OperationResult::Sent(Box::new(StreamResponse::Task(task)))
        }
        Operation::SendStreamingMessage(request) => {
            request.wanted()?;
            let (entry, _) = begin(&host, &caller, *request, older)?;
            return Ok(MethodReply::Stream(entry.events().boxed()));
        }
        Operation::SubscribeToTask(request) => {
            let entry = task(&request.id)?;
            if entry.state().is_terminal() {
                return Err(is_over());
            }
            return Ok(MethodReply::Stream(entry.events().boxed()));
        }
        Operation::GetTask(request) => {
            let most = request.most_messages()?;
            let task = task(&request.id)?.task().with_history(most);
            OperationResult::Task(Box::new(task))
        }
        Operation::ListTasks(request) => {
            OperationResult::Tasks(host.tasks.list(&caller.key, &request)?)
        }
        Operation::CancelTask(request) => {
            let entry = task(&request.id)?;
            if !entry.end(TaskState::Canceled, None) {
                return Err(A2aError::new(
                    ErrorKind::TaskNotCancelable,
                    "The task is over already",
                ));
            }
            OperationResult::Task(Box::new(entry.task()))
        }
        Operation::CreatePushConfig(config) => {
            let entry = task(config.task_id.as_deref().unwrap_or_default())?;
            OperationResult::PushConfig(host.notifications.add(&entry, config, older)?)
        }
        Operation::GetPushConfig(request) => {
            let configs = task(&request.task_id)?.pushes();
            let only = older && request.id.is_empty();
            let wanted = |config: &PushConfig| only || config.id.as_ref() == Some(&request.id);
            let found = configs.into_iter().find(wanted);
            OperationResult::PushConfig(found.ok_or_else(A2aError::task_not_found)?)
        }
        Operation::ListPushConfigs(request) => {
            OperationResult::PushConfigs(task(&request.task_id)?.pushes())
        }
        Operation::DeletePushConfig(request) => {
            task(&request.task_id)?.forget_push(&request.id);
            OperationResult::Done
        }
        Operation::GetExtendedAgentCard => {
            return Err(A2aError::new(
                ErrorKind::UnsupportedOperation,
                "There is one card for everybody",
            ));
        }
    };
    Ok(MethodReply::Once(outcome))
}

/// Begins a turn of the backend; or finds the one that the same message began before.
fn begin(
    host: &Arc<HostState>,
    caller: &Caller,
    request: SendMessage,
    older: bool,
) -> Result<(Arc<Entry>, bool)> {
    let message = request.message;
    if message.role != Role::User {
        return Err(A2aError::invalid("message.role must be ROLE_USER"));
    }
    let text = message.to_text()?;
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(A2aError::invalid(format!(
            "the message has more than {MAX_MESSAGE_BYTES} bytes"
        )));
    }
    if let Some(id) = message.task_id.as_deref().filter(|id| !id.is_empty()) {
        let entry = host.tasks.find(id, &caller.key);
        let entry = entry.ok_or_else(A2aError::task_not_found)?;
        return Err(match entry.state().is_terminal() {
            true => is_over(),
            false => A2aError::new(
                ErrorKind::UnsupportedOperation,
                "A turn takes no further messages; send it with the contextId alone, and it comes next",
            ),
        });
    }
    let thread = match message.context_id.as_deref().filter(|id| !id.is_empty()) {
        Some(context) if is_thread(context) => context.to_owned(),
        Some(_) => {
            return Err(A2aError::invalid(
                "contextId is 1 to 200 characters of a-z A-Z 0-9 _ - . : @",
            ));
        }
        None => match &caller.scope {
            Scope::Thread(own) => own.clone(),
            Scope::Bridge => format!("a2a-{}", uuid::Uuid::new_v4().simple()),
        },
    };
    let admitted = host.keys.admit(&caller.bearer, &thread, now());
    admitted.map_err(|refused| match refused {
        Refused::Unknown => A2aError::new(ErrorKind::Unauthenticated, "The key has ended"),
        Refused::Scope => A2aError::new(
            ErrorKind::PermissionDenied,
            "The key is for another thread; leave contextId out",
        ),
        Refused::Rate { after } => A2aError::new(
            ErrorKind::ResourceExhausted,
            format!(
                "The key was used too often; try again in {} s",
                after.as_secs() + 1
            ),
        ),
    })?;
    if let Some(known) = host.tasks.of_message(&caller.key, &message.message_id) {
        return Ok((known, false));
    }
    let busy = || {
        A2aError::new(
            ErrorKind::Unavailable,
            "The agent has its hands full; try again in a moment",
        )
    };
    let config = request.configuration.unwrap_or_default();
    let push = config.task_push_notification_config;
    let push = push
        .map(|push| host.notifications.check(push, older))
        .transpose()?;
    let thread_lock = host.threads.lock_of(&thread).ok_or_else(busy)?;
    let entry = host
        .tasks
        .add(&caller.key, &thread, message)
        .ok_or_else(busy)?;
    if let Some(push) = push {
        host.notifications.begin(&entry, push);
    }
    turn::spawn(host.clone(), entry.clone(), thread_lock, thread, text);
    Ok((entry, true))
}

fn is_over() -> A2aError {
    A2aError::new(
        ErrorKind::UnsupportedOperation,
        "The task is over; begin another one, in the same contextId if it belongs there",
    )
}

/// Ends a task when it is dropped before it was said that it stays.
struct EndsIfLeft<'a>(Option<&'a Arc<Entry>>);

impl EndsIfLeft<'_> {
    fn stays(mut self) {
        self.0 = None;
    }
}

impl Drop for EndsIfLeft<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.0 {
            entry.end(TaskState::Canceled, Some("its client went away"));
        }
    }
}

fn refused(binding: &Binding, error: &A2aError) -> Response {
    let (status, body) = binding.error(error);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = written(binding, status, body.to_string());
    let headers = response.headers_mut();
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // What is left of a body that was not read must not be taken for the next request.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn written(binding: &Binding, status: StatusCode, body: String) -> Response {
    let kind = match binding {
        Binding::Http => MEDIA_TYPE,
        Binding::Rpc { .. } => "application/json",
    };
    let head = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, head, body).into_response()
}
