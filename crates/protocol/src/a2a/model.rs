//! What A2A speaks of: tasks, messages, artifacts, and what is told of them.

use super::timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! objects {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty),* $(,)? })+) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name { $($(#[$field_meta])* pub $field: $ty),* }
        )+
    };
}
pub(super) use objects;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TaskState {
    /// Accepted; nobody works at it yet.
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    /// Somebody works at it.
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    /// Done.
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    /// It came to nothing.
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    /// Its client took it back.
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    /// It waits for another message of its client.
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    /// The agent will not do it.
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    /// It waits until somebody allows something.
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
    /// Unknown.
    #[default]
    #[serde(rename = "TASK_STATE_UNSPECIFIED", other)]
    Unspecified,
}

impl TaskState {
    /// Whether nothing more comes of the task.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected
        )
    }

    /// Whether it waits for its client, or for somebody else's leave.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The client.
    #[serde(rename = "ROLE_USER")]
    User,
    /// The agent.
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

objects! {
    /// A piece of a message or an artifact: one of `text`, `raw`, `url` and `data`.
    #[derive(Default)]
    Part {
        /// Words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// A file's bytes, in base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
        /// Where a file is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// Any JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
        /// A file's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// The sort of content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// What the sender adds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    }

    /// What client or agent say.
    Message {
        /// Its sender's name for it.
        message_id: String,
        /// The conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_id: Option<String>,
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_id: Option<String>,
        /// Who says it.
        role: Role,
        /// What is said.
        #[serde(default)]
        parts: Vec<Part>,
        /// What the sender adds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// Extensions that the message uses.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        extensions: Vec<String>,
        /// Tasks that it speaks of.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reference_task_ids: Vec<String>,
    }

    /// Where a task stands, since when, and in which words.
    TaskStatus {
        /// The state.
        #[serde(default)]
        state: TaskState,
        /// In words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
        /// Since when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timestamp: Option<String>,
    }

    /// What came of a task.
    Artifact {
        /// Its name within the task.
        artifact_id: String,
        /// Its name for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its content.
        #[serde(default)]
        parts: Vec<Part>,
        /// What the agent adds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    }

    /// A piece of work.
    Task {
        /// Its name.
        id: String,
        /// The conversation it belongs to.
        #[serde(default)]
        context_id: String,
        /// Where it stands.
        status: TaskStatus,
        /// What came of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Artifact>,
        /// What was said.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        history: Vec<Message>,
        /// What the agent adds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    }

    /// A task stands elsewhere now.
    StatusUpdate {
        /// Which task.
        task_id: String,
        /// Its conversation.
        #[serde(default)]
        context_id: String,
        /// Where it stands.
        status: TaskStatus,
    }

    /// An artifact is new, or has grown.
    ArtifactUpdate {
        /// Which task.
        task_id: String,
        /// Its conversation.
        #[serde(default)]
        context_id: String,
        /// The artifact, or what is added to it.
        artifact: Artifact,
        /// Whether it is added to what was sent before.
        #[serde(default)]
        append: bool,
        /// Whether it is whole now.
        #[serde(default)]
        last_chunk: bool,
    }

    /// With what a notification proves itself.
    Authentication {
        /// The scheme of the `Authorization` header.
        scheme: String,
        /// What follows the scheme.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credentials: Option<String>,
    }

    /// Where a task's changes are sent.
    PushConfig {
        /// Its name; given by the server where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_id: Option<String>,
        /// Which agent of several at one address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
        /// Where to.
        url: String,
        /// Sent along with each notification.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        /// With what it proves itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        authentication: Option<Authentication>,
    }
}

/// One event of a stream, one notification, or the answer to a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamResponse {
    /// The task as it is.
    Task(Task),
    /// An answer without a task.
    Message(Message),
    /// The task stands elsewhere now.
    StatusUpdate(StatusUpdate),
    /// An artifact is new, or has grown.
    ArtifactUpdate(ArtifactUpdate),
}

impl StreamResponse {
    /// Whether nothing follows it in a stream.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Task(task) => task.status.state.is_terminal(),
            Self::Message(_) => true,
            Self::StatusUpdate(update) => update.status.state.is_terminal(),
            Self::ArtifactUpdate(_) => false,
        }
    }
}

impl Part {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }
}

impl Message {
    /// Words of the agent about a task.
    pub fn of_agent(id: impl Into<String>, task: &str, context: &str, text: &str) -> Self {
        Self {
            message_id: id.into(),
            context_id: Some(context.to_owned()),
            task_id: Some(task.to_owned()),
            role: Role::Agent,
            parts: vec![Part::text(text)],
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// Its words, part by part; what is no text is left out.
    pub fn words(&self) -> String {
        words(&self.parts, "\n")
    }
}

impl Artifact {
    /// Its words; what is no text is left out. What was added piece by piece is a part for each.
    pub fn words(&self) -> String {
        words(&self.parts, "")
    }
}

fn words(parts: &[Part], between: &str) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part.text.as_deref())
        .collect();
    texts.join(between)
}

impl TaskStatus {
    /// A state since this time, in unix milliseconds, and perhaps in words.
    pub fn new(state: TaskState, since_ms: i64, message: Option<Message>) -> Self {
        Self {
            state,
            message,
            timestamp: Some(timestamp(since_ms)),
        }
    }
}

impl Task {
    /// The task with at most so many of its newest messages; all of them where none is said.
    pub fn with_history(mut self, most: Option<usize>) -> Self {
        if let Some(most) = most {
            let older = self.history.len().saturating_sub(most);
            self.history.drain(..older);
        }
        self
    }
}
