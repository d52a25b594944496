//! Tools: what an agent can do, and the registry that holds them.

pub(crate) mod args;
pub mod builtin;
pub mod mcp;
mod nearest;
mod registry;
pub mod retrieval;
mod spec;
mod subagent;
mod typed;

pub use args::ArgsError;
pub use nearest::nearest;
pub use registry::{Registered, Registry, RegistryError, ToolSet};
pub use spec::{Risk, ToolSpec, ToolView};
pub use subagent::SubAgent;
pub use typed::{IntoOutput, function};

use crate::segment::ContentSegment;
use crate::session::Expenses;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// Who wants a tool to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// The person, by a slash command.
    User,
    /// The model.
    Agent,
}

/// What a running tool knows of where it runs.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The session's id.
    pub session: String,
    /// Who wants it.
    pub principal: Principal,
    /// The session's list of things to do.
    pub todos: Arc<Mutex<Vec<builtin::Todo>>>,
    /// Tools that `search_tools` found, to be offered from now on.
    pub found: Arc<Mutex<Vec<String>>>,
    /// Where a tool that asks models tells what that cost.
    pub expenses: Expenses,
    /// Where a tool that takes long says that it goes on.
    pub progress: Progress,
}

/// Signs of life of a running tool. Each one is shown, and gives the tool its
/// whole time limit anew.
#[derive(Clone, Debug, Default)]
pub struct Progress(pub(crate) Option<mpsc::Sender<String>>);

impl Progress {
    /// Says how far it is. A sign that finds no room is left out: another is
    /// about to be shown.
    pub fn tell(&self, text: impl Into<String>) {
        if let Some(signs) = &self.0 {
            let _ = signs.try_send(text.into());
        }
    }
}

/// Why a tool could not do it. The text goes to the model.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
    /// An error that says this.
    pub fn new(text: impl ToString) -> Self {
        Self(text.to_string())
    }
}

/// What a tool gives: segments, or why it could not.
pub type ToolOutput = Result<Vec<ContentSegment>, ToolError>;

/// Something an agent can do.
///
/// `call` gets arguments that fit the schema. Dropping its future must end the
/// work: that is how time limits and cancelling are enforced.
pub trait Tool: Send + Sync {
    /// Name, description, schema and risk.
    fn spec(&self) -> &ToolSpec;

    /// Does it.
    fn call<'a>(&'a self, args: Value, context: &'a ToolContext) -> BoxFuture<'a, ToolOutput>;

    /// The arguments as the owner's rules see them: where a path or a command
    /// can be spelt in several ways, in one of them.
    fn canonical_args(&self, args: &Value) -> Value {
        args.clone()
    }

    /// The change that a call would make, as a diff for the person who is asked.
    fn preview<'a>(&'a self, _args: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { None })
    }

    /// The arguments that a person's "always" is bound to; it is for all calls of
    /// the tool where there are none.
    fn granted_args(&self) -> &[&str] {
        &[]
    }
}

/// A tool made of a spec and a function.
pub struct FnTool<F> {
    spec: ToolSpec,
    run: F,
}

impl<F, Fut> FnTool<F>
where
    F: Fn(Value) -> Fut + Send + Sync,
    Fut: Future<Output = ToolOutput> + Send + 'static,
{
    /// A tool that runs `run` with its arguments.
    pub fn new(spec: ToolSpec, run: F) -> Self {
        Self { spec, run }
    }
}

impl<F, Fut> Tool for FnTool<F>
where
    F: Fn(Value) -> Fut + Send + Sync,
    Fut: Future<Output = ToolOutput> + Send + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin((self.run)(args))
    }
}

/// Arguments that passed the schema, as the tool's own type.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(args: Value) -> Result<T, ToolError> {
    serde_json::from_value(args).map_err(ToolError::new)
}
