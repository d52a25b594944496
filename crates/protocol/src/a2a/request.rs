//! What a client may ask for, and what it gets.

use super::{
    A2aError, ErrorKind, Message, PushConfig, StreamResponse, Task, TaskState, model::objects,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

objects! {
    /// How a message is to be dealt with.
    #[derive(Default)]
    Configuration {
        /// Where the task's changes are sent from the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_push_notification_config: Option<PushConfig>,
        /// The most messages of the history that are wanted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        history_length: Option<i64>,
        /// Whether the answer is not waited for.
        #[serde(default)]
        return_immediately: bool,
        /// What the client reads.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted_output_modes: Vec<String>,
    }

    /// `SendMessage`, `SendStreamingMessage`.
    SendMessage {
        /// Which agent of several at one address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
        /// The message.
        message: Message,
        /// How it is to be dealt with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        configuration: Option<Configuration>,
    }

    /// `GetTask`.
    GetTask {
        /// Which agent of several at one address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
        /// Which task.
        id: String,
        /// The most messages of its history that are wanted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        history_length: Option<i64>,
    }

    /// `CancelTask`, `SubscribeToTask`.
    TaskId {
        /// Which agent of several at one address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
        /// Which task.
        id: String,
    }

    /// `ListTasks`.
    #[derive(Default)]
    ListTasks {
        /// Which agent of several at one address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
        /// Only those of this conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_id: Option<String>,
        /// Only those that stand so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<TaskState>,
        /// How many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page_size: Option<i64>,
        /// Where the page before ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page_token: Option<String>,
        /// The most messages of each history that are wanted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        history_length: Option<i64>,
        /// Only those whose state changed at this time or after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status_timestamp_after: Option<String>,
        /// Whether artifacts are wanted.
        #[serde(default)]
        include_artifacts: bool,
    }

    /// A page of tasks, newest first.
    TaskList {
        /// The tasks.
        tasks: Vec<Task>,
        /// Where the next page begins; empty where there is none.
        next_page_token: String,
        /// The page's size.
        page_size: i64,
        /// How many there are in all.
        total_size: i64,
    }

    /// `GetTaskPushNotificationConfig`, `DeleteTaskPushNotificationConfig`.
    PushConfigId {
        /// Which agent of several at one address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
        /// Which task.
        task_id: String,
        /// Which configuration.
        id: String,
    }

    /// `ListTaskPushNotificationConfigs`.
    PushConfigsOf {
        /// Which agent of several at one address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
        /// Which task.
        task_id: String,
    }
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Say something, and get the task or an answer.
    SendMessage(Box<SendMessage>),
    /// Say something, and follow the task.
    SendStreamingMessage(Box<SendMessage>),
    /// A task.
    GetTask(GetTask),
    /// Tasks.
    ListTasks(ListTasks),
    /// End a task.
    CancelTask(TaskId),
    /// Follow a task.
    SubscribeToTask(TaskId),
    /// Have a task's changes sent somewhere.
    CreatePushConfig(PushConfig),
    /// Where they are sent.
    GetPushConfig(PushConfigId),
    /// All places where they are sent.
    ListPushConfigs(PushConfigsOf),
    /// Send them there no more.
    DeletePushConfig(PushConfigId),
    /// The card for those who are known.
    GetExtendedAgentCard,
}

/// What came of a request that is no stream.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationResult {
    /// Of a message that was sent: a task or an answer.
    Sent(Box<StreamResponse>),
    /// A task.
    Task(Box<Task>),
    /// Tasks.
    Tasks(TaskList),
    /// Where changes are sent.
    PushConfig(PushConfig),
    /// All places where changes are sent.
    PushConfigs(Vec<PushConfig>),
    /// Nothing to tell.
    Done,
}

impl Operation {
    /// The room or agent that the request names besides its address.
    pub fn tenant(&self) -> Option<&str> {
        let tenant = match self {
            Self::SendMessage(request) | Self::SendStreamingMessage(request) => &request.tenant,
            Self::GetTask(request) => &request.tenant,
            Self::ListTasks(request) => &request.tenant,
            Self::CancelTask(request) | Self::SubscribeToTask(request) => &request.tenant,
            Self::CreatePushConfig(config) => &config.tenant,
            Self::GetPushConfig(request) | Self::DeletePushConfig(request) => &request.tenant,
            Self::ListPushConfigs(request) => &request.tenant,
            Self::GetExtendedAgentCard => &None,
        };
        tenant.as_deref().filter(|tenant| !tenant.is_empty())
    }

