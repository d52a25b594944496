//! What clients ask for.

use super::{
    failure::{A2aFailure, Result},
    watch::Watch,
};
use crate::{
    api::{
        mcp::{ApiCall, Following, RoomApi},
        write_limits,
    },
    auth::{Caller, network::Origin, secrets::sha256_hex},
    services::a2a::{
        Context, TaskName, push,
        tasks::{self, LoadedTask},
    },
};
use axum::http::{HeaderMap, Method};
use protocol::{
    Posted, RoomId,
    a2a::{
        A2aError, ErrorKind, ListTasks, Operation, OperationResult, PushConfig, Role, SendMessage,
        StreamResponse, Task,
    },
};
use serde_json::json;
use std::time::Duration;

/// What is sent back.
pub enum OperationReply {
    Once(OperationResult),
    Stream(Box<Watch>),
}

/// A request: who asks, and of which room.
pub struct Request {
    pub api: RoomApi,
    pub headers: HeaderMap,
    pub origin: Origin,
    /// The room that the address names.
    pub room: Option<RoomId>,
    /// Whether the client speaks 0.3.
    pub older: bool,
}

impl Request {
    pub async fn answer(mut self, operation: Operation) -> Result<OperationReply> {
        self.take_tenant(&operation)?;
        let outcome = match operation {
            Operation::SendMessage(request) => self.send(*request).await?,
            Operation::SendStreamingMessage(request) => return self.stream(*request).await,
            Operation::SubscribeToTask(request) => return self.subscribe(&request.id).await,
            Operation::GetTask(request) => {
                let most = request.most_messages()?;
                let (task, _) = self.task(&request.id).await?;
                OperationResult::Task(Box::new(task.to_task().with_history(most)))
            }
            Operation::ListTasks(request) => self.list(&request).await?,
            Operation::CancelTask(request) => self.cancel(&request.id).await?,
            Operation::CreatePushConfig(config) => self.create_push(config).await?,
            Operation::GetPushConfig(request) => {
                let configs = self.pushes(&request.task_id).await?;
                // Clients of 0.3 may ask for the only one without naming it.
                let only = self.older && request.id.is_empty();
                let wanted = |config: &PushConfig| only || config.id.as_ref() == Some(&request.id);
                let found = configs.into_iter().find(wanted);
                OperationResult::PushConfig(found.ok_or_else(A2aError::task_not_found)?)
            }
            Operation::ListPushConfigs(request) => {
                OperationResult::PushConfigs(self.pushes(&request.task_id).await?)
            }
            Operation::DeletePushConfig(request) => {
                let (task, caller) = self.task(&request.task_id).await?;
                self.count_write("/stop").await?;
                push::delete(&self.api.app, &caller, &task.name, &request.id).await?;
                OperationResult::Done
            }
            Operation::GetExtendedAgentCard => {
                return Err(A2aError::new(
                    ErrorKind::UnsupportedOperation,
                    "There is one card for everybody; with a bearer, a room's names its agents",
                )
                .into());
            }
        };
        Ok(OperationReply::Once(outcome))
    }

    /// The tenant of a room's address is the room.
    fn take_tenant(&mut self, operation: &Operation) -> Result<()> {
        let Some(tenant) = operation.tenant() else {
            return Ok(());
        };
        let room: RoomId = tenant
            .parse()
            .map_err(|_| A2aError::invalid("tenant is a room's id, rm_…"))?;
        if self.room.as_ref().is_some_and(|own| *own != room) {
            return Err(A2aError::invalid("tenant names another room than the address").into());
        }
        self.room = Some(room);
        Ok(())
    }

    /// Who the caller is in a room.
    async fn caller(&self, room: &RoomId) -> Result<Caller> {
        let caller = &self.api.caller;
        Ok(caller.in_room(&self.api.app, room, self.origin).await?)
    }

    /// Counts a change as the API counts the one at the end of this path.
    async fn count_write(&self, path: &str) -> Result<()> {
        let counted =
            write_limits::count_write(&self.api.app, path, &self.headers, self.origin).await;
        Ok(counted?)
    }

    /// A task that the caller may see. Whatever stands in the way, there is none.
    async fn task(&self, id: &str) -> Result<(LoadedTask, Caller)> {
        let name: TaskName = id.parse().map_err(|()| A2aError::task_not_found())?;
        if self.room.as_ref().is_some_and(|room| *room != name.room) {
            return Err(A2aError::task_not_found().into());
        }
        let caller = self.caller(&name.room).await.map_err(A2aFailure::of_task)?;
        let ip = self.origin.network();
        let task = tasks::read(&self.api.app, &caller, ip, &name).await;
        let task = task.map_err(|error| A2aFailure::from(error).of_task())?;
        Ok((task, caller))
    }

