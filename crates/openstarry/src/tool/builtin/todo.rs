//! `todo`: a session's list of things to do.

use crate::segment::ContentSegment;
use crate::tool::{Risk, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, parse};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::PoisonError;

const MAX_ITEMS: usize = 200;
const MAX_TEXT: usize = 1000;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// What.
    pub text: String,
    /// Whether it is done.
    pub done: bool,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Add,
    Done,
    Remove,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What to do with the list.
    action: Action,
    /// The item to add.
    #[serde(default)]
    text: Option<String>,
    /// The number of the item, from 1, to mark as done or to remove.
    #[serde(default)]
    number: Option<usize>,
}

/// Keeps the list.
pub struct TodoTool(ToolSpec);

impl Default for TodoTool {
    fn default() -> Self {
        let about = "Keep a list of things to do: list it, add an item, mark one done, remove one.";
        let mut spec = ToolSpec::of::<Args>("todo", about, Risk::Safe);
        // Items are counted: one change at a time.
        spec.independent = false;
        Self(spec)
    }
}

impl Tool for TodoTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, args: Value, context: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let args: Args = parse(args)?;
            let mut todos = context.todos.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut todos, args)?;
            let rows: Vec<String> = todos
                .iter()
                .enumerate()
                .map(|(at, todo)| {
                    let mark = if todo.done { 'x' } else { ' ' };
                    format!("{}. [{mark}] {}", at + 1, todo.text)
                })
                .collect();
            let text = if rows.is_empty() {
                "[empty]".into()
            } else {
                rows.join("\n")
            };
            Ok(vec![ContentSegment::text(text)])
        })
    }
}

fn change(todos: &mut Vec<Todo>, args: Args) -> Result<(), ToolError> {
    let at = || {
        let at = args.number.unwrap_or(0).checked_sub(1);
        at.filter(|at| *at < todos.len())
            .ok_or_else(|| ToolError(format!("want a number from 1 to {}", todos.len())))
    };
    match args.action {
        Action::List => {}
        Action::Add => {
            let text = args.text.filter(|text| !text.trim().is_empty());
            let text = text.ok_or_else(|| ToolError("want a text to add".into()))?;
            if todos.len() == MAX_ITEMS || text.len() > MAX_TEXT {
                return Err(ToolError(format!(
                    "{MAX_ITEMS} items of {MAX_TEXT} bytes at most"
                )));
            }
            todos.push(Todo { text, done: false });
        }
        Action::Done => {
            let at = at()?;
            todos[at].done = true;
        }
        Action::Remove => {
            let at = at()?;
            todos.remove(at);
        }
    }
    Ok(())
}