    /// Reads the parameters of a method of 1.0.
    pub(super) fn read(method: &str, params: Value) -> Result<Self, A2aError> {
        Ok(match method {
            "SendMessage" => Self::SendMessage(fitting(params)?),
            "SendStreamingMessage" => Self::SendStreamingMessage(fitting(params)?),
            "GetTask" => Self::GetTask(fitting(params)?),
            "ListTasks" => Self::ListTasks(fitting(params)?),
            "CancelTask" => Self::CancelTask(fitting(params)?),
            "SubscribeToTask" => Self::SubscribeToTask(fitting(params)?),
            "CreateTaskPushNotificationConfig" => Self::CreatePushConfig(fitting(params)?),
            "GetTaskPushNotificationConfig" => Self::GetPushConfig(fitting(params)?),
            "ListTaskPushNotificationConfigs" => Self::ListPushConfigs(fitting(params)?),
            "DeleteTaskPushNotificationConfig" => Self::DeletePushConfig(fitting(params)?),
            "GetExtendedAgentCard" => Self::GetExtendedAgentCard,
            _ => {
                return Err(A2aError::new(
                    ErrorKind::MethodNotFound,
                    "There is no such method",
                ));
            }
        })
    }
}

/// Reads an object; the error says what to change.
pub(super) fn fitting<T: DeserializeOwned>(params: Value) -> Result<T, A2aError> {
    if !params.is_object() {
        return Err(A2aError::invalid("params must be an object"));
    }
    serde_json::from_value(params)
        .map_err(|error| A2aError::invalid(format!("the parameters do not fit: {error}")))
}

impl SendMessage {
    /// What the client wants of the answer, checked.
    pub fn wanted(&self) -> Result<Configuration, A2aError> {
        let wanted = self.configuration.clone().unwrap_or_default();
        most_messages(wanted.history_length)?;
        if self.message.message_id.is_empty() {
            return Err(A2aError::invalid("message.messageId is missing"));
        }
        if self.message.parts.is_empty() {
            return Err(A2aError::invalid("message.parts must hold at least one"));
        }
        Ok(wanted)
    }
}

/// The most messages of a history that somebody wants.
pub(super) fn most_messages(wanted: Option<i64>) -> Result<Option<usize>, A2aError> {
    let negative = || A2aError::invalid("historyLength must be 0 or more");
    wanted
        .map(|most| usize::try_from(most).map_err(|_| negative()))
        .transpose()
}

impl GetTask {
    /// The most messages of the history that are wanted.
    pub fn most_messages(&self) -> Result<Option<usize>, A2aError> {
        most_messages(self.history_length)
    }
}

impl Configuration {
    /// The most messages of the history that are wanted.
    pub fn most_messages(&self) -> Option<usize> {
        most_messages(self.history_length).ok().flatten()
    }
}

impl ListTasks {
    /// The page's size: 50 where none is said.
    fn page_size(&self) -> Result<usize, A2aError> {
        let size = self.page_size.unwrap_or(50);
        match usize::try_from(size) {
            Ok(size @ 1..=100) => Ok(size),
            _ => Err(A2aError::invalid("pageSize must be 1 to 100")),
        }
    }

    /// The page that is wanted of these tasks, newest first. A conversation is one that this says yes to.
    pub fn page(
        &self,
        tasks: Vec<Task>,
        is_of_context: impl Fn(&Task, &str) -> bool,
    ) -> Result<TaskList, A2aError> {
        let size = self.page_size()?;
        let most = most_messages(self.history_length)?;
        let after: usize = match self.page_token.as_deref().unwrap_or_default() {
            "" => 0,
            token => token
                .parse()
                .map_err(|_| A2aError::invalid("pageToken is not one of ours"))?,
        };
        let context = self.context_id.as_deref().filter(|id| !id.is_empty());
        let since = self.status_timestamp_after.as_deref();
        let mut found: Vec<Task> = tasks
            .into_iter()
            .filter(|task| context.is_none_or(|id| is_of_context(task, id)))
            .filter(|task| self.status.is_none_or(|state| task.status.state == state))
            .filter(|task| since.is_none_or(|at| task.status.timestamp.as_deref() >= Some(at)))
            .collect();
        found.sort_by(|a, b| b.status.timestamp.cmp(&a.status.timestamp));
        let total = found.len();
        let page = found.into_iter().skip(after).take(size);
        let tasks: Vec<Task> = page
            .map(|mut task| {
                if !self.include_artifacts {
                    task.artifacts.clear();
                }
                task.with_history(most)
            })
            .collect();
        let next = after + tasks.len();
        Ok(TaskList {
            tasks,
            next_page_token: match next < total {
                true => next.to_string(),
                false => String::new(),
            },
            page_size: i64::try_from(size).unwrap_or_default(),
            total_size: i64::try_from(total).unwrap_or_default(),
        })
    }
}

impl OperationResult {
    /// As 1.0 writes it.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Sent(sent) => json!(sent),
            Self::Task(task) => json!(task),
            Self::Tasks(tasks) => json!(tasks),
            Self::PushConfig(config) => json!(config),
            Self::PushConfigs(configs) => json!({"configs": configs, "nextPageToken": ""}),
            Self::Done => json!({}),
        }
    }
}