    async fn send(&self, request: SendMessage) -> Result<OperationResult> {
        let wanted = request.wanted()?;
        let most = wanted.most_messages();
        let mut sent = self.post(request, wanted.return_immediately).await?;
        let wait = Duration::from_secs(self.api.app.config.a2a.wait_seconds.max(1));
        if let Some(following) = sent.following.take() {
            let watch = self.watch(sent, following);
            sent = watch.until_over(wait).await.into();
        }
        let task = sent.task.to_task().with_history(most);
        Ok(OperationResult::Sent(Box::new(StreamResponse::Task(task))))
    }

    async fn stream(self, request: SendMessage) -> Result<OperationReply> {
        request.wanted()?;
        let mut sent = self.post(request, false).await?;
        let following = sent.following.take();
        let following = following.ok_or_else(|| A2aError::invalid("nothing to follow"))?;
        Ok(OperationReply::Stream(Box::new(
            self.watch(sent, following),
        )))
    }

    async fn subscribe(self, id: &str) -> Result<OperationReply> {
        let (task, _) = self.task(id).await?;
        refuse_over(&task)?;
        let following = self.follow(&task.name.room).await?;
        // The stream is open first, so nothing falls between the two.
        let (task, caller) = self.task(id).await?;
        let sent = Sent {
            task,
            caller,
            following: None,
        };
        Ok(OperationReply::Stream(Box::new(
            self.watch(sent, following),
        )))
    }

    fn watch(&self, sent: Sent, following: Following) -> Watch {
        let app = self.api.app.clone();
        let ip = self.origin.network();
        Watch::new(app, sent.caller, ip, sent.task, following)
    }

    async fn follow(&self, room: &RoomId) -> Result<Following> {
        Ok(Following::open(&self.api, room, true).await?)
    }

    /// The room that a message goes to, and where in it.
    async fn destination(&self, request: &SendMessage) -> Result<(RoomId, Option<Context>)> {
        let message = &request.message;
        let context = message.context_id.as_deref().filter(|id| !id.is_empty());
        let context: Option<Context> = context
            .map(|id| {
                id.parse().map_err(|()| {
                    A2aError::invalid(
                        "contextId is a room (rm_…) or a conversation in it as a task names it; \
                         leave it out to begin one",
                    )
                })
            })
            .transpose()?;
        let named = self.room.clone();
        let named = named.or_else(|| context.as_ref().map(|context| context.room.clone()));
        let room = match named {
            Some(room) => room,
            None => match self.api.caller.own_room() {
                Some(room) => room.clone(),
                None => {
                    return Err(A2aError::invalid(
                        "Which room? Send to /a2a/rm_…, or name the room as contextId",
                    )
                    .into());
                }
            },
        };
        if context.as_ref().is_some_and(|context| context.room != room) {
            return Err(A2aError::invalid("contextId is of another room").into());
        }
        Ok((room, context))
    }

