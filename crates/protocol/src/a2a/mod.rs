//! A2A, the Agent2Agent protocol: its data, its errors and its two JSON bindings, in version 1.0 and,
//! over JSON-RPC, in version 0.3. The room server and the host answer it, the `a2a` backend asks with
//! it. No I/O: bodies go in, bodies come out.
//!
//! Everything inside speaks 1.0. What an older client sends is made 1.0 first ([`older`]), and what it
//! gets is made older last.

mod card;
mod content;
mod error;
mod http;
mod model;
pub mod older;
mod request;
mod rpc;
mod task_diff;
#[cfg(test)]
mod tests;
mod time;

pub use card::{Card, CardInterface};
pub use error::{A2aError, ErrorKind};
pub use http::HttpRequest;
pub use model::{
    Artifact, ArtifactUpdate, Authentication, Message, Part, PushConfig, Role, StatusUpdate,
    StreamResponse, Task, TaskState, TaskStatus,
};
pub use request::{
    Configuration, GetTask, ListTasks, Operation, OperationResult, PushConfigId, PushConfigsOf,
    SendMessage, TaskId, TaskList,
};
pub use rpc::{Binding, ParsedRequest};
pub use task_diff::TaskDiff;
pub use time::timestamp;

/// The version that is spoken.
pub const VERSION: &str = "1.0";
/// The version that older clients speak, over JSON-RPC alone.
pub const OLDER_VERSION: &str = "0.3";
/// The header, or the parameter of the query, that names the version.
pub const VERSION_HEADER: &str = "a2a-version";
/// What HTTP+JSON and push notifications are sent as.
pub const MEDIA_TYPE: &str = "application/a2a+json";
/// Where a card is found below an agent's address.
pub const CARD_PATH: &str = "/.well-known/agent-card.json";
/// The header with the token of a push notification.
pub const TOKEN_HEADER: &str = "x-a2a-notification-token";
