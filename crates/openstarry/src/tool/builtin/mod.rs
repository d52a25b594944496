//! The tools every agent can be given.

mod confine;
mod fs;
mod http;
mod search;
mod shell;
mod time;
mod todo;

pub use fs::Workspace;
pub use http::HttpGet;
pub use search::SearchTools;
pub use shell::{ShellConfig, ShellFiles, ShellRun};
pub use time::TimeNow;
pub use todo::{Todo, TodoTool};

pub(crate) use confine::is_available as can_confine;
pub(crate) use fs::media_or_text;
pub(crate) use shell::kept_variables;