    /// Posts a message, as the API does.
    async fn post(&self, request: SendMessage, at_once: bool) -> Result<Sent> {
        let app = &self.api.app;
        let message = &request.message;
        if message.role != Role::User {
            return Err(A2aError::invalid("message.role must be ROLE_USER").into());
        }
        let text = message.to_text()?;
        let task_id = message.task_id.as_deref().filter(|id| !id.is_empty());
        let (room, reply_to, text, caller) = match task_id {
            Some(id) => {
                let (task, caller) = self.task(id).await?;
                let context = message.context_id.as_deref().filter(|id| !id.is_empty());
                if context.is_some_and(|id| id != task.context_id()) {
                    return Err(A2aError::invalid("contextId is not the task's").into());
                }
                refuse_over(&task)?;
                if self.api.caller.user() != task.author().as_str() {
                    return Err(A2aError::new(
                        ErrorKind::PermissionDenied,
                        "Only whoever began a task adds to it",
                    )
                    .into());
                }
                let room = task.name.room.clone();
                let text = tasks::addressed(app, &caller, &room, text, Some(&task)).await?;
                (room, Some(task.name.seq), text, caller)
            }
            None => {
                let (room, context) = self.destination(&request).await?;
                let caller = self.caller(&room).await?;
                let last = match context.and_then(|context| context.root) {
                    Some(root) => Some(tasks::last_word(app, &caller, &room, root).await?),
                    None => None,
                };
                let text = match &last {
                    // Its author is asked by being answered.
                    Some(last) if !last.is_own => text,
                    _ => tasks::addressed(app, &caller, &room, text, None).await?,
                };
                (room, last.map(|last| last.seq), text, caller)
            }
        };
        let config = request.configuration.unwrap_or_default();
        let push = match config.task_push_notification_config {
            Some(config) => Some(push::check(app, &caller, config, self.older)?),
            None => None,
        };
        let following = match at_once {
            true => None,
            false => Some(self.follow(&room).await?),
        };
        let key = format!("a2a-{}", sha256_hex(request.message.message_id.as_bytes()));
        let body = json!({"content": text, "reply_to_seq": reply_to});
        let call = ApiCall {
            idempotency_key: Some(&key),
            with_key: true,
            ..ApiCall::change(Method::POST, &room, "/messages", body)
        };
        let posted: Posted = serde_json::from_value(self.api.call(call).await?)
            .map_err(crate::error::Error::internal)?;
        // A further turn of a task is that task.
        let seq = match task_id {
            Some(_) => reply_to.unwrap_or(posted.seq),
            None => posted.seq,
        };
        let (task, _) = self.task(&TaskName { room, seq }.to_string()).await?;
        if let Some(push) = push {
            self.count_write("/stop").await?;
            push::create(app, &caller, &task, push).await?;
        }
        Ok(Sent {
            task,
            caller,
            following,
        })
    }

    async fn cancel(&self, id: &str) -> Result<OperationResult> {
        let (task, caller) = self.task(id).await?;
        if task.status.state.is_terminal() {
            return Err(
                A2aError::new(ErrorKind::TaskNotCancelable, "The task is over already").into(),
            );
        }
        self.count_write("/stop").await?;
        tasks::cancel(&self.api.app, &caller, &task).await?;
        let room = &task.name.room;
        for (user, seq) in &task.pending {
            let path = format!("/members/{}/stop", encoded(user.as_str()));
            let call = ApiCall {
                with_key: true,
                ..ApiCall::change(Method::POST, room, &path, json!({"reply_to_seq": seq}))
            };
            if let Err(refused) = self.api.call(call).await {
                tracing::debug!(why = refused.0, %room, %user, "a task is taken back; somebody works on");
            }
        }
        let (task, _) = self.task(id).await?;
        Ok(OperationResult::Task(Box::new(task.to_task())))
    }

    async fn list(&self, request: &ListTasks) -> Result<OperationResult> {
        let context = request.context_id.as_deref().filter(|id| !id.is_empty());
        let of_context = context.and_then(|id| id.parse::<Context>().ok());
        let room = self.room.clone();
        let room = room.or_else(|| of_context.map(|context| context.room));
        let room = room.or_else(|| self.api.caller.own_room().cloned());
        let room = room.ok_or_else(|| {
            A2aError::invalid("Which room? Ask /a2a/rm_…, or name the room as contextId")
        })?;
        let caller = self.caller(&room).await?;
        let found = tasks::asked_by(&self.api.app, &caller, &room).await?;
        let tasks = found.iter().map(LoadedTask::to_task).collect();
        let is_of = |task: &Task, id: &str| task.context_id == id || id == room.as_str();
        Ok(OperationResult::Tasks(request.page(tasks, is_of)?))
    }

    async fn create_push(&self, config: PushConfig) -> Result<OperationResult> {
        let task = config.task_id.clone().unwrap_or_default();
        let (task, caller) = self.task(&task).await?;
        self.count_write("/stop").await?;
        let app = &self.api.app;
        let checked = push::check(app, &caller, config, self.older)?;
        let made = push::create(app, &caller, &task, checked).await?;
        Ok(OperationResult::PushConfig(made))
    }

    async fn pushes(&self, id: &str) -> Result<Vec<PushConfig>> {
        let (task, caller) = self.task(id).await?;
        Ok(push::list(&self.api.app, &caller, &task.name).await?)
    }
}

/// A message that was posted, as a task.
pub struct Sent {
    pub task: LoadedTask,
    pub caller: Caller,
    /// The room's stream, from before it was posted.
    pub following: Option<Following>,
}

fn refuse_over(task: &LoadedTask) -> Result<()> {
    match task.status.state.is_terminal() {
        false => Ok(()),
        true => Err(A2aError::new(
            ErrorKind::UnsupportedOperation,
            "The task is over; begin another one, in the same contextId if it belongs there",
        )
        .into()),
    }
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
